"""Drains: a gate with a deadline. Its runs reach a checkpoint; what is still open at the deadline is left to resume.

The gate stops new attempts, the deadline fences nobody: a call that is open then may still answer until its process
ends. Phases are written by `advance_drains`, which any process may call at any time: each is one transaction, and is
judged anew from the tables, so that nobody's death in between leaves anything undone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from journal.crash import crash_point
from recovery.drains_told import (
    UNDER_WAY,
    Condition,
    Preview,
    Progress,
    behind,
    checked,
    conditions,
    drains_seen,
    find_drain,
    in_force,
    preview,
    progress,
    remaining,
)
from recovery.errors import DrainEnded, DrainExists, DrainLifted, DrainNotFound
from recovery.handed_over import reported
from recovery.in_flight import Reach, database_now, in_flight, left_behind, lost, reach_of
from recovery.models import Drain, Phase
from recovery.telling import tell_held
from runs.audit import record
from runs.errors import GateExists
from runs.gates import agent_of, given_reason, lift_gate, place_gate
from runs.models import Gate, WorkerSession

__all__ = [
    "DEFAULT_TIMEOUT",
    "UNDER_WAY",
    "Condition",
    "Preview",
    "Progress",
    "advance_drains",
    "conditions",
    "drains_seen",
    "extend_drain",
    "find_drain",
    "follow_drains",
    "in_force",
    "join_drain",
    "lift_drain",
    "order_drain",
    "preview",
    "progress",
]

log = logging.getLogger("holdfast.sweep")

SYSTEM = "system"
DEFAULT_TIMEOUT = 300.0
REPLACED_WITHIN = timedelta(seconds=10)  # a pool's parent makes a new child
UNMARK = """
UPDATE runs_workersession w SET draining_at = NULL FROM recovery_drain d JOIN runs_gate g ON g.id = d.gate_id
 WHERE w.ended_at IS NULL AND w.draining_at = d.created_at AND g.lifted_at IS NOT NULL
"""


# -- acts --------------------------------------------------------------------------------------------------------------


@transaction.atomic
def order_drain(*, scope: str, timeout: float, reason: str, actor: str, until_gone: bool = False) -> Drain:
    """Places the gate and sets the deadline, `timeout` seconds from now.

    `until_gone`: of a worker: the gate is lifted by itself once no process of that name is left. Raises TimeoutInvalid,
    GateScopeUnknown, ReasonMissing; DrainExists or GateExists where the scope has a gate already.
    """
    seconds = checked(timeout)
    try:
        gate = place_gate(scope=scope, reason=reason, actor=actor, audited=False)
    except GateExists as taken:
        if (first := Drain.objects.filter(gate_id=taken.gate_id).first()) is not None:
            raise DrainExists(scope, first.pk, first.owner, first.reason, first.created_at) from None
        raise
    return begin(gate, seconds, gate.reason, actor, until_gone)


@transaction.atomic
def join_drain(*, scope: str, timeout: float, reason: str, actor: str, until_gone: bool = False) -> tuple[Drain, bool]:
    """For who waits for a scope to be empty, whoever stopped it: the drain that is in force, else a new one; and
    whether it is new.

    `until_gone` is taken over by the drain that there is. A gate that is no drain's stays as long as it would have.
    Raises TimeoutInvalid, GateScopeUnknown, ReasonMissing.
    """
    seconds, said = checked(timeout), given_reason(reason)
    try:
        return order_drain(scope=scope, timeout=timeout, reason=reason, actor=actor, until_gone=until_gone), True
    except (DrainExists, GateExists):
        gate = Gate.objects.select_for_update().filter(scope=scope, lifted_at=None).first()
    if gate is None:  # lifted in this moment
        return join_drain(scope=scope, timeout=timeout, reason=reason, actor=actor, until_gone=until_gone)
    if not Drain.objects.filter(gate=gate).exists():
        return begin(gate, seconds, said, actor, until_gone=False), True
    drain = locked(Drain.objects.get(gate=gate).pk)
    if until_gone and not drain.until_gone and scope.startswith("worker:"):
        drain.until_gone = True
        drain.save(update_fields=["until_gone"])
        record(actor, "drain.until_gone", subject=scope, reason=said, drain=drain.pk)
    return drain, False


def begin(gate: Gate, seconds: float, reason: str, actor: str, until_gone: bool) -> Drain:
    """Under the gate, in the transaction that placed or locked it."""
    scope, reach = gate.scope, reach_of(gate.scope)
    drain = Drain.objects.create(
        scope=scope,
        reason=reason,
        owner=actor,
        gate=gate,
        deadline_at=database_now() + timedelta(seconds=seconds),
        in_flight=remaining(reach),
        until_gone=until_gone and scope.startswith("worker:"),
    )
    record(actor, "drain.order", agent=agent_of(scope), subject=scope, reason=reason, drain=drain.pk,
           seconds=round(seconds))  # fmt: skip
    tell_held(scope)
    drain.refresh_from_db()
    mark(drain, reach)
    return drain


@transaction.atomic
def extend_drain(*, drain_id: int, seconds: float, reason: str, actor: str) -> Drain:
    """Moves the deadline by so many seconds. Raises DrainNotFound, DrainEnded, TimeoutInvalid, ReasonMissing."""
    said, more = given_reason(reason), checked(seconds)
    drain = locked(drain_id)
    advance(drain)
    if drain.ended_at is not None:
        raise DrainEnded(drain.pk, drain.phase, drain.ended_at)
    drain.deadline_at += timedelta(seconds=more)
    drain.save(update_fields=["deadline_at"])
    record(actor, "drain.extend", agent=agent_of(drain.scope), subject=drain.scope, reason=said, drain=drain.pk,
           seconds=round(more), deadline=drain.deadline_at.isoformat())  # fmt: skip
    return drain


@transaction.atomic
def lift_drain(*, drain_id: int, reason: str, actor: str) -> Drain:
    """Lifts its gate: what waits there goes on. A drain that is still under way is called off.

    Raises DrainNotFound, DrainLifted, ReasonMissing.
    """
    drain = locked(drain_id)
    if drain.gate.lifted_at is not None:
        raise DrainLifted(drain.pk, drain.gate.lifted_by, drain.gate.lifted_at)
    drain.gate = lift_gate(gate_id=drain.gate_id, reason=reason, actor=actor, audited=False)
    record(actor, "drain.lift", agent=agent_of(drain.scope), subject=drain.scope, reason=drain.gate.lift_reason,
           drain=drain.pk)  # fmt: skip
    tell_held(drain.scope)
    advance(drain)
    return drain


def locked(drain_id: int) -> Drain:
    """Raises DrainNotFound."""
    drain = Drain.objects.select_for_update(of=("self",)).select_related("gate").filter(pk=drain_id).first()
    if drain is None:
        raise DrainNotFound(f"({drain_id})")
    return drain


# -- phases ------------------------------------------------------------------------------------------------------------


def advance_drains() -> int:
    """Every drain that is under way comes to the phase that it is in by now; how many those were."""
    moved = 0
    unmark()
    under_way = Q(ended_at__isnull=True) | Q(until_gone=True, gate__lifted_at__isnull=True)
    for pk in list(Drain.objects.filter(under_way).values_list("pk", flat=True)):
        with transaction.atomic():
            rows = Drain.objects.select_for_update(of=("self",), skip_locked=True).select_related("gate")
            drain = rows.filter(under_way, pk=pk).first()
            if drain is not None:
                crash_point("drain-before-phase")
                advance(drain)
                crash_point("drain-after-phase")
                moved += 1
    return moved


def follow_drains() -> None:
    """The sweep's part. What the database refuses now is tried in its next round; its connection is given back."""
    try:
        advance_drains()
    except DatabaseError as error:
        log.warning("drains cannot be followed now: %s", error)
    finally:
        connection.close()


def advance(drain: Drain) -> None:
    """Of a drain whose row is locked. What is in flight is listed where it is over with some left."""
    now = database_now()
    if drain.ended_at is None and drain.gate.lifted_at is not None:
        finish(drain, Phase.LIFTED, drain.gate.lifted_at, {})
    reach = reach_of(drain.scope)
    mark(drain, reach)
    if drain.ended_at is None:
        if drain.phase == Phase.STOPPING and not behind(drain.gate, reach, now):
            enter(drain, Phase.REACHING, now)
        if (drain.phase == Phase.REACHING and remaining(reach) == 0) or now >= drain.deadline_at:
            end(drain, reach, now)
    if drain.until_gone and drain.gate.lifted_at is None and drain.ended_at is not None and is_gone(drain, reach, now):
        drain.gate = lift_gate(gate_id=drain.gate_id, reason="the worker is gone", actor=SYSTEM, audited=False)
        mark(drain, reach)


def is_gone(drain: Drain, reach: Reach, now: datetime) -> bool:
    """Whether no process is left that was there when it was ordered. One of the same name may have come since.

    A child of a pool is as old as its parent, which replaces it: between the two there may be none for a moment.
    """
    if any((one.pool_started_at or one.started_at) <= drain.created_at for one in reach.sessions):
        return False
    ended = WorkerSession.objects.filter(ended_at__gt=now - REPLACED_WITHIN, pool="prefork")
    return not any(reach.contains(one) for one in ended if (one.pool_started_at or one.started_at) <= drain.created_at)


def mark(drain: Drain, reach: Reach) -> None:
    """Workers that are drained say so, as at a SIGTERM: nothing is sent to them, and their death is no crash of what
    they hold. By the time of the drain, so that its end takes back its own word alone."""
    if not reach.is_place:
        return
    if drain.gate.lifted_at is None:
        ids = [session.id for session in reach.sessions]
        WorkerSession.objects.filter(id__in=ids, draining_at=None).update(draining_at=drain.created_at)
    else:
        unmark()


def unmark() -> None:
    """Of every drain that is lifted, by whatever door."""
    with connection.cursor() as cursor:
        cursor.execute(UNMARK)


def end(drain: Drain, reach: Reach, now: datetime) -> None:
    """It is empty, or its deadline has come. What a worker that was lost meanwhile has left is at no checkpoint: until
    the deadline another may take it over and bring it to one. From a place it can only go on elsewhere."""
    flying, gone = in_flight(reach), left_behind(reach, drain.created_at)
    if gone and not reach.is_place and now < drain.deadline_at:
        return
    before = {"lost": lost(reach) - (0 if reach.is_place else len(gone))}
    if not (flying or gone):
        finish(drain, Phase.DONE, now, before)
        return
    runs = [reported(one, now) for one in flying] + [reported(one, now, lost=True) for one in gone]
    finish(drain, Phase.HANDED_OVER, now, before | {"runs": runs})


def enter(drain: Drain, phase: Phase, at: datetime) -> None:
    seconds: dict[str, float] = drain.report.setdefault("seconds", {})
    seconds[drain.phase] = round((at - drain.phase_at).total_seconds(), 3)
    drain.phase, drain.phase_at = phase, at
    drain.save(update_fields=["phase", "phase_at", "ended_at", "report"])


def finish(drain: Drain, phase: Phase, at: datetime, report: Mapping[str, Any]) -> None:
    drain.ended_at = at
    drain.report |= report
    enter(drain, phase, at)
