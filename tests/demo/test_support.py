"""The support agent in memory: the real engine and the real client, over HTTP with the scripted model."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from demo import model
from demo.agents.support import support
from demo.payments.orders import FIRST, LAST, history_of, order_named
from demo.support_model import quickly
from runs import testing
from runs.sdk import PermanentError
from runs.testing import Trial
from tests.rig.providers import Providers
from tests.rig.providers import providers as providers

TODAY = datetime.now(UTC).date()
BROKEN, MISSING = "It came broken. Please pay me back.", "My parcel has never arrived. Where is it?"
SMALL, LARGE = "o-12", "o-1"  # 45.84 and 171.74; the limit is 50.00


def look_up(order_id: str) -> dict[str, Any]:
    order = order_named(order_id)
    if order is None:
        raise PermanentError("There is no such order.")
    return order


def pay(order_id: str, amount_cents: int, reason: str) -> dict[str, Any]:
    return {"id": "refund-1", "order_id": order_id, "amount_cents": amount_cents, "at": "2027-01-01"}


TOOLS: dict[str, Any] = {
    "look_up_order": look_up,
    "order_history": lambda order_id: history_of(order_id, TODAY),
    "refund": pay,
    "send_mail": {"id": "mail-1", "to": "mei@example.com", "at": "2027-01-01"},
    "add_note": {"id": "note-1", "ticket": "t", "at": "2027-01-01"},
}


@pytest.fixture(autouse=True)
def scripted(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    providers.script(model.SCRIPTED, quickly)
    monkeypatch.setenv(model.URL, providers.anthropic_url)
    monkeypatch.setenv(model.KEY, "scripted")
    yield providers


def ticket(order_id: str, text: str = BROKEN, **other: str) -> dict[str, str]:
    order = order_named(order_id)
    return {"customer": order["email"] if order else "mei@example.com", "order_id": order_id, "text": text} | other


def order_where(what: str) -> str:
    """The first order whose history ends so."""
    named = (f"o-{number}" for number in range(FIRST, LAST + 1))
    return next(order for order in named if history_of(order, TODAY)[-1]["what"] == what)


def handled(given: dict[str, str], tools: dict[str, Any] = TOOLS, **more: Any) -> Trial:
    return testing.run(support, given, tools=tools, model=testing.REAL, **more)


def tools_called(run: Trial) -> list[str]:
    return [slot.tool for slot in run.calls]


def letters(run: Trial) -> list[str]:
    return [slot.args["body"] for slot in run.calls if slot.tool == "send_mail"]


def corrections(run: Trial) -> list[dict[str, Any]]:
    plans = [entry.body for entry in run.journal if entry.kind == "PLAN"]
    return [reply for plan in plans for reply in plan.get("replies", ()) if reply["outcome"] == "retried"]


def slipping(tool: str) -> dict[str, str]:
    """A ticket whose model gives `tool` wrong arguments at first."""
    for number in range(100):
        given = ticket(SMALL, f"{BROKEN} This is letter {number}.")
        if any(reply["tool"] == tool for reply in corrections(handled(given))):
            return given
    raise AssertionError(f"no ticket makes it give {tool} wrong arguments")


def test_it_looks_up_both_at_once_pays_back_writes_and_ends_with_its_result() -> None:
    run = handled(ticket(SMALL))
    assert run.result["resolved"] is True and run.result["refunded_cents"] == 4584
    assert tools_called(run) == ["look_up_order", "order_history", "refund", "send_mail", "add_note"]
    assert corrections(run) == [] and len([entry for entry in run.journal if entry.kind == "PLAN"]) == 4
    assert run.state.plan[-1].get("decided") and not any("next" in item for item in run.state.plan)


def test_only_the_broken_item_is_paid_back() -> None:
    run = handled(ticket(SMALL, "The chess set came broken."))
    assert run.result["refunded_cents"] == 2292


def test_a_large_refund_waits_for_a_person_and_then_happens_once() -> None:
    run = handled(ticket(LARGE))
    assert run.status == "awaiting_approval" and "171.74" in (run.calls[-1].body.get("summary") or "")
    run.approve()
    assert run.result["refunded_cents"] == 17174
    run.assert_once("refund")


def test_a_refusal_reaches_the_model_with_the_persons_reason_and_a_voucher_goes_out() -> None:
    run = handled(ticket(LARGE))
    run.deny(note="two refunds within a month")
    assert run.result["refunded_cents"] == 0 and "voucher" in letters(run)[0]
    assert "two refunds within a month" in run.calls[-1].args["text"]
    assert tools_called(run).count("refund") == 1


def test_what_a_person_changed_is_what_was_paid() -> None:
    run = handled(ticket(LARGE))
    refund = run.calls[-1]
    run.edit({**refund.args, "amount_cents": 1_000}).approve(by="somebody else")
    assert run.result["refunded_cents"] == 1_000


@pytest.mark.parametrize(
    ("what", "paid", "said"),
    [("lost", True, "paid"), ("delayed", False, "on its way"), ("delivered", False, "handed over")],
)
def test_a_missing_parcel_is_judged_by_its_history(what: str, paid: bool, said: str) -> None:
    run = handled(ticket(order_where(what), MISSING), approve=True)
    assert (run.result["refunded_cents"] > 0) is paid
    assert said in letters(run)[0]


def test_an_order_is_not_paid_back_twice() -> None:
    before = [{"what": "refunded", "day": "2027-01-01", "note": "45.84 paid back."}]
    run = handled(ticket(SMALL), TOOLS | {"order_history": before})
    assert run.result["refunded_cents"] == 0 and "2027-01-01" in letters(run)[0]


@pytest.mark.parametrize(
    "given",
    [ticket(SMALL, customer="somebody@example.net"), ticket("o-1000"), ticket(SMALL) | {"order_id": ""}],
    ids=["another's", "unknown", "unnumbered"],
)
def test_of_an_order_that_is_not_the_customers_nothing_is_said_or_paid(given: dict[str, str]) -> None:
    run = handled(given)
    assert run.result["resolved"] is False and "refund" not in tools_called(run)
    assert len(letters(run)) == 1 and "Chess set" not in letters(run)[0]


@pytest.mark.parametrize("tool", ["look_up_order", "refund"])
def test_wrong_arguments_go_back_to_the_model_and_nothing_is_called_with_them(tool: str) -> None:
    run = handled(slipping(tool))
    assert run.result["refunded_cents"] == 4584
    assert [reply["tool"] for reply in corrections(run)].count(tool) == 1
    assert tools_called(run).count(tool) == 1


def test_what_the_customer_adds_before_the_approval_is_in_the_letter() -> None:
    run = handled(ticket(LARGE)).signal("message", "It was a present.").approve()
    assert len(letters(run)) == 1 and "It was a present." in letters(run)[0]


def test_a_parcel_that_has_arrived_after_all_needs_no_voucher() -> None:
    lost = next(
        order for order in map("o-{}".format, range(FIRST, LAST + 1))
        if look_up(order)["total_cents"] > 5_000 and history_of(order, TODAY)[-1]["what"] == "lost"
    )  # fmt: skip
    run = handled(ticket(lost, MISSING)).signal("message", "It has arrived after all.").deny(note="it was found")
    assert run.result == {
        "resolved": True, "refunded_cents": 0,
        "summary": f"It has arrived after all: no refund. {given_name(run)} was told by mail.",
    }  # fmt: skip
    assert "voucher" not in letters(run)[0]


def given_name(run: Trial) -> str:
    return str(run.state.input["customer"]).partition(".")[0].title()


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error", "cut", "garbage"])
def test_a_provider_that_fails_is_asked_again(scripted: Providers, kind: str) -> None:
    scripted.fault(kind, model=model.SCRIPTED, turn=1, times=2)
    run = handled(ticket(SMALL))
    assert run.result["refunded_cents"] == 4584
    assert run.story.count("ERROR") == 2
    run.assert_once("refund")


def test_no_crash_anywhere_pays_twice_or_asks_for_an_answer_twice(scripted: Providers) -> None:
    report = testing.crash_everywhere(support, ticket(LARGE), tools=TOOLS, model=testing.REAL, approve=True)
    assert len(report.points) > 30
