"""Two forks that come to the same call at once: one is sent without a person's word, or none; never both."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from journal import crash
from recovery.forking import fork_run
from runs.approvals import decide_approval
from runs.commands import cancel_run
from runs.models import Run
from tests.crash.proof import assert_whole
from tests.rig.crew import Crew, journal, start, state
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS


def two_forks() -> tuple[UUID, UUID]:
    """Of a run that was cancelled before it did anything."""
    run_id = start("chain", {"steps": 1, "effect": "keyed"})
    cancel_run(run_id=run_id, reason="wrong order", actor="olga")
    return forked(run_id), forked(run_id)


def forked(run_id: UUID) -> UUID:
    return fork_run(run_id=run_id, at=1, reason="once more", actor="olga").id


def approve(run_id: UUID) -> None:
    approval, seq = state(run_id).slots[1].approval, state(run_id).slots[1].seq
    assert approval is not None
    decide_approval(
        run_id=run_id, seq=seq, verdict="approve", digest=approval.digest, note="", actor="ada", groups=APPROVERS
    )


def sent(ledger: Ledger, *runs: UUID) -> list[int]:
    return [ledger.acted(slot.key) for run_id in runs for slot in state(run_id).slots.values()]


def stopped_at(crew: Crew, run_id: UUID, point: str) -> tuple[threading.Thread, threading.Event]:
    """A worker that stands still at this point until the event is set."""
    there, on = threading.Event(), threading.Event()
    worker = crew.hire()

    def hook(name: str) -> None:
        if threading.current_thread() is thread and name == point:
            there.set()
            assert on.wait(30)

    release = Run.objects.get(id=run_id).release_id
    thread = threading.Thread(target=lambda: worker.advance(run_id, release))
    crash.hook = hook
    thread.start()
    assert there.wait(30)
    return thread, on


@pytest.mark.parametrize(("point", "after"), [("after-intent", [0, 0]), ("before-attempt", [1, 0])])
def test_one_stands_still_between_its_intent_and_its_send_while_the_other_comes(
    crew: Crew, ledger: Ledger, point: str, after: list[int]
) -> None:
    one, other = two_forks()
    thread, on = stopped_at(crew, one, point)
    assert crew.drive(other).status == "awaiting_approval"
    assert sent(ledger, one, other) == [0, 0]
    on.set()
    thread.join(30)
    crash.hook = None
    crew.drive(one)
    assert sent(ledger, one, other) == after
    for run_id in (one, other):
        if Run.objects.get(id=run_id).status == "awaiting_approval":
            approve(run_id)
            crew.drive(run_id)
    while waiting := [run_id for run_id in (one, other) if Run.objects.get(id=run_id).status == "awaiting_approval"]:
        approve(waiting[0])  # it was granted before the other's succeeded
        crew.drive(waiting[0])
    assert sent(ledger, one, other) == [1, 1], (journal(one), journal(other))


@pytest.mark.slow
def test_many_pairs_of_forks_race_on_two_processes(fleet: Fleet, ledger: Ledger) -> None:
    pairs = [two_forks() for _ in range(8)]
    fleet.sweeper()
    fleet.worker()
    fleet.worker()
    for pair in pairs:
        fleet.until(lambda: all(rests(run_id) for run_id in pair), "both forks rest")  # noqa: B023
        assert sum(sent(ledger, *pair)) <= 1, [journal(run_id) for run_id in pair]
        assert {Run.objects.get(id=run_id).status for run_id in pair} <= {"done", "awaiting_approval"}
    for pair in pairs:
        for run_id in pair:
            assert_whole(run_id)
        parked = [run_id for run_id in pair if Run.objects.get(id=run_id).status == "awaiting_approval"]
        approve(parked[0])
        fleet.until(lambda: rests(parked[0]), "it goes on")  # noqa: B023
        if Run.objects.get(id=parked[0]).status == "awaiting_approval":  # what it named has acted since: asked anew
            assert sent(ledger, parked[0]) == [0]
            approve(parked[0])
            fleet.until(lambda: rests(parked[0]), "it goes on, as its relative stands by now")  # noqa: B023
        assert sent(ledger, parked[0]) == [1]


def rests(run_id: UUID) -> bool:
    run = Run.objects.get(id=run_id)
    return run.session_id is None and run.status in ("done", "awaiting_approval")
