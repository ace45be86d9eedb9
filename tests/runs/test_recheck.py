"""What was approved is compared with what would run, when it is sent: any difference, and nothing runs."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from journal.encoding import encode
from journal.entries import Kind
from runs.errors import AlreadyDecided, DigestMismatch, NotAwaitingApproval
from runs.models import Run
from runs.policies import Policy
from runs.queries import entries_of
from runs.registry import agents
from runs.tools import Tool
from tests.rig.crew import Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.versions import next_version, pin
from tests.runs.policing import approvals, asks, listed, say, sent, the_slot, verdicts
from tests.runs.policing import desk as desk

Change = Callable[[Crew, UUID, pytest.MonkeyPatch], None]


def pay_of(run_id: UUID) -> Tool:
    return agents()[Run.objects.get(id=run_id).release_id].toolbox["pay"]


def other_arguments(desk: Crew, run_id: UUID, patch: pytest.MonkeyPatch) -> None:
    """Behind the journal's back: as whoever owns the database could."""
    call = next(entry for entry in entries_of(run_id) if entry.kind == Kind.TOOL_CALL)
    call.body["args"]["amount_cents"] = 420
    with psycopg.connect(desk.dsn, autocommit=True) as conn:
        conn.execute("SET session_replication_role = replica")
        given = (encode(call.body), run_id, call.seq)
        conn.execute("UPDATE journal_entry SET body = %s WHERE run_id = %s AND seq = %s", given)


def other_code(desk: Crew, run_id: UUID, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pay_of(run_id), "digest", b"other code")


def other_policy(desk: Crew, run_id: UUID, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pay_of(run_id), "approval", lambda args: Policy(quorum=2))


def other_pin(desk: Crew, run_id: UUID, patch: pytest.MonkeyPatch) -> None:
    """The same contract in another version."""
    pin(run_id, next_version(run_id))


CHANGES: list[tuple[Change, str]] = [
    (other_arguments, "the arguments or the tool have changed since it was approved"),
    (other_code, "the arguments or the tool have changed since it was approved"),
    (other_policy, "its policy has changed since it was approved"),
    (other_pin, "the run was pinned to another release since it was approved"),
]


@pytest.mark.parametrize(("change", "why"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
def test_what_changed_after_the_approval_is_asked_for_anew_and_says_why(
    desk: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, change: Change, why: str
) -> None:
    run_id = asks(desk, "pays-by-model")  # of a flow, changed arguments are a divergence before anything else
    say(run_id)
    change(desk, run_id, monkeypatch)
    run = desk.drive(run_id)
    assert run.status == "awaiting_approval" and why in run.reason, run.reason
    assert sent(ledger, run_id) == [] and state(run_id).slots[1].attempts == []
    assert verdicts(run_id) == ["requested", "granted", "requested"]
    assert approvals(run_id)[-1].body["why"] == why and listed(run_id)["granted"] == []
    for approver in ("ada", "max")[: the_slot(run_id).approval.policy.quorum]:  # type: ignore[union-attr]
        say(run_id, actor=approver)
    assert desk.drive(run_id).status == "done" and len(sent(ledger, run_id)) == 1
    attempt = next(entry for entry in entries_of(run_id) if entry.kind == Kind.ATTEMPT and entry.step == 1)
    assert attempt.body["digest"] == approvals(run_id)[-1].body["digest"]


@pytest.mark.parametrize("change", [other_code, other_pin], ids=["code", "pin"])
def test_what_changed_while_it_waits_is_asked_for_anew_when_a_worker_looks(
    desk: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    run_id = asks(desk, quorum=2)
    say(run_id)
    change(desk, run_id, monkeypatch)
    Run.objects.filter(id=run_id).update(status="queued", wake_at=None)
    assert desk.drive(run_id).status == "awaiting_approval"
    assert verdicts(run_id) == ["requested", "granted", "requested"] and listed(run_id)["granted"] == []


def test_a_tool_that_never_says_the_same_twice_runs_never_and_keeps_no_worker(
    desk: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = asks(desk)
    say(run_id)
    ticks = iter(range(1_000_000))
    monkeypatch.setattr(pay_of(run_id), "canonical", lambda args: {"tick": next(ticks)})
    assert desk.drive(run_id).status == "awaiting_approval"
    assert len(verdicts(run_id)) <= 4 and sent(ledger, run_id) == []


def test_an_approval_serves_one_step_only(desk: Crew, ledger: Ledger) -> None:
    run_id = start("pays-side-by-side", {"amounts": [2, 2], "policy": None})
    desk.drive(run_id)
    one, other = state(run_id).unsettled()
    assert one.digest != other.digest, "the same call twice is two digests"
    say(run_id)
    with pytest.raises(DigestMismatch):
        say(run_id, digest=one.digest)
    desk.drive(run_id)
    assert sent(ledger, run_id, 1) == [2] and sent(ledger, run_id, 2) == []
    with pytest.raises(DigestMismatch):
        say(run_id, digest=one.digest)
    say(run_id)
    assert desk.drive(run_id).status == "done"


def test_an_approval_serves_once(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk)
    digest = the_slot(run_id).digest
    say(run_id)
    desk.drive(run_id)
    for _ in range(2):
        with pytest.raises(AlreadyDecided):
            say(run_id, digest=digest)
    assert sent(ledger, run_id) == [400]


def test_a_call_in_doubt_that_is_not_approved_any_more_waits_for_a_person_to_look(
    desk: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have happened: nobody can approve or reject that."""
    ledger.fault("charge", "drop", times=1)
    ledger.fault("status", "fail", times=20)
    run_id = asks(desk)
    say(run_id)
    worker = desk.hire()
    worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    assert state(run_id).slots[1].in_doubt
    other_code(desk, run_id, monkeypatch)
    run = desk.drive(run_id, seconds=60)
    ledger.clear_faults()
    assert run.status == "needs_reconciliation" and "changed since it was approved" in run.reason
    with pytest.raises((AlreadyDecided, NotAwaitingApproval)):
        say(run_id)
