"""Killed around a PIN, workers of both versions at work: the run ends once, under one release, with no effect twice."""

import signal

import pytest

from recovery.models import Replay
from runs.commands import signal_run
from runs.models import Run
from runs.queries import entries_of
from tests.rig.rollout import Rollout
from tests.rig.rollout import rollout as rollout

BEFORE, AFTER = ("before-pin",), ("after-pin", "before-message", "after-message")


@pytest.mark.slow
@pytest.mark.parametrize("point", [*BEFORE, *AFTER])
def test_whoever_moves_it_killed(rollout: Rollout, point: str) -> None:
    """Before the commit nothing has happened, and it may be said again; after it the sweep does the rest."""
    rollout.fleet.sweeper()
    for version in ("7", "8"):
        rollout.worker(version)
    run_id = rollout.waiting()
    mover = rollout.pin(run_id, crash=point)
    assert mover.dies() == -signal.SIGKILL, mover.said()
    assert rollout.is_moved(run_id) == (point in AFTER)
    if point in BEFORE:
        assert rollout.pin(run_id).dies() == 0
    assert rollout.is_moved(run_id)
    rollout.goes_on(run_id)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after-replay-taken", "before-replay-written"])
def test_the_worker_that_judges_it_killed(rollout: Rollout, point: str) -> None:
    rollout.fleet.sweeper()
    rollout.worker("7")
    judge = rollout.worker("8", crash=point)
    run_id = rollout.waiting()
    mover = rollout.pin(run_id)
    rollout.fleet.bury(judge)
    assert not rollout.is_moved(run_id)
    rollout.worker("8")
    assert mover.dies() == 0, mover.said()
    assert rollout.is_moved(run_id) and Replay.objects.count() == 1
    rollout.goes_on(run_id)


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    ["before-claim", "after-claim", "before-let-go", "before-intent", "after-intent", "before-effect", "after-effect",
     "before-outcome", "after-outcome", "before-done", "after-done"],
)  # fmt: skip
def test_the_worker_that_takes_it_killed(rollout: Rollout, point: str) -> None:
    """Once it is moved, a worker of the old version never has it again, whoever dies."""
    rollout.fleet.sweeper()
    rollout.worker("7")
    run_id = rollout.waiting()
    victim = rollout.worker("8", crash=point)
    assert rollout.pin(run_id).dies() == 0
    signal_run(run_id=run_id, name="go", actor="olga")
    rollout.fleet.bury(victim)
    rollout.worker("8")
    run = rollout.fleet.rests(run_id)
    assert (run.status, entries_of(run_id)[-1].body) == ("done", {"result": 8})
    assert [rollout.charged(run_id, step) for step in (1, 3)] == [[7], [8]]
    assert rollout.is_moved(run_id)


@pytest.mark.slow
def test_a_run_whose_worker_has_died_is_moved_and_goes_on_there(rollout: Rollout) -> None:
    """Its session has ended without letting it go: nobody drives it, and it is taken over under the new release."""
    victim = rollout.worker("7", crash="after-claim:2")
    run_id = rollout.waiting()
    signal_run(run_id=run_id, name="go", actor="olga")
    rollout.fleet.bury(victim)
    assert Run.objects.get(id=run_id).status == "running"
    rollout.worker("8")
    assert rollout.pin(run_id).dies() == 0
    rollout.fleet.sweeper()
    run = rollout.fleet.rests(run_id)
    assert (run.status, entries_of(run_id)[-1].body, run.epoch) == ("done", {"result": 8}, 3)
    assert [rollout.charged(run_id, step) for step in (1, 3)] == [[7], [8]]
    assert any(entry.kind == "NOTE" and entry.body["text"] == "taken over" for entry in entries_of(run_id))
