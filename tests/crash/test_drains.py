"""Whoever follows a drain dies by SIGKILL at any point; another one goes on from the tables."""

import signal
import time

import pytest

from config.celery import app
from recovery.drains import find_drain, lift_drain, order_drain
from runs.dispatch import queue_of
from runs.models import Run, WorkerSession
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


@pytest.mark.slow
@pytest.mark.parametrize("pool", [("--concurrency", "2"), ("--pool", "prefork", "--concurrency", "2")])
def test_a_gated_worker_takes_no_messages_until_the_gate_is_lifted(
    fleet: Fleet, ledger: Ledger, pool: tuple[str, ...]
) -> None:
    """What it took and passed on would be taken by itself again, a second later."""
    fleet.worker(*pool)
    fleet.until(lambda: WorkerSession.objects.exists(), "it registers")
    assert fleet.rests(start("keyed", {})).status == "done"
    drain = order_drain(scope="worker:w1", timeout=60, reason="new kernel", actor="olga")
    run_id = start("keyed", {})
    queue = queue_of(Run.objects.get(id=run_id).release_id)
    with app.connection_for_read() as broker:
        size = broker.default_channel._size
        since = time.monotonic()

        def rests() -> bool:
            nonlocal since
            if size(queue) != 1:
                since = time.monotonic()
            return time.monotonic() - since > 3

        fleet.until(rests, "its message waits in the queue for another worker")
    lift_drain(drain_id=drain.pk, reason="not now", actor="olga")
    assert fleet.rests(run_id).status == "done", "the queues are open again"
