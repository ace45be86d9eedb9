"""Drains: a gate with a deadline; its phases, and what becomes of the runs in its scope."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.functions import Now

from recovery.drains import (
    advance_drains,
    conditions,
    extend_drain,
    lift_drain,
    order_drain,
    preview,
    progress,
)
from recovery.errors import DrainEnded, DrainExists, DrainLifted, DrainNotFound, TimeoutInvalid
from recovery.handed_over import handed_over
from recovery.in_flight import database_now
from recovery.models import Drain
from runs.engine.worker import Worker
from runs.errors import GateExists, GateScopeUnknown, ReasonMissing
from runs.gates import lift_gate, place_gate
from runs.models import AuditRecord, Gate, Run, WorkerSession
from tests.recovery.draining import becomes, now, order, too_late
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger, wait_until

# -- ordering, lifting, extending ------------------------------------------------------------------------------------


def test_a_drain_of_nothing_is_done_at_once_and_keeps_its_gate_until_it_is_lifted(crew: Crew) -> None:
    drain = now(order("agent:keyed"))
    assert (drain.phase, drain.in_flight, drain.gate.lifted_at) == ("done", 0, None)
    lifted = lift_drain(drain_id=drain.pk, reason="deployed", actor="max")
    assert (lifted.phase, lifted.gate.lifted_by) == ("done", "max"), "it was done, and stays so in the history"
    with pytest.raises(DrainLifted, match=f"max lifted drain {drain.pk} at"):
        lift_drain(drain_id=drain.pk, reason="deployed", actor="olga")


def test_a_second_drain_of_a_scope_learns_of_the_first_and_others_may_overlap(crew: Crew) -> None:
    first = order("agent:keyed")
    with pytest.raises(DrainExists, match=f"olga ordered drain {first.pk} of agent:keyed at .*: deploy 8"):
        order("agent:keyed")
    order("all")
    place_gate(scope="tool:letter", reason="look", actor="max")
    with pytest.raises(GateExists):
        order("tool:letter")
    assert "max placed gate" in preview("tool:letter", 60).taken_by


def test_what_cannot_be_drained_is_refused_and_leaves_no_gate(crew: Crew) -> None:
    for seconds in (0, -1, 8 * 24 * 3600, float("nan")):
        with pytest.raises(TimeoutInvalid):
            order("all", seconds)
    with pytest.raises(GateScopeUnknown):
        order("everything")
    with pytest.raises(ReasonMissing):
        order_drain(scope="all", timeout=5, reason=" ", actor="olga")
    with pytest.raises(DrainNotFound):
        lift_drain(drain_id=7, reason="x", actor="olga")
    assert not Gate.objects.exists()


def test_lifting_its_gate_by_another_door_calls_it_off(crew: Crew, fly: Callable[..., UUID]) -> None:
    fly()
    drain = order("agent:chain")
    gate = lift_gate(scope="agent:chain", reason="not now", actor="max")
    assert (ended := now(drain)).phase == "lifted" and ended.ended_at == gate.lifted_at
    with pytest.raises(DrainLifted):
        lift_drain(drain_id=drain.pk, reason="x", actor="olga")


def test_calling_it_off_lets_runs_go_on(crew: Crew, fly: Callable[..., UUID]) -> None:
    run_id = fly()
    drain = order("agent:chain")
    assert lift_drain(drain_id=drain.pk, reason="not now", actor="max").phase == "lifted"
    assert crew.drive(run_id).status == "done"


def test_the_deadline_moves_while_it_is_under_way_and_not_afterwards(crew: Crew, fly: Callable[..., UUID]) -> None:
    fly()
    drain = order("agent:chain", 30)
    moved = extend_drain(drain_id=drain.pk, seconds=300, reason="the bank is slow", actor="max")
    assert moved.deadline_at - drain.deadline_at == timedelta(seconds=300)
    with pytest.raises(ReasonMissing):
        extend_drain(drain_id=drain.pk, seconds=300, reason="", actor="max")
    assert too_late(drain).phase == "handed_over"
    with pytest.raises(DrainEnded, match="is handed over since"):
        extend_drain(drain_id=drain.pk, seconds=300, reason="more", actor="max")
    acts = AuditRecord.objects.filter(act__startswith="drain.").order_by("id").values_list("act", "actor", "subject")
    assert list(acts) == [("drain.order", "olga", "agent:chain"), ("drain.extend", "max", "agent:chain")]
    assert not AuditRecord.objects.filter(act="gate.place").exists(), "one act is one line"


# -- phases ----------------------------------------------------------------------------------------------------------


def test_it_is_done_when_the_last_run_has_come_to_a_checkpoint(crew: Crew, fly: Callable[..., UUID]) -> None:
    run_id = fly()
    drain = order("agent:chain")
    seen = progress(drain)
    (one,) = seen.in_flight
    assert one.call is not None
    assert (one.run_id, one.worker, one.doing) == (run_id, "w1", one.call.tool)
    assert (one.call.step, one.call.key, one.call.effect) == (1, f"{run_id}:1", "keyed")
    assert [(b.name, b.count) for b in seen.blockers] == [(one.call.tool, 1)]
    assert (seen.began_with, seen.at_checkpoint, seen.not_yet_at) == (1, 0, ["w1"])
    assert seen.oldest_age is not None and 0 < seen.oldest_age < 30
    done = becomes(drain, "done")
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("held", "gate agent:chain: deploy 8")
    assert journal(run_id).count("OBS:1") == 1 and "TOOL_CALL:2" not in journal(run_id)
    seen = progress(done)
    assert (seen.remaining, seen.at_checkpoint, seen.at_gate, seen.oldest) == (0, 1, 1, None)
    assert done.report["seconds"].keys() == {"stopping", "reaching"} and done.report["lost"] == 0


def test_at_the_deadline_open_calls_are_listed_and_may_still_return(
    crew: Crew, ledger: Ledger, fly: Callable[..., UUID]
) -> None:
    run_id = fly(seconds=4)
    drain = too_late(order("agent:chain"))
    assert drain.phase == "handed_over"
    (told,) = handed_over(drain)
    assert (told.run_id, told.step, told.key, told.outcome) == (run_id, 1, f"{run_id}:1", "open")
    assert (told.status, told.worker, told.seq) == ("running", "w1", 3)
    epoch = Run.objects.get(id=run_id).epoch
    wait_until(lambda: Run.objects.get(id=run_id).status == "held", "its call returns")
    (told,) = handed_over(drain)
    assert (told.outcome, told.status) == ("succeeded", "held") and told.settled_at is not None
    assert Run.objects.get(id=run_id).epoch == epoch, "nobody was fenced"
    assert journal(run_id).count("TOOL_CALL:2") == 0, "and no new attempt was written"
    assert now(drain).phase == "handed_over"


def held_by(crew: Crew, worker: Worker) -> UUID:
    """A run that the worker drives, between two steps."""
    run_id = start("signals", {"names": ["go"]})
    crew.drive(run_id, worker)
    Run.objects.filter(id=run_id).update(status="running", session_id=worker.session.id)
    return run_id


def test_what_a_worker_leaves_that_dies_meanwhile_is_no_checkpoint_until_another_takes_it_over(crew: Crew) -> None:
    worker = crew.hire()
    run_id = held_by(crew, worker)
    drain = order("agent:signals")
    assert now(drain).phase == "stopping", "its worker has not heard of it"
    crew.lose(worker)
    waits = now(drain)
    seen = progress(waits)
    assert (waits.phase, seen.remaining, seen.at_checkpoint, seen.lost) == ("reaching", 1, 0, 0)
    assert [(one.run_id, one.worker) for one in seen.left_behind] == [(run_id, "w1")] and seen.in_flight == []
    assert [condition.remaining for condition in conditions()] == [1]
    crew.drive(run_id, crew.hire())
    assert becomes(drain, "done").report["lost"] == 0


def test_what_nobody_has_taken_over_at_the_deadline_is_handed_over(crew: Crew) -> None:
    worker = crew.hire()
    run_id = held_by(crew, worker)
    drain = order("agent:signals")
    crew.lose(worker)
    done = too_late(drain)
    assert (done.phase, done.report["lost"]) == ("handed_over", 0)
    assert [(told["run"], told["lost"]) for told in done.report["runs"]] == [(str(run_id), True)]


def test_a_worker_that_dies_in_its_own_drain_hands_over_what_it_held(crew: Crew) -> None:
    """Nothing is in flight there any more, and nothing was brought to a checkpoint."""
    worker = crew.hire()
    run_id = held_by(crew, worker)
    drain, other = order("worker:w1"), order("worker:w2")
    crew.lose(worker)
    done = now(drain)
    assert done.phase == "handed_over" and [told["run"] for told in done.report["runs"]] == [str(run_id)]
    assert now(other).phase == "done"


def test_what_was_lost_before_it_began_is_not_waited_for(crew: Crew) -> None:
    worker = crew.hire()
    held_by(crew, worker)
    crew.lose(worker)
    done = now(order("agent:signals"))
    assert (done.phase, done.report["lost"], progress(done).lost) == ("done", 1, 1)


def test_a_deadline_that_passes_while_everything_is_down_is_seen_by_the_next_who_looks(crew: Crew) -> None:
    """Nobody ended the session: what it may still be doing is handed over."""
    worker = crew.hire()
    run_id = start("signals", {"names": ["go"]})
    crew.drive(run_id, worker)
    Run.objects.filter(id=run_id).update(status="running", session_id=worker.session.id)
    drain = order("agent:signals")
    WorkerSession.objects.update(expires_at=Now() - timedelta(minutes=5), heartbeat_at=Now() - timedelta(minutes=5))
    drain = too_late(drain)
    assert drain.phase == "handed_over"
    assert [(one.run_id, one.doing, one.outcome) for one in handed_over(drain)] == [(run_id, "between steps", "")]


def test_two_who_advance_at_once_do_not_wait_for_each_other(crew: Crew) -> None:
    drain = order("agent:keyed")
    with locked_elsewhere(drain):
        began = time.monotonic()
        assert advance_drains() == 0
        assert time.monotonic() - began < 5
    assert now(drain).phase == "done"


@contextmanager
def locked_elsewhere(drain: Drain) -> Iterator[None]:
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT FROM recovery_drain WHERE id = %s FOR UPDATE", [drain.pk])
            held.set()
            let_go.wait(60)
            cursor.execute("COMMIT")
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    yield
    let_go.set()
    thread.join()


def test_of_a_worker_it_is_lifted_once_its_process_is_gone(crew: Crew) -> None:
    worker = crew.hire()
    drain = order("worker:w1", until_gone=True)
    other = order("agent:keyed", until_gone=True)
    assert now(drain).gate.lifted_at is None
    crew.lose(worker)
    gone = now(drain)
    assert (gone.phase, gone.gate.lifted_by, gone.gate.lift_reason) == ("done", "system", "the worker is gone")
    assert now(other).gate.lifted_at is None, "an agent is no worker"


def test_a_worker_of_the_same_name_that_comes_at_once_is_not_kept_drained(crew: Crew) -> None:
    """As a process manager has it that starts again what it has stopped."""
    worker = crew.hire()
    drain = order("worker:w1", until_gone=True)
    crew.hired = 0
    crew.lose(worker)
    crew.hire(lease=1.0)
    wait_until(lambda: now(drain).gate.lifted_at is not None, "nobody else is left")
    assert WorkerSession.objects.get(ended_at=None).draining_at is None


def test_a_pool_whose_parent_has_made_a_new_child_is_not_gone(crew: Crew) -> None:
    """It is the same worker, and somebody means to stop it."""
    first, began = crew.hire(), database_now()
    WorkerSession.objects.filter(id=first.session.id).update(
        name="pool-1", pool="prefork", pool_started_at=began, heartbeat_at=Now() + timedelta(hours=1)
    )
    drain = order("worker:pool", until_gone=True)
    assert now(drain).phase == "done"
    crew.lose(first)
    assert now(drain).gate.lifted_at is None, "for a moment there is no child"
    second = crew.hire()
    WorkerSession.objects.filter(id=second.session.id).update(name="pool-2", pool="prefork", pool_started_at=began)
    WorkerSession.objects.filter(id=first.session.id).update(ended_at=Now() - timedelta(minutes=1))
    assert now(drain).gate.lifted_at is None, "the new child is of the old parent"
    WorkerSession.objects.filter(id=second.session.id).update(pool_started_at=Now())
    assert now(drain).gate.lifted_at is not None, "this is another worker of the name"


def test_a_drained_worker_says_so_and_no_more_when_it_is_called_off(crew: Crew) -> None:
    worker = crew.hire()
    crew.hire()
    drain = order("worker:w1")
    assert {s.name: s.draining_at is not None for s in WorkerSession.objects.all()} == {"w1": True, "w2": False}
    lift_gate(scope="worker:w1", reason="not now", actor="max")
    now(drain)
    assert not WorkerSession.objects.filter(draining_at__isnull=False).exists()
    again = order("worker:w1")
    worker.session.drain(worker.connections)
    lift_drain(drain_id=again.pk, reason="not now", actor="max")
    assert WorkerSession.objects.get(name="w1").draining_at is not None, "it stops by itself too"
