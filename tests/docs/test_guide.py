"""The agents of the guide do what the guide says."""

import asyncio
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from journal.payloads import payload_store
from runs.approvals import decide_approval
from runs.errors import BadInput
from runs.models import Run
from runs.registry import agents, announce
from runs.rest import answers
from runs.tools import Cancelled, ToolContext
from tests.docs.manual import blocks
from tests.docs.modules import AGENTS
from tests.rig.crew import Crew, journal, start, state
from tests.rig.fixtures import own_ledger as own_ledger
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS

GUIDE = "".join(block.text for block in blocks("python") if block.page.name == "writing-agents.md")


@pytest.fixture
def guide(tmp_path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[ModuleType]:  # type: ignore[no-untyped-def]
    (tmp_path / "guide.py").write_text(GUIDE)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.HOLDFAST_AGENTS = ("guide",)
    agents.cache_clear()
    payload_store.cache_clear()
    yield importlib.import_module("guide")
    agents.cache_clear()
    del sys.modules["guide"]


@pytest.fixture
def crew(dsn: str, guide: ModuleType) -> Iterator[Crew]:
    announce()
    crew = Crew(dsn)
    yield crew
    crew.close()


def test_a_flow_waits_for_approval_and_calls_side_by_side(crew: Crew, ledger: Ledger) -> None:
    run_id = start("pay-back", {"order_id": "o-1"})
    assert crew.drive(run_id).status == "awaiting_approval"
    slot = state(run_id).slots[2]
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
    )
    assert crew.drive(run_id).status == "done"
    assert state(run_id).done["result"]["transfers"] == ["savings", "charity"]  # type: ignore[index]
    assert "TIMER:3" in journal(run_id)


def test_a_denied_call_is_the_flows_answer(crew: Crew, ledger: Ledger) -> None:
    run_id = start("pay-back", {"order_id": "o-1"})
    crew.drive(run_id)
    slot = state(run_id).slots[2]
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict="deny", digest=slot.digest, note="too much", actor="ada", groups=APPROVERS
    )
    crew.drive(run_id)
    assert state(run_id).done == {"result": {"paid": False, "why": "denied: too much"}}


def test_its_probe_finds_a_transfer_whose_answer_was_lost(crew: Crew, ledger: Ledger, guide: ModuleType) -> None:
    ctx = ToolContext("key-1", None, 1, 1, 0.0, Cancelled())  # type: ignore[arg-type]
    assert guide.find_transfer(ctx, to="savings", amount_cents=1) == guide.Absent()
    done = guide.transfer(ctx, to="savings", amount_cents=1)
    found = guide.find_transfer(ctx, to="savings", amount_cents=1)
    assert found.result["id"] == done["id"]


@pytest.mark.parametrize(("number", "status"), [("12", "done"), ("twelve", "failed"), ("99", "needs_reconciliation")])
def test_a_decide_agent_hears_what_became_of_its_call(crew: Crew, number: str, status: str) -> None:
    assert crew.drive(start("caller", {"number": number})).status == status


def test_a_tool_that_surely_did_nothing_is_tried_again(crew: Crew) -> None:
    run_id = start("caller", {"number": "01"})
    crew.hire().advance(run_id, Run.objects.get(id=run_id).release_id)
    run = Run.objects.get(id=run_id)
    assert (run.status, journal(run_id)[-1]) == ("waiting", "ERROR:1")


def test_a_model_answers_and_is_asked_once_a_decision(crew: Crew, ledger: Ledger) -> None:
    run_id = start("clerk")
    assert crew.drive(run_id).status == "done"
    assert state(run_id).done == {"result": "The order comes to 4584 cents."}
    assert (journal(run_id).count("ATTEMPT"), state(run_id).usage) == (2, {"tokens": 200})


@pytest.mark.parametrize(("order", "size"), [("o-12", "small"), ("o-1", "large")])
def test_a_stateless_agent_answers_without_a_journal(crew: Crew, ledger: Ledger, order: str, size: str) -> None:
    run_id = start("classify", order)
    run = crew.drive(run_id)
    assert (run.status, answers.run_detail(run).result, journal(run_id)) == ("done", size, [])


def test_what_an_agent_does_not_take_is_refused_by_its_path(crew: Crew, ledger: Ledger) -> None:
    with pytest.raises(BadInput, match=r"input\.order_id: It is missing"):
        start("parcels", {"express": True})
    run_id = start("parcels", {"order_id": "o-1", "express": True})
    assert crew.drive(run_id).status == "done"


def test_a_function_of_the_project_acts_for_a_run_and_for_others(crew: Crew, guide: ModuleType) -> None:
    run_id = start("credits", "ada")
    assert crew.drive(run_id).status == "done"
    assert state(run_id).done == {"result": f"12.50 booked as {run_id}:1"}
    assert guide.credit("ada", 5) == guide.book_credit("ada", 5) == "5 booked as by hand for ada"


def test_async_code_starts_runs_too(crew: Crew, guide: ModuleType) -> None:
    assert asyncio.run(guide.order_arrived_async("o-12")) == str(Run.objects.get(request_key="order-o-12").id)


def test_every_agent_of_the_guide_is_run_here() -> None:
    assert {name for name, page in AGENTS.items() if page == "writing-agents.md"} == {
        "pay-back", "caller", "clerk", "classify", "credits", "parcels",
    }  # fmt: skip


def test_the_same_request_key_starts_one_run(crew: Crew, guide: ModuleType) -> None:
    assert guide.order_arrived("o-12") == guide.order_arrived("o-12")
