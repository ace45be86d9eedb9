"""Killed at the points that a plain send does not pass: probes, findings, timers, the system's controls, messages."""

import signal
from uuid import UUID

import pytest

from runs.models import Run
from runs.queries import entries_of
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

WITH_PROBE = ("keyed-probe", "probed")


def in_doubt(fleet: Fleet, effect: str, point: str) -> UUID:
    """A run whose worker is dead and buried."""
    first = fleet.worker(crash=point)
    run_id = start(effect, {})
    fleet.bury(first)
    return run_id


@pytest.mark.slow
@pytest.mark.parametrize("acted", ["before-effect", "after-effect"])
@pytest.mark.parametrize("point", ["before-probe", "after-probe"])
def test_killed_while_probing(fleet: Fleet, ledger: Ledger, point: str, acted: str) -> None:
    fleet.environment["HOLDFAST_LEASE_SECONDS"] = "60"
    fleet.sweeper()
    runs, victims = [], []
    for effect in WITH_PROBE:
        runs.append(in_doubt(fleet, effect, acted))
        victims.append(fleet.worker(crash=point))
        victims[-1].dies()
    for victim in victims:
        fleet.bury(victim)
    fleet.worker()
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id))
        assert ledger.calls(f"{run_id}:1") == 1, "what a probe has found, or can still find, is not sent again"


@pytest.mark.slow
@pytest.mark.parametrize("effect", WITH_PROBE)
@pytest.mark.parametrize("point", ["before-finding", "after-finding"])
def test_killed_while_noting_that_a_probe_could_not_say(fleet: Fleet, ledger: Ledger, point: str, effect: str) -> None:
    fleet.sweeper()
    ledger.fault("status", "fail", times=1)
    run_id = in_doubt(fleet, effect, "after-effect")
    fleet.bury(fleet.worker(crash=point))
    fleet.worker()
    assert_done_once(ledger, fleet.rests(run_id))
    assert ledger.calls(f"{run_id}:1") == 1


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-timer", "after-timer", "before-timer:2", "after-timer:2"])
def test_killed_around_a_timer(fleet: Fleet, ledger: Ledger, point: str) -> None:
    fleet.sweeper()
    victim = fleet.worker(crash=point)
    run_id = start("sleep", {"seconds": 0.5})
    fleet.bury(victim)
    fleet.worker()
    run = fleet.rests(run_id)
    assert_done_once(ledger, run)
    assert [e.body["verb"] for e in entries_of(run_id) if e.kind == "TIMER"] == ["set", "fired"]
    assert entries_of(run_id)[-1].body["result"] >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-control", "after-control"])
def test_killed_while_putting_a_run_into_quarantine(fleet: Fleet, ledger: Ledger, point: str) -> None:
    fleet.sweeper()
    run_id = start("deadly", {})
    for crash in ("", "", "", point):
        fleet.bury(fleet.worker(crash=crash))
    fleet.worker()
    run = fleet.rests(run_id)
    assert (run.status, ledger.calls(f"{run_id}:1")) == ("quarantined", 3)
    assert "3 times" in run.reason or "4 times" in run.reason
    assert [e.body["verb"] for e in entries_of(run_id) if e.kind == "CONTROL"] == ["quarantine"]
    assert_whole(run_id)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-message", "after-message"])
def test_a_sweeper_killed_while_sending(fleet: Fleet, ledger: Ledger, point: str) -> None:
    run_id = in_doubt(fleet, "keyed-probe", "after-effect")
    fleet.await_session(fleet.worker())
    assert fleet.sweeper(crash=point).dies() == -9
    if point == "before-message":
        assert Run.objects.get(id=run_id).status == "running", "nobody was told"
    fleet.sweeper()
    assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-message", "after-message"])
def test_whoever_starts_a_run_killed_after_the_commit(fleet: Fleet, ledger: Ledger, point: str) -> None:
    fleet.worker()
    starter = fleet.run("start", "keyed", "--input", "{}", HOLDFAST_CRASH=point)
    assert starter.dies() == -9, starter.said()
    run = Run.objects.get(agent="keyed")
    fleet.sweeper()
    assert_done_once(ledger, fleet.rests(run.id))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-dispatch", "after-dispatch"])
def test_killed_while_sending_the_run_that_waited_its_turn(fleet: Fleet, ledger: Ledger, point: str) -> None:
    """After two crashes in a row runs are driven one at a time: the end of the first sends the next."""
    ledger.fault("refund", "delay", seconds=1.0, times=1)
    first = fleet.worker(crash="before-effect:2")
    runs = [start("keyed-probe", {}), start("keyed-probe", {})]
    fleet.bury(first)
    ledger.fault("status", "delay", seconds=1.0, times=4)
    fleet.sweeper()
    fleet.bury(fleet.worker(crash="before-probe:2"))
    fleet.bury(fleet.worker(crash=point))
    fleet.worker()
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
def test_the_child_of_a_prefork_pool_killed_during_a_call(fleet: Fleet, ledger: Ledger) -> None:
    """Each child is a session of its own; nobody sees it die, so its lease runs out. The pool makes another child."""
    parent = fleet.worker("--pool", "prefork", "--concurrency", "1")
    fleet.sweeper()
    run_id = start("slow", {"seconds": 60})
    fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the child has acted")
    fleet.kill_holder(run_id)
    run = fleet.rests(run_id)
    assert_done_once(ledger, run)
    assert run.epoch == 2
    assert parent.code is None


@pytest.mark.slow
def test_the_parent_of_a_prefork_pool_killed_during_a_call(fleet: Fleet, ledger: Ledger) -> None:
    """The child goes on to the end of its call at least; whoever drives the run then, it acts once."""
    parent = fleet.worker("--pool", "prefork", "--concurrency", "1")
    fleet.sweeper()
    run_id = start("slow", {"seconds": 3})
    fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the child has acted")
    parent.send(signal.SIGKILL)
    parent.dies()
    fleet.worker()
    assert_done_once(ledger, fleet.rests(run_id))
    orphan = "SELECT 1 FROM runs_workersession WHERE pool = 'prefork' AND ended_at IS NULL"
    fleet.until(lambda: not fleet.ask(orphan), "the child is gone too")
