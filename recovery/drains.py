"""Drains: a gate with a deadline. Its runs reach a checkpoint; what is still open at the deadline is left to resume.

The gate stops new attempts, the deadline fences nobody: a call that is open then may still answer until its process
ends. Phases are written by `advance_drains`, which any process may call at any time: each is one transaction, and is
judged anew from the tables, so that nobody's death in between leaves anything undone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Q, QuerySet

from journal.crash import crash_point
from recovery.errors import DrainEnded, DrainExists, DrainLifted, DrainNotFound, TimeoutInvalid
from recovery.handed_over import reported
from recovery.in_flight import (
    Blocker,
    InFlight,
    Longest,
    Nowhere,
    Reach,
    arrivals,
    at_gate,
    blockers_of,
    database_now,
    held_runs,
    in_doubt,
    in_flight,
    longest_timeout,
    lost,
    nowhere,
    parked,
    reach_of,
)
from recovery.models import Drain, Phase
from recovery.telling import tell_held
from runs.access import Person, agents_of
from runs.audit import record
from runs.errors import GateExists
from runs.gates import UNSEEN, agent_of, check_scope, gates_seen, given_reason, lift_gate, place_gate
from runs.models import Gate

log = logging.getLogger("holdfast.sweep")

SYSTEM = "system"
LONGEST_TIMEOUT = 7 * 24 * 3600.0
DEFAULT_TIMEOUT = 300.0
UNDER_WAY = (Phase.STOPPING, Phase.REACHING)


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
    drain = Drain.objects.create(
        scope=scope,
        reason=gate.reason,
        owner=actor,
        gate=gate,
        deadline_at=database_now() + timedelta(seconds=seconds),
        in_flight=remaining(reach_of(scope)),
        until_gone=until_gone and scope.startswith("worker:"),
    )
    record(actor, "drain.order", agent=agent_of(scope), subject=scope, reason=gate.reason, drain=drain.pk,
           seconds=round(seconds))  # fmt: skip
    tell_held(scope)
    drain.refresh_from_db()
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


def checked(seconds: float) -> float:
    """Raises TimeoutInvalid."""
    if not 1 <= seconds <= LONGEST_TIMEOUT:
        raise TimeoutInvalid
    return seconds


# -- phases ------------------------------------------------------------------------------------------------------------


def advance_drains() -> int:
    """Every drain that is under way comes to the phase that it is in by now; how many those were."""
    moved = 0
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
    if drain.ended_at is None:
        if drain.phase == Phase.STOPPING and not behind(drain.gate, reach, now):
            enter(drain, Phase.REACHING, now)
        left = remaining(reach)
        if left == 0 and drain.phase == Phase.REACHING:
            finish(drain, Phase.DONE, now, {"lost": lost(reach)})
        elif now >= drain.deadline_at:
            hand_over(drain, reach, now)
    if drain.until_gone and drain.gate.lifted_at is None and not reach.sessions and drain.ended_at is not None:
        lift_gate(gate_id=drain.gate_id, reason="the worker is gone", actor=SYSTEM, audited=False)


def hand_over(drain: Drain, reach: Reach, now: datetime) -> None:
    left = in_flight(reach)
    if not left:  # the last one came to its checkpoint in this very moment
        finish(drain, Phase.DONE, now, {"lost": lost(reach)})
        return
    finish(drain, Phase.HANDED_OVER, now, {"lost": lost(reach), "runs": [reported(one, now) for one in left]})


def enter(drain: Drain, phase: Phase, at: datetime) -> None:
    seconds: dict[str, float] = drain.report.setdefault("seconds", {})
    seconds[drain.phase] = round((at - drain.phase_at).total_seconds(), 3)
    drain.phase, drain.phase_at = phase, at
    drain.save(update_fields=["phase", "phase_at", "ended_at", "report"])


def finish(drain: Drain, phase: Phase, at: datetime, report: Mapping[str, Any]) -> None:
    drain.ended_at = at
    drain.report |= report
    enter(drain, phase, at)


def remaining(reach: Reach, user: Person | None = None) -> int:
    """How many runs are in flight. Only of a tool have journals to be read for it."""
    return held_runs(reach, user).count() if reach.tool is None else len(in_flight(reach, user))


def behind(gate: Gate, reach: Reach, now: datetime) -> list[str]:
    """Live workers in the scope that may not have heard of the gate yet. One whose lease is over begins nothing."""
    heard = gate.created_at + timedelta(seconds=UNSEEN)
    return [s.name for s in reach.sessions if s.heartbeat_at <= heard and s.expires_at > now]


# -- looking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preview:
    """What a drain of the scope would touch, at `as_of`, for somebody who sees only runs within their own scope."""

    scope: str
    as_of: datetime
    deadline_at: datetime
    in_flight: Sequence[InFlight]
    blockers: Sequence[Blocker]
    workers: Sequence[str]
    parked: Mapping[str, int]
    in_doubt: int
    arrivals: float | None  # new runs a second, which would wait at the gate
    longest: Longest | None
    nowhere: Sequence[Nowhere]
    taken_by: str  # what already stops the scope, in a sentence

    @property
    def late(self) -> list[InFlight]:
        """Those that may take until after the deadline."""
        return [one for one in self.in_flight if not one.ends_in_time(self.deadline_at)]

    @property
    def too_short(self) -> str:
        """Whether the deadline is below the longest timeout in the scope, in a sentence; empty: it is not."""
        return too_short(self.longest, (self.deadline_at - self.as_of).total_seconds())

    @property
    def warnings(self) -> list[str]:
        return warned(self.longest, (self.deadline_at - self.as_of).total_seconds(), self.nowhere)


def too_short(longest: Longest | None, seconds: float) -> str:
    if longest is None or longest.seconds <= seconds:
        return ""
    return (
        f"The deadline of {seconds:.0f} s is below the longest timeout in the scope: {longest.name} of "
        f"{longest.release} may take {longest.seconds:g} s, and would be handed over while it is open."
    )


def warned(longest: Longest | None, seconds: float, alone: Sequence[Nowhere]) -> list[str]:
    """What to know before it starts, in sentences."""
    said = [too_short(longest, seconds)]
    for one in alone:
        which = f"{one.runs} in flight and {one.queued} queued of {one.release}"
        said.append(f"Runs would have nowhere to go: {which} wait until another worker serves it.")
    return [sentence for sentence in said if sentence]


def preview(scope: str, timeout: float, user: Person | None = None) -> Preview:
    """Changes nothing. Raises GateScopeUnknown, TimeoutInvalid."""
    check_scope(scope)
    seconds, now, reach = checked(timeout), database_now(), reach_of(scope)
    found = in_flight(reach, user)
    gate = Gate.objects.filter(scope=scope, lifted_at=None).first()
    return Preview(
        scope=scope,
        as_of=now,
        deadline_at=now + timedelta(seconds=seconds),
        in_flight=found,
        blockers=blockers_of(found),
        workers=[session.name for session in reach.sessions],
        parked=parked(reach, user),
        in_doubt=in_doubt(reach, user),
        arrivals=arrivals(reach, now, user),
        longest=longest_timeout(reach, found),
        nowhere=nowhere(reach, found, user),
        taken_by=str(GateExists(scope, gate.pk, gate.actor, gate.reason, gate.created_at)) if gate else "",
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """A drain as it is now. `began_with`: runs in flight when it was ordered; None for who sees but some agents."""

    drain: Drain
    as_of: datetime
    in_flight: Sequence[InFlight]
    blockers: Sequence[Blocker]
    not_yet_at: Sequence[str]  # workers that may not have heard of the gate
    parked: Mapping[str, int]
    at_gate: int
    in_doubt: int
    lost: int
    nowhere: Sequence[Nowhere]
    longest: Longest | None
    began_with: int | None

    @property
    def remaining(self) -> int:
        return len(self.in_flight)

    @property
    def at_checkpoint(self) -> int | None:
        """Of those that it began with."""
        return None if self.began_with is None else max(self.began_with - self.remaining, 0)

    @property
    def oldest(self) -> InFlight | None:
        return self.in_flight[0] if self.in_flight else None

    @property
    def oldest_age(self) -> float | None:
        """Seconds."""
        return (self.as_of - self.oldest.since).total_seconds() if self.oldest else None

    @property
    def seconds_left(self) -> float:
        """To the deadline; 0 behind it."""
        return max((self.drain.deadline_at - self.as_of).total_seconds(), 0.0)

    @property
    def late(self) -> list[InFlight]:
        return [one for one in self.in_flight if not one.ends_in_time(self.drain.deadline_at)]

    @property
    def warnings(self) -> list[str]:
        return warned(self.longest, (self.drain.deadline_at - self.drain.created_at).total_seconds(), self.nowhere)

    @property
    def done_by(self) -> datetime | None:
        """When every call that is open is over by its timeout."""
        return max((one.ends_by for one in self.in_flight), default=None)


def progress(drain: Drain, user: Person | None = None) -> Progress:
    """What is in flight now, also after the deadline: calls may return until their process ends."""
    now, reach = database_now(), reach_of(drain.scope)
    found = in_flight(reach, user)
    return Progress(
        drain=drain,
        as_of=now,
        in_flight=found,
        blockers=blockers_of(found),
        not_yet_at=behind(drain.gate, reach, now) if drain.gate.lifted_at is None else (),
        parked=parked(reach, user),
        at_gate=at_gate(drain.scope, user) if drain.gate.lifted_at is None else 0,
        in_doubt=in_doubt(reach, user),
        lost=lost(reach, user),
        nowhere=nowhere(reach, found, user),
        longest=longest_timeout(reach, found),
        began_with=drain.in_flight if agents_of(user) is None else None,
    )


def drains_seen(user: Person | None = None) -> QuerySet[Drain]:
    """Those whose gates may stop runs within the user's scope, the newest first."""
    rows = Drain.objects.select_related("gate").order_by("-id")
    return rows if agents_of(user) is None else rows.filter(gate__in=gates_seen(user, lifted=None))


def in_force(user: Person | None = None) -> QuerySet[Drain]:
    """Those whose gate has not been lifted, whether they are over or not."""
    return drains_seen(user).filter(gate__lifted_at__isnull=True)


def find_drain(drain_id: int, user: Person | None = None) -> Drain:
    """Raises DrainNotFound, also for one that the user does not see."""
    drain = drains_seen(user).filter(pk=drain_id).first()
    if drain is None:
        raise DrainNotFound(f"({drain_id})")
    return drain


@dataclass(frozen=True, slots=True)
class Condition:
    """A line of the banner: a drain that is in force. `remaining`: runs in flight; None where it takes journals."""

    drain: Drain
    remaining: int | None
    seconds_left: float

    @property
    def under_way(self) -> bool:
        return self.drain.phase in UNDER_WAY


def conditions(user: Person | None = None) -> list[Condition]:
    """Cheap enough for every page."""
    drains = list(in_force(user)[:20])
    if not drains:
        return []
    now, made = database_now(), []
    for drain in drains:
        left = None
        if drain.phase in UNDER_WAY and not drain.scope.startswith("tool:"):
            left = remaining(reach_of(drain.scope), user)
        made.append(Condition(drain, left, max((drain.deadline_at - now).total_seconds(), 0.0)))
    return made
