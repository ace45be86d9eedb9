"""Cancel, hold, resume: people's words reach a run whether it waits, sleeps or is under way."""

import threading

import pytest

from runs.commands import cancel_run, hold_run, resume_run
from runs.errors import NotHeld, ReasonMissing, RunEnded
from runs.models import Run
from runs.queries import entries_of
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger, wait_until


def test_a_queued_run_is_cancelled_before_anything_is_sent(crew: Crew, ledger: Ledger) -> None:
    run_id = start("keyed", {})
    cancel_run(run_id=run_id, reason="a mistake", actor="olga")
    assert crew.drive(run_id).status == "cancelled"
    assert journal(run_id) == ["START", "CONTROL", "DONE"]
    assert entries_of(run_id)[-1].body == {"cancelled": "a mistake"}
    with pytest.raises(RunEnded):
        cancel_run(run_id=run_id, reason="again", actor="olga")


def test_a_call_that_waits_for_approval_is_withdrawn(crew: Crew, ledger: Ledger) -> None:
    run_id = start("approval", {"effect": "keyed"})
    crew.drive(run_id)
    cancel_run(run_id=run_id, reason="not needed", actor="olga")
    assert crew.drive(run_id).status == "cancelled"
    assert state(run_id).slots[1].outcome == "cancelled"
    assert ledger.acted(f"{run_id}:1") == 0


def test_a_sleeping_run_is_cancelled_at_once(crew: Crew, ledger: Ledger) -> None:
    run_id = start("sleep", {"seconds": 3600})
    worker = crew.hire()
    worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    assert Run.objects.get(id=run_id).status == "waiting"
    cancel_run(run_id=run_id, reason="enough", actor="olga")
    assert crew.drive(run_id, worker).status == "cancelled"


def test_a_call_under_way_is_awaited_and_told(crew: Crew, ledger: Ledger) -> None:
    run_id = start("slow", {"seconds": 30})
    worker = crew.hire(lease=1.0)
    driving = threading.Thread(target=worker.advance, args=(run_id, Run.objects.get(id=run_id).release_id))
    driving.start()
    wait_until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    cancel_run(run_id=run_id, reason="stop it", actor="olga")
    driving.join(60)
    run = Run.objects.get(id=run_id)
    assert run.status == "cancelled" and state(run_id).slots[1].settled
    assert journal(run_id).count("TOOL_CALL:1") == 1


def test_cancelling_a_call_in_doubt_keeps_the_question(crew: Crew, ledger: Ledger) -> None:
    run_id = start("unkeyed", {})
    ledger.fault("mail", "drop", times=1)
    assert crew.drive(run_id).status == "needs_reconciliation"
    cancel_run(run_id=run_id, reason="enough", actor="olga")
    assert crew.drive(run_id).status == "needs_reconciliation"


def test_a_held_run_goes_on_when_it_is_resumed(crew: Crew, ledger: Ledger) -> None:
    run_id = start("chain", {"steps": 3, "effect": "keyed"})
    hold_run(run_id=run_id, reason="look first", actor="olga")
    run = crew.drive(run_id)
    assert (run.status, run.reason) == ("held", "held by olga: look first")
    resume_run(run_id=run_id, reason="looked", actor="olga")
    assert crew.drive(run_id).status == "done"
    with pytest.raises(RunEnded):
        resume_run(run_id=run_id, reason="again", actor="olga")


def test_what_is_not_held_is_not_resumed_and_a_reason_is_needed(crew: Crew) -> None:
    run_id = start("keyed", {})
    with pytest.raises(NotHeld):
        resume_run(run_id=run_id, reason="why not", actor="olga")
    with pytest.raises(ReasonMissing):
        hold_run(run_id=run_id, reason="  ", actor="olga")
    assert journal(run_id) == ["START"]
