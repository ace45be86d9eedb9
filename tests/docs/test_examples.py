"""Every agent of the manual runs; every test in it passes. Those of writing-agents.md are in test_guide.py."""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs import testing
from runs.agents import Agent
from runs.registry import agents, announce
from runs.run_view import RunView
from tests.docs.manual import blocks
from tests.docs.modules import AGENTS, TESTS, Manual
from tests.docs.modules import manual as manual
from tests.rig.crew import Crew, start, state
from tests.rig.fixtures import own_ledger as own_ledger
from tests.rig.ledger import Ledger

GUIDE = "writing-agents.md"
README = "README.md"


def agent_of(manual: Manual, name: str) -> Agent:
    found = [thing for thing in vars(manual[AGENTS[name]]).values() if isinstance(thing, Agent) and thing.name == name]
    return found[0]


def trial(manual: Manual, name: str, input: Any = None, **given: Any) -> testing.Trial:
    others = [thing for thing in vars(manual[AGENTS[name]]).values() if isinstance(thing, Agent) and thing.name != name]
    return testing.run(agent_of(manual, name), input, tools=testing.REAL, agents=others, **given)


def a_reminder_sleeps(manual: Manual) -> None:
    assert trial(manual, "reminder").finish().result == "awake"


def a_parcel_waits_for_its_address(manual: Manual) -> None:
    run = trial(manual, "parcel", "p-1")
    assert run.status == "waiting"
    assert "p-1 goes by bicycle" in run.signal("address", {"by": "bicycle"}).result["shipped"]
    assert trial(manual, "parcel", "p-1").finish().result == {"shipped": False, "why": "expired"}


def a_complaint_asks(manual: Manual) -> None:
    given = {"customer": "Mei", "parcel": "p-1"}
    assert trial(manual, "complaint", given).answer("refuse").result == {"sent": None}
    assert "by courier" in trial(manual, "complaint", given).answer("send").result["sent"]


def a_consignment_spawns_its_cartons(manual: Manual) -> None:
    assert len(trial(manual, "consignment", "c").finish().result["sent"]) == 3


def a_carton_is_shipped(manual: Manual) -> None:
    assert "c-1 goes by van" in trial(manual, "carton", "c-1").result


def an_offer_takes_what_comes_first(manual: Manual) -> None:
    assert trial(manual, "offer", {"seconds": 60}).signal("accepted", 5).result == {"accepted": 5}
    assert trial(manual, "offer", {"seconds": 60}).signal("declined", "no").result == {"declined": "no"}
    assert trial(manual, "offer", {"seconds": 60}).finish().result == {"expired": True}


def a_shipment_asks_by_what(manual: Manual) -> None:
    assert "p by van" in trial(manual, "shipment", "p").answer("van").result.replace("goes ", "")


def a_searcher_meets_its_brake(manual: Manual) -> None:
    run = trial(manual, "searcher", "teapots")
    assert run.status == "held" and len(run.calls) == 5
    assert len(run.resume().calls) == 10


def an_enquiry_is_made(manual: Manual) -> None:
    run = trial(manual, "enquiry", {"customer": "c-7"})
    assert run.result == "to c-7: 7 is registered, north has some"


def a_desk_refunds(manual: Manual) -> None:
    page = manual["testing-agents.md"]
    assert testing.run(page.desk, "o-1", tools=page.FAKES).finish().result["refunded"]


def a_greeter_greets(manual: Manual) -> None:
    page = manual["releases.md"]
    said = [testing.run(agent, "Ada", tools=testing.REAL).result for agent in (page.old, page.new)]
    assert said == ["Hello, Ada.", "Good morning, Ada."]


def an_order_clerk_looks_everything_up(manual: Manual) -> None:
    page = manual["model-agents.md"]
    looks = [testing.calls(page.lookup, order_id=f"o-{number}") for number in (1, 2, 3)]
    run = trial(manual, "order-clerk", "Where are they?", model=[looks, "All three are there."])
    assert run.result == "All three are there." and len(run.calls) == 3


def a_complaint_is_settled(manual: Manual) -> None:
    page = manual["model-agents.md"]
    run = trial(manual, "returns", "o-12 never came.", model=[page.LOOK, page.PAY, page.PAID])
    assert run.result["refunded_cents"] == 1_200
    told = next(entry.body["context"] for entry in run.journal if entry.kind == "ATTEMPT")
    assert told == page.today(RunView(run.state_at(1)))


BROUGHT = "bring-your-agent.md"


def a_desk_that_was_brought_calls_its_tools(manual: Manual) -> None:
    run = testing.run(manual[BROUGHT].order_desk, "Where?", tools=manual[BROUGHT].FAKES)
    assert [call.tool for call in run.calls] == ["lookup", "refund", "mail"]
    assert run.status == "done"


def a_careful_desk_asks_first(manual: Manual) -> None:
    run = testing.run(manual[BROUGHT].careful_desk, "Pay them.", tools=testing.REAL)
    assert run.status == "awaiting_approval"
    assert "paid 0 to a" in run.approve("pay_out").result


def a_clerk_that_was_brought_greets(manual: Manual) -> None:
    run = testing.run(manual[BROUGHT].shop_clerk, {"prompt": "Greet them.", "customer": "Ada"}, tools=testing.REAL)
    assert run.result == '{"greet":"Hello, Ada."}'


def a_keeper_that_was_brought_asks_its_server(manual: Manual) -> None:
    run = testing.run(manual[BROUGHT].stock_keeper, "Put it aside.", tools=testing.REAL)
    assert [call.tool for call in run.calls] == ["look_up", "stock:reserve"]
    assert "is put aside" in run.result


SCENARIOS: dict[str, Callable[[Manual], None]] = {
    "reminder": a_reminder_sleeps,
    "parcel": a_parcel_waits_for_its_address,
    "complaint": a_complaint_asks,
    "consignment": a_consignment_spawns_its_cartons,
    "carton": a_carton_is_shipped,
    "offer": an_offer_takes_what_comes_first,
    "shipment": a_shipment_asks_by_what,
    "searcher": a_searcher_meets_its_brake,
    "enquiry": an_enquiry_is_made,
    "desk": a_desk_refunds,
    "greeter": a_greeter_greets,
    "order-clerk": an_order_clerk_looks_everything_up,
    "returns": a_complaint_is_settled,
    "order-desk": a_desk_that_was_brought_calls_its_tools,
    "careful-desk": a_careful_desk_asks_first,
    "shop-clerk": a_clerk_that_was_brought_greets,
    "stock-keeper": a_keeper_that_was_brought_asks_its_server,
}
ON_SERVERS = {"errands"}  # below


def test_no_agent_of_the_manual_goes_untried() -> None:
    elsewhere = {name for name, page in AGENTS.items() if page in (GUIDE, README)}
    assert set(AGENTS) - elsewhere == {*SCENARIOS, *ON_SERVERS}


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_does_what_the_page_says(manual: Manual, name: str) -> None:
    SCENARIOS[name](manual)


@pytest.mark.parametrize(("page", "name", "given"), TESTS, ids=lambda value: str(value))
def test_tests_of_the_manual_pass(manual: Manual, tmp_path: Path, page: str, name: str, given: str) -> None:
    assert given in ("", "tmp_path")
    getattr(manual[page], name)(*([tmp_path] if given else []))


def test_json_is_json() -> None:
    for block in blocks("json"):
        json.loads(block.text)


@pytest.fixture
def crew(dsn: str, manual: Manual, settings: Any) -> Iterator[Crew]:
    settings.HOLDFAST_AGENTS = (manual["choosing-an-effect-class.md"].__name__,)
    agents.cache_clear()
    announce()
    crew = Crew(dsn)
    yield crew
    crew.close()
    agents.cache_clear()


def test_a_service_of_ones_own_acts_once_a_key(manual: Manual, dsn: str) -> None:
    page = manual["choosing-an-effect-class.md"]
    answers = [page.subscribe(dsn, "run:1", "mei@example.com") for _ in range(2)]
    assert answers == [(200, {"subscribed": "mei@example.com"})] * 2
    assert page.subscribe(dsn, "run:1", "ruth@example.com")[0] == 409
    assert page.subscribed(dsn, "run:1") == {"subscribed": "mei@example.com"}
    assert page.subscribed(dsn, "run:2") is None


@pytest.mark.parametrize("fault", ["none", "drop"])
def test_each_class_of_tool_acts_once(
    crew: Crew, manual: Manual, ledger: Ledger, dsn: str, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("SHOP_DATABASE_URL", dsn)
    with tempfile.TemporaryDirectory() as reports:
        monkeypatch.setenv("REPORTS", reports)
        if fault != "none":
            ledger.fault("charge", fault, times=1)
        run_id = start("errands", {"order_id": "o-12"})
        assert crew.drive(run_id).status == "done"
        done = state(run_id).done
        assert done is not None
        assert Path(done["result"]["report"]).read_text() == "charge-1 in, transfer-2 out"
    assert [effect["action"] for effect in ledger.effects()] == ["charge", "transfer"]
