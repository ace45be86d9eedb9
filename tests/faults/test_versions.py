"""E13: no worker serves the pinned version. E16, the tool's version: see tests/runs/test_recheck.py and test_pin.py."""

import signal

import pytest
from django.test import Client

from runs.commands import cancel_run, signal_run
from runs.models import Release, Run
from runs.queries import entries_of
from tests.crash.proof import assert_whole
from tests.rig.crew import start
from tests.rig.rollout import Rollout
from tests.rig.rollout import rollout as rollout

STRANDED = "waits for a worker that serves {}@7"


def stranded(rollout: Rollout, agent: str = "moved") -> Run:
    """A run of version 7 that has something to do; version 7 was stopped, version 8 started."""
    rollout.fleet.sweeper()
    old = rollout.worker("7")
    run_id = rollout.waiting(agent)
    old.send(signal.SIGTERM)
    assert old.dies() == 0, old.said()
    rollout.worker("8")
    signal_run(run_id=run_id, name="go", actor="olga")
    runs = Run.objects.filter(id=run_id, status="waiting_for_version")
    rollout.fleet.until(runs.exists, "it is stranded")
    return runs.get()


def metric(rollout: Rollout) -> str:
    """As /metrics tells it."""
    lines = Client().get("/metrics").content.decode().splitlines()
    return next(line for line in lines if line.startswith("holdfast_runs_stranded"))


@pytest.mark.slow
def test_e13_another_version_leaves_it_alone_and_it_says_what_it_waits_for_and_since_when(rollout: Rollout) -> None:
    run = stranded(rollout)
    before = [(entry.seq, entry.kind) for entry in entries_of(run.id)]
    assert run.reason == STRANDED.format("moved") and run.session_id is None
    assert metric(rollout) == "holdfast_runs_stranded 1.0"
    other = start("moved", release="8")  # the new version's worker is there, and works
    assert rollout.fleet.rests(other).status == "waiting"
    still = Run.objects.get(id=run.id)
    assert (still.status, still.since, still.epoch) == ("waiting_for_version", run.since, run.epoch)
    assert [(entry.seq, entry.kind) for entry in entries_of(run.id)] == before
    assert rollout.charged(run.id, 3) == []


@pytest.mark.slow
def test_e13_the_first_way_out_is_a_worker_of_its_version(rollout: Rollout) -> None:
    run = stranded(rollout)
    rollout.worker("7")
    assert rollout.fleet.rests(run.id).status == "done"
    assert [rollout.charged(run.id, step) for step in (1, 3)] == [[7], [7]] and not rollout.is_moved(run.id)
    assert metric(rollout) == "holdfast_runs_stranded 0.0"


@pytest.mark.slow
def test_e13_the_second_is_to_move_it(rollout: Rollout) -> None:
    run = stranded(rollout)
    mover = rollout.pin(run.id)
    assert mover.dies() == 0, mover.said()
    assert rollout.fleet.rests(run.id).status == "done"
    assert [rollout.charged(run.id, step) for step in (1, 3)] == [[7], [8]] and rollout.is_moved(run.id)
    pin = next(entry for entry in entries_of(run.id) if entry.kind == "PIN")
    assert pin.body["verdict"] == "compatible" and pin.body["reason"] == "v7 is wrong"


@pytest.mark.slow
def test_e13_the_third_is_to_cancel_it(rollout: Rollout) -> None:
    """To stop needs no code of its agent."""
    run = stranded(rollout)
    cancel_run(run_id=run.id, reason="not worth it", actor="olga")
    ended = rollout.fleet.rests(run.id)
    assert ended.status == "cancelled" and rollout.charged(run.id, 3) == []
    done = entries_of(run.id)[-1]
    assert (done.kind, done.body, done.actor) == ("DONE", {"cancelled": "not worth it"}, "system")
    assert_whole(run.id)
    assert metric(rollout) == "holdfast_runs_stranded 0.0"


@pytest.mark.slow
def test_e13_it_takes_no_place_among_the_runs_in_flight(rollout: Rollout) -> None:
    """Both versions are limited to one run at a time."""
    run = stranded(rollout, "limited")
    Run.objects.filter(id=run.id).update(over_limit=False)
    other = start("limited", release="8")
    assert rollout.fleet.rests(other).status == "waiting"
    assert Run.objects.get(id=run.id).status == "waiting_for_version"
    assert Release.objects.filter(agent="limited").count() == 2
