"""Deadlines: a run that has not ended in time is cancelled, whatever it waits for."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recovery.sweep import Sweep
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger, wait_until


@pytest.fixture
def crew(crew: Crew, settings: Any) -> Crew:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited", "tests.rig.agents")
    agents.cache_clear()
    announce()
    return crew


@pytest.fixture
def sweep(crew: Crew) -> Iterator[Sweep]:
    sweep = Sweep(crew.dsn, lease=0.0, every=2.0, dispatch=crew.take)
    yield sweep
    sweep.close()


def test_a_sleeping_run_is_cancelled_at_its_deadline_and_says_so(crew: Crew, sweep: Sweep) -> None:
    run_id = start("late")
    due = Run.objects.get(id=run_id).deadline_at
    assert due is not None and crew.advance(run_id).status == "waiting"
    wait_until(lambda: sweep.once() and Run.objects.get(id=run_id).status == "queued", "its deadline passes")
    assert crew.drive(run_id).status == "cancelled"
    cancel = next(e for e in entries_of(run_id) if e.kind == "CONTROL")
    assert (cancel.actor, cancel.body["verb"]) == ("system", "cancel")
    assert cancel.body["reason"] == f"its deadline of {due.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC has passed"
    assert (cancel.recorded_at - due).total_seconds() < 20


def test_the_sweep_wakes_for_a_deadline_within_its_pause(crew: Crew, sweep: Sweep) -> None:
    sweep.once()
    run_id = start("sleep", {"seconds": 3600}, deadline=datetime.now(UTC) + timedelta(seconds=0.5))
    assert sweep.pause() <= 0.5
    crew.advance(run_id)
    sweeping = threading.Thread(target=sweep.run)
    sweeping.start()
    wait_until(lambda: Run.objects.get(id=run_id).status == "queued", "it is cancelled")
    sweep.stopping.set()
    sweeping.join(60)


def test_a_call_under_way_hears_of_it_and_is_awaited(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    run_id = start("slow", {"seconds": 30}, deadline=0.5)
    worker = crew.hire(lease=1.0)
    driving = threading.Thread(target=worker.advance, args=(run_id, Run.objects.get(id=run_id).release_id))
    driving.start()
    wait_until(lambda: sweep.once() or "CONTROL" in journal(run_id), "its deadline passes")
    driving.join(60)
    assert Run.objects.get(id=run_id).status == "cancelled"
    assert journal(run_id) == ["START", "PLAN", "TOOL_CALL:1", "CONTROL", "OBS:1", "DONE"]


def test_it_is_cancelled_once_though_it_cannot_end(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    ledger.fault("mail", "drop", times=1)
    run_id = start("unkeyed", deadline=0.3)
    assert crew.drive(run_id).status == "needs_reconciliation"
    wait_until(lambda: sweep.once() or "CONTROL" in journal(run_id), "its deadline passes")
    assert crew.drive(run_id).status == "needs_reconciliation", "the question stays"
    for _ in range(3):
        sweep.once()
    assert journal(run_id).count("CONTROL") == 1


def test_one_that_ends_in_time_is_left_alone(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    run_id = start("keyed", deadline=0.3)
    assert crew.drive(run_id).status == "done"
    due = Run.objects.get(id=run_id).deadline_at
    assert due is not None
    wait_until(lambda: datetime.now(UTC) > due, "the deadline passes")
    sweep.once()
    assert journal(run_id)[-1] == "DONE"
