"""What nobody decides in time: when it expires, what the agent hears, how it is asked for anew, who is reminded."""

import time
from typing import Any
from uuid import UUID

import pytest

from journal import crash
from journal.entries import Entry, Kind
from runs.commands import retry_run
from runs.errors import ApprovalExpired
from runs.models import Run
from runs.queries import entries_of, list_intents
from tests.rig.crew import CrashHere, Crew, start
from tests.rig.ledger import Ledger, wait_until
from tests.runs.policing import approvals, asks, listed, result, say, sent, verdicts
from tests.runs.policing import desk as desk

EXACT = 2.0


def expired(run_id: UUID) -> Entry:
    return next(entry for entry in approvals(run_id) if entry.body["verdict"] == "expired")


def late_by(run_id: UUID) -> float:
    return expired(run_id).recorded_at.timestamp() - float(approvals(run_id)[0].body["expires"])


def reminders(run_id: UUID) -> list[int]:
    return [entry.body["reminder"] for entry in entries_of(run_id) if "reminder" in entry.body]


def let_expire(run_id: UUID) -> None:
    """Past the deadline of the first request; nobody drives the run meanwhile."""
    expires = float(approvals(run_id)[0].body["expires"])
    wait_until(lambda: time.time() > expires + 0.01, "it has expired")


def test_a_denying_policy_tells_the_agent_in_time(desk: Crew, ledger: Ledger) -> None:
    run_id = start("pays", {"amount_cents": 2, "policy": {"ttl": 0.5, "on_expiry": "deny"}})
    assert desk.drive(run_id).status == "done"
    assert result(run_id)["outcome"] == "expired" and "nobody approved it in time" in result(run_id)["why"]
    assert 0 <= late_by(run_id) < EXACT and sent(ledger, run_id) == []
    obs = next(entry for entry in entries_of(run_id) if entry.kind == Kind.OBS)
    assert obs.body["outcome"] == "expired" and obs.settles == 1
    with pytest.raises(ApprovalExpired):
        say(run_id)


def test_a_parking_policy_waits_and_says_that_it_expired(desk: Crew, ledger: Ledger) -> None:
    run_id = start("pays", {"amount_cents": 2, "policy": {"ttl": 0.5}})
    run = desk.drive(run_id)
    assert run.status == "awaiting_approval" and "expired at" in run.reason and run.wake_at is None
    assert listed(run_id)["expired"] and listed(run_id)["state"] == "awaiting_approval"
    assert 0 <= late_by(run_id) < EXACT
    for verdict in ("approve", "deny", "edit", "ask"):
        with pytest.raises(ApprovalExpired) as refused:
            say(run_id, verdict, args={"amount_cents": 2})
        assert refused.value.at.timestamp() == pytest.approx(approvals(run_id)[0].body["expires"], abs=0.001)
    assert verdicts(run_id) == ["requested", "expired"]


def test_a_retry_asks_for_it_anew(desk: Crew, ledger: Ledger) -> None:
    run_id = start("pays", {"amount_cents": 2, "policy": {"ttl": 0.5}})
    desk.drive(run_id)
    retry_run(run_id=run_id, reason="they are back from lunch", actor="olga")
    run = desk.advance(run_id)
    assert run.status == "awaiting_approval" and "olga asked for it anew" in run.reason
    say(run_id)
    assert desk.drive(run_id).status == "done" and sent(ledger, run_id) == [2]
    assert verdicts(run_id) == ["requested", "expired", "requested", "granted"]


def test_who_comes_after_the_deadline_is_late_though_no_worker_has_said_so(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, ttl=5.2)
    let_expire(run_id)
    with pytest.raises(ApprovalExpired):
        say(run_id)
    assert verdicts(run_id) == ["requested"]
    (view,) = [view for view in list_intents()[0] if view.run_id == run_id]
    assert view.deadline is not None and view.state == "awaiting_approval"


def test_an_approval_that_was_not_used_in_time_is_asked_for_anew(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, ttl=5.2)
    say(run_id)
    let_expire(run_id)
    run = desk.advance(run_id)
    assert run.status == "awaiting_approval" and "before the call could be sent" in run.reason
    assert sent(ledger, run_id) == [] and verdicts(run_id) == ["requested", "granted", "requested"]
    say(run_id, actor="max")
    assert desk.drive(run_id).status == "done" and sent(ledger, run_id) == [400]


def test_an_approval_that_was_used_does_not_expire(desk: Crew, ledger: Ledger) -> None:
    """The call was sent in time and surely did nothing; it is tried again later."""
    ledger.fault("charge", "rate_limit", times=1, retry_after=1)
    run_id = start("pays", {"amount_cents": 2, "policy": {"ttl": 0.9}})
    desk.advance(run_id)
    say(run_id)
    assert desk.drive(run_id).status == "done" and sent(ledger, run_id) == [2]
    assert verdicts(run_id) == ["requested", "granted"]


@pytest.mark.parametrize("policy", [{"on_expiry": "deny"}, {}], ids=["deny", "park"])
def test_of_a_decision_and_the_deadline_one_wins(desk: Crew, ledger: Ledger, policy: dict[str, Any]) -> None:
    """Somebody decides in the very moment in which the worker writes that it expired."""
    run_id = start("pays", {"amount_cents": 2, "policy": {"ttl": 0.6} | policy})
    assert desk.advance(run_id).status == "awaiting_approval"
    let_expire(run_id)
    refused = []

    def decide(name: str) -> None:
        if name == "before-approval":
            crash.hook = None
            with pytest.raises(ApprovalExpired) as late:
                say(run_id)
            refused.append(late)

    crash.hook = decide
    desk.advance(run_id)
    crash.hook = None
    assert refused and verdicts(run_id) == ["requested", "expired"]


def test_a_decision_just_in_time_beats_a_worker_whose_clock_is_ahead(
    desk: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = asks(desk, ttl=60, on_expiry="deny")
    worker = desk.standing
    assert worker is not None
    monkeypatch.setattr(type(worker.session), "now", lambda session: time.time() + 90)

    def decide(name: str) -> None:
        if name == "before-approval":
            crash.hook = None
            say(run_id)

    crash.hook = decide
    Run.objects.filter(id=run_id).update(status="queued", wake_at=None)
    worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    crash.hook = None
    assert verdicts(run_id) == ["requested", "granted", "requested"], "the grant came first, and is late by this clock"
    assert not any(entry.kind == Kind.OBS for entry in entries_of(run_id)) and sent(ledger, run_id) == []


def test_it_is_reminded_of_once_for_each_time_whatever_crashes(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, remind_every=1)
    assert listed(run_id)["reminders"] == 0
    at = Run.objects.get(id=run_id).wake_at
    assert at is not None and at.timestamp() == pytest.approx(time.time() + 1, abs=1.2)
    for point in ("before-note", "after-note"):
        wait_for_wake(run_id)
        crash.hook = lambda name, point=point: die_at(name, point)  # type: ignore[misc]
        worker = desk.hire()
        with pytest.raises(CrashHere):
            worker.advance(run_id, Run.objects.get(id=run_id).release_id)
        crash.hook = None
        desk.lose(worker)
    desk.advance(run_id)
    found = reminders(run_id)
    assert found and found == sorted(set(found)), found
    assert listed(run_id)["reminders"] == found[-1]
    say(run_id)
    assert desk.drive(run_id).status == "done"


def die_at(name: str, point: str) -> None:
    if name == point:
        raise CrashHere


def wait_for_wake(run_id: UUID) -> None:
    def due() -> bool:
        run = Run.objects.get(id=run_id)
        return run.wake_at is None or run.wake_at.timestamp() <= time.time()

    wait_until(due, "it wakes")


def test_reminders_that_nobody_could_write_are_one(desk: Crew, ledger: Ledger) -> None:
    run_id = asks(desk, remind_every=1)
    asked = approvals(run_id)[0].recorded_at.timestamp()
    wait_until(lambda: time.time() > asked + 2.1, "two are due")
    desk.advance(run_id)
    assert len(reminders(run_id)) == 1 and reminders(run_id)[0] >= 2
