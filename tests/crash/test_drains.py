"""Whoever follows a drain dies by SIGKILL at any point; another one goes on from the tables."""

import signal

import pytest

from recovery.drains import find_drain, order_drain
from runs.models import Run
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


@pytest.mark.slow
@pytest.mark.parametrize("point", ["drain-before-phase", "drain-after-phase", "drain-after-phase:3"])
def test_a_sweeper_dies_while_it_follows_a_drain(fleet: Fleet, ledger: Ledger, point: str) -> None:
    fleet.worker()
    run_id = start("slow", {"seconds": 3})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    drain = order_drain(scope="agent:slow", timeout=60, reason="deploy 8", actor="olga")
    victim = fleet.sweeper(crash=point)
    assert victim.dies() == -signal.SIGKILL, victim.said()
    fleet.sweeper()
    fleet.sweeper()
    fleet.until(lambda: find_drain(drain.pk).phase == "done", "the others follow it to its end")
    done = find_drain(drain.pk)
    assert done.report["seconds"].keys() == {"stopping", "reaching"} and done.ended_at is not None
    assert Run.objects.get(id=run_id).status == "held"


@pytest.mark.slow
def test_a_drained_worker_is_killed_after_the_deadline_and_no_crash_is_counted(fleet: Fleet, ledger: Ledger) -> None:
    first = fleet.worker()
    fleet.sweeper()
    run_id = start("slow", {"seconds": 60})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    drain = order_drain(scope="worker:w1", timeout=2, reason="new kernel", actor="olga")
    fleet.until(lambda: find_drain(drain.pk).phase == "handed_over", "the deadline comes")
    first.send(signal.SIGKILL)
    fleet.bury(first)
    fleet.worker()
    run = fleet.rests(run_id)
    assert run.crashes == 0
    assert_done_once(ledger, run)


@pytest.mark.slow
def test_runs_of_a_drained_worker_go_on_at_another_and_it_takes_none(fleet: Fleet, ledger: Ledger) -> None:
    """Its queues are shut: what arrives is taken by the other at once, and the drained one is stopped empty."""
    first = fleet.worker()
    fleet.await_session(first)
    fleet.sweeper()
    ledger.fault("charge", "delay", seconds=1.5)
    run_id = start("chain", {"steps": 3, "effect": "keyed"})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the first call is under way")
    second = fleet.worker()
    fleet.await_session(second)
    drain = order_drain(scope="worker:w1", timeout=60, reason="new kernel", actor="olga")
    fleet.until(lambda: find_drain(drain.pk).phase == "done", "it is empty")
    ledger.clear_faults()
    others = [start("keyed", {}) for _ in range(10)]
    for other in [run_id, *others]:
        run = fleet.rests(other)
        assert run.status == "done" and run.crashes == 0
    asked = "SELECT count(*) FROM journal_entry e JOIN runs_run r ON r.id = e.run_id WHERE r.session_id = %s"
    assert fleet.ask(asked, first.session) == [(0,)]
    first.send(signal.SIGTERM)
    assert first.dies(20) == 0, first.said()
    assert [ledger.calls(f"{run_id}:{step}") for step in (1, 2, 3)] == [1, 1, 1]
