"""SIGTERM: no new call begins, open calls end, runs are let go and no crash is counted against them."""

import signal

import pytest

from runs.models import Run, WorkerSession
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
