"""SIGTERM: no new call begins, open calls end, runs are let go and no crash is counted against them."""

import os
import signal
import time

import pytest

from runs.models import Run, WorkerSession
from tests.crash.proof import assert_done_once
from tests.faults.test_frozen import Relay
from tests.faults.test_frozen import relay as relay
from tests.rig.crew import journal, start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger, wait_until

POOLS = {"threads": ("--concurrency", "4"), "prefork": ("--pool", "prefork", "--concurrency", "2")}


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_stopped_worker_finishes_its_call_and_another_goes_on(fleet: Fleet, ledger: Ledger, pool: str) -> None:
    ledger.fault("charge", "delay", seconds=1.5)
    first = fleet.worker(*POOLS[pool])
    run_id = start("chain", {"steps": 3, "effect": "keyed"})
    wait_until(lambda: ledger.calls(f"{run_id}:1"), f"the first call is under way\n{fleet.story()}")
    first.send(signal.SIGTERM)
    assert first.dies(15) == 0, first.said()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.session_id) == ("queued", None), "let go at its checkpoint"
    assert journal(run_id).count("OBS:1") == 1 and "OBS:3" not in journal(run_id)
    assert not WorkerSession.objects.filter(ended_at__isnull=True).exists(), "the session has ended"
    ledger.clear_faults()
    fleet.worker()
    fleet.sweeper()
    run = fleet.rests(run_id)
    assert (run.status, run.crashes) == ("done", 0), fleet.story()
    assert [ledger.calls(f"{run_id}:{step}") for step in (1, 2, 3)] == [1, 1, 1], "no call twice"


@pytest.mark.slow
def test_a_call_that_outlasts_the_grace_is_left_in_doubt_and_settled_by_the_next(fleet: Fleet, ledger: Ledger) -> None:
    first = fleet.worker(HOLDFAST_GRACE_SECONDS="1")
    run_id = start("slow", {"seconds": 60})
    wait_until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    first.send(signal.SIGTERM)
    assert first.dies(10) == 1, "it leaves at the end of its grace"
    assert Run.objects.get(id=run_id).status == "running"
    fleet.end(first)
    fleet.worker()
    fleet.sweeper()
    run = fleet.rests(run_id)
    assert (run.status, run.crashes) == ("done", 0), f"a draining worker's end is no crash\n{fleet.story()}"
    assert ledger.calls(f"{run_id}:1") == ledger.acted(f"{run_id}:1") == 1, "found by its key, not sent again"


GRACE = 3.0
SLACK = 4.0  # seconds: two, and two more on a busy machine


@pytest.mark.slow
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_leaves_with_its_grace_while_the_database_answers_nothing(
    fleet: Fleet, ledger: Ledger, relay: tuple[Relay, str], pool: str, busy: bool
) -> None:
    between, dsn = relay
    first = fleet.worker(*POOLS[pool], DATABASE_URL=dsn, HOLDFAST_GRACE_SECONDS=f"{GRACE:g}")
    fleet.until(lambda: WorkerSession.objects.exists(), "it registers")
    run_id = start("slow", {"seconds": 60}) if busy else None
    fleet.until(lambda: run_id is None or ledger.calls(f"{run_id}:1"), "the call is under way")
    between.frozen.set()
    began = time.monotonic()
    first.send(signal.SIGTERM)
    first.dies(60)
    assert time.monotonic() - began < GRACE + SLACK, first.said()
    fleet.until(lambda: not alive_in_group(first.pid), "its children leave too", within=GRACE + SLACK)


def alive_in_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_second_sigterm_hurries_nothing(fleet: Fleet, ledger: Ledger, pool: str) -> None:
    ledger.fault("charge", "delay", seconds=3)
    first = fleet.worker(*POOLS[pool])
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    for _ in range(3):
        first.send(signal.SIGTERM)
        time.sleep(0.2)  # signals that come at once are one
    assert first.dies(20) == 0, first.said()
    assert "raised" not in first.said() and "Traceback" not in first.said(), first.said()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.session_id) == ("queued", None)
    assert journal(run_id).count("OBS:1") == 1


@pytest.mark.slow
def test_a_sigterm_to_every_process_of_a_pool_lets_calls_end(fleet: Fleet, ledger: Ledger) -> None:
    """As a process manager does that knows no main process."""
    ledger.fault("charge", "delay", seconds=2)
    first = fleet.worker(*POOLS["prefork"])
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    os.killpg(first.pid, signal.SIGTERM)
    assert first.dies(30) == 0, first.said()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.session_id, journal(run_id).count("OBS:1")) == ("queued", None, 1), first.said()
    ledger.clear_faults()
    fleet.worker()
    fleet.sweeper()
    run = fleet.rests(run_id)
    assert run.crashes == 0
    assert [ledger.calls(f"{run_id}:{step}") for step in (1, 2)] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_sigterm_during_the_start_ends_it_and_no_session_is_left(fleet: Fleet, pool: str) -> None:
    for late in (0.0, 0.2, 0.5, 1.0):
        first = fleet.worker(*POOLS[pool])
        time.sleep(late)
        first.send(signal.SIGTERM)
        assert first.dies(20) in (0, -signal.SIGTERM), first.said()
    registered = fleet.worker(*POOLS[pool])
    fleet.until(lambda: WorkerSession.objects.filter(pid=registered.pid).exists() or pool == "prefork", "it registers")
    registered.send(signal.SIGTERM)
    assert registered.dies(20) in (0, -signal.SIGTERM), registered.said()
    assert not WorkerSession.objects.filter(ended_at=None).exists()


@pytest.mark.slow
def test_a_worker_that_stops_is_listed_as_draining_and_its_run_counts_no_crash(fleet: Fleet, ledger: Ledger) -> None:
    first = fleet.worker(HOLDFAST_GRACE_SECONDS="8")
    fleet.sweeper()
    run_id = start("slow", {"seconds": 60})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    first.send(signal.SIGTERM)
    fleet.until(lambda: WorkerSession.objects.get(id=first.session).draining_at is not None, "it says so")
    listed = fleet.run("workers")
    assert listed.dies() == 0 and "w1\tdraining" in listed.said(), listed.said()
    assert first.dies(20) == 1
    fleet.end(first)
    fleet.worker()
    run = fleet.rests(run_id)
    assert run.crashes == 0
    assert_done_once(ledger, run)
