"""A worker that was replaced wakes up; a worker whose clock is wrong."""

import signal
from typing import Any
from uuid import UUID

import pytest

from runs.models import Evidence, Run, WorkerSession
from runs.queries import entries_of
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet, Hand
from tests.rig.ledger import Ledger


def frozen_and_replaced(fleet: Fleet, ledger: Ledger, agent: str, seconds: float) -> tuple[Hand, UUID]:
    """A worker is stopped during its call; when its lease is over, another one owns the run."""
    zombie = fleet.worker()
    run_id = start(agent, {"seconds": seconds})
    fleet.until(lambda: ledger.calls(f"{run_id}:1") == 1, "the call is under way")
    if not agent.startswith("hesitant"):
        fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the call has acted")
    zombie.send(signal.SIGSTOP)
    fleet.worker()
    fleet.sweeper()
    return zombie, run_id


def rows(run_id: UUID) -> tuple[Any, ...]:
    """The journal and the run row, every column."""
    return entries_of(run_id), Run.objects.filter(id=run_id).values().get()


@pytest.mark.slow
def test_a_worker_that_wakes_after_being_replaced_changes_nothing(fleet: Fleet, ledger: Ledger) -> None:
    zombie, run_id = frozen_and_replaced(fleet, ledger, "slow", 4.0)
    assert_done_once(ledger, fleet.rests(run_id))
    before = rows(run_id)
    session = WorkerSession.objects.filter(id=zombie.session).values().get()
    assert session["end_reason"] == "lease ran out"
    zombie.send(signal.SIGCONT)
    zombie.dies()
    assert rows(run_id) == before
    left = WorkerSession.objects.filter(id=zombie.session).values().get()
    assert {**left, "draining_at": None} == {**session, "draining_at": None}
    assert ledger.calls(f"{run_id}:1") == 1


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["slow-unkeyed", "hesitant-unkeyed"])
def test_the_late_success_of_a_replaced_worker_settles_what_nobody_knew(
    fleet: Fleet, ledger: Ledger, agent: str
) -> None:
    """Nobody else could say what became of it; the zombie's own word is adopted under the new epoch."""
    zombie, run_id = frozen_and_replaced(fleet, ledger, agent, 4.0)
    assert fleet.rests(run_id).status == "needs_reconciliation"
    before = entries_of(run_id)
    zombie.send(signal.SIGCONT)
    zombie.dies()
    fleet.until(lambda: Run.objects.get(id=run_id).status == "done", "the run is done")
    entries = entries_of(run_id)
    assert entries[: len(before)] == before
    more = [(e.kind, e.actor, e.body.get("verdict") or e.body.get("source")) for e in entries[len(before) :]]
    assert more[:2] == [("RECONCILE", "system", "happened"), ("OBS", "worker", "late")]
    assert all(e.epoch > 1 for e in entries[len(before) :]), "it is the new holder who wrote it"
    assert Evidence.objects.get(run_id=run_id).adopted_seq is not None
    assert_done_once(ledger, Run.objects.get(id=run_id))


@pytest.mark.slow
def test_a_worker_whose_clock_is_a_minute_ahead_takes_no_live_lease(fleet: Fleet, ledger: Ledger) -> None:
    fleet.worker()
    run_id = start("slow", {"seconds": 5.0})
    fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the call has acted")
    fleet.environment["RIG_CLOCK_AHEAD"] = "60"
    ahead = fleet.worker()
    fleet.sweeper()
    fleet.await_heartbeat(ahead)
    ((lasts,),) = fleet.ask(
        "SELECT extract(epoch FROM expires_at - clock_timestamp()) FROM runs_workersession WHERE id = %s", ahead.session
    )
    assert lasts <= 2.0, "leases are written by the database's clock"
    run = fleet.rests(run_id)
    assert_done_once(ledger, run)
    assert run.epoch == 1
    assert ledger.calls(f"{run_id}:1") == 1


@pytest.mark.slow
def test_timers_do_not_follow_a_wrong_clock(fleet: Fleet, ledger: Ledger) -> None:
    fleet.environment["RIG_CLOCK_AHEAD"] = "60"
    fleet.worker()
    fleet.sweeper()
    run_id = start("sleep", {"seconds": 1.0})
    run = fleet.rests(run_id)
    assert_done_once(ledger, run)
    assert 1.0 <= entries_of(run_id)[-1].body["result"] < 20.0


@pytest.mark.slow
def test_a_worker_that_joins_leaves_live_work_alone(fleet: Fleet, ledger: Ledger) -> None:
    """And so does a sweeper that starts anew."""
    fleet.worker()
    sweeper = fleet.sweeper()
    run_id = start("slow", {"seconds": 6.0})
    fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the call has acted")
    sweeper.send(signal.SIGKILL)
    joined = fleet.worker()
    fleet.sweeper()
    fleet.await_heartbeat(joined)
    run = fleet.rests(run_id)
    assert (run.status, run.epoch, ledger.calls(f"{run_id}:1")) == ("done", 1, 1)
    assert_whole(run_id)
