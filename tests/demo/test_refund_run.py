"""The refund desk as a run: on the real database, against the real service."""

from uuid import UUID

from runs.approvals import decide_approval
from runs.sdk import start
from tests.rig.crew import Crew, state
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS

SMALL, LARGE = {"order_id": "o-12"}, {"order_id": "o-1"}  # 45.84 and 171.74; the limit is 50.00


def acted(ledger: Ledger) -> list[tuple[str, str]]:
    return sorted((effect["action"], effect["key"].rpartition(":")[2]) for effect in ledger.effects())


def answer(run_id: UUID, verdict: str) -> None:
    slot = state(run_id).slots[2]
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict=verdict, digest=slot.digest, note="seen", actor="ada", groups=APPROVERS
    )


def test_a_small_refund_goes_through_by_itself(desk: Crew, ledger: Ledger) -> None:
    run = desk.drive(start("refund-desk", SMALL))
    assert run.status == "done"
    assert acted(ledger) == [("mail", "3"), ("mail", "4"), ("refund", "2")]


def test_a_large_refund_waits_for_approval_and_then_happens_once(desk: Crew, ledger: Ledger) -> None:
    run_id = start("refund-desk", LARGE)
    assert desk.drive(run_id).status == "awaiting_approval"
    assert acted(ledger) == []
    answer(run_id, "approve")
    assert desk.drive(run_id).status == "done"
    assert acted(ledger) == [("mail", "3"), ("mail", "4"), ("refund", "2")]


def test_a_denied_refund_ends_the_run_without_effect(desk: Crew, ledger: Ledger) -> None:
    run_id = start("refund-desk", LARGE)
    desk.drive(run_id)
    answer(run_id, "deny")
    assert desk.drive(run_id).status == "done"
    assert state(run_id).done == {"result": {"refunded": False, "why": state(run_id).slots[2].error}}
    assert acted(ledger) == []


def test_answers_lost_on_the_way_do_not_repeat_anything(desk: Crew, ledger: Ledger) -> None:
    ledger.fault("*", "drop", times=3)
    run_id = start("refund-desk", SMALL)
    assert desk.drive(run_id).status == "done"
    assert acted(ledger) == [("mail", "3"), ("mail", "4"), ("refund", "2")]


def test_an_unknown_order_fails_the_run_and_says_why(desk: Crew, ledger: Ledger) -> None:
    run = desk.drive(start("refund-desk", {"order_id": "o-0"}))
    assert run.status == "failed"
    assert "There is no such order." in run.reason
