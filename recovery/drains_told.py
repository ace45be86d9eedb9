"""Drains as they are told: what one would touch, how far one is, which are in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from recovery.errors import DrainNotFound, TimeoutInvalid
from recovery.in_flight import (
    Blocker,
    InFlight,
    Longest,
    Reach,
    arrivals,
    at_gate,
    blockers_of,
    database_now,
    held_runs,
    in_doubt,
    in_flight,
    left_behind,
    longest_timeout,
    lost,
    parked,
    reach_of,
)
from recovery.models import Drain, Phase
from recovery.nowhere import Nowhere, nowhere
from runs.access import Person, agents_of
from runs.errors import GateExists
from runs.gates import UNSEEN, check_scope, gates_seen, unknown_in
from runs.models import Gate

LONGEST_TIMEOUT = 7 * 24 * 3600.0
MOST_NAMED = 5
UNDER_WAY = (Phase.STOPPING, Phase.REACHING)


def checked(seconds: float) -> float:
    """Raises TimeoutInvalid."""
    if not 1 <= seconds <= LONGEST_TIMEOUT:
        raise TimeoutInvalid
    return seconds


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
    unknown: str  # that the scope names nothing, in a sentence

    @property
    def late(self) -> list[InFlight]:
        """Those that may take until after the deadline."""
        return [one for one in self.in_flight if not one.ends_in_time(self.deadline_at)]

    @property
    def too_short(self) -> str:
        """Whether the deadline is below the longest timeout in the scope, in a sentence; empty: it is not."""
        return too_short(self.longest, (self.deadline_at - self.as_of).total_seconds())

    @property
    def new_runs(self) -> str:
        """What is to be said of new runs that would have nowhere to go, but for releases with open ones."""
        return new_runs_told(self.nowhere)

    @property
    def warnings(self) -> list[str]:
        seconds = (self.deadline_at - self.as_of).total_seconds()
        return warned(self.unknown, self.longest, seconds, self.nowhere)


def too_short(longest: Longest | None, seconds: float) -> str:
    if longest is None or longest.seconds <= seconds:
        return ""
    return (
        f"The deadline of {seconds:.0f} s is below the longest timeout in the scope: {longest.name} of "
        f"{longest.release} may take {longest.seconds:g} s, and would be handed over while it is open."
    )


def warned(unknown: str, longest: Longest | None, seconds: float, alone: Sequence[Nowhere]) -> list[str]:
    """What to know before it starts, in sentences."""
    said = [unknown, too_short(longest, seconds)]
    for one in alone:
        if one.has_runs:
            said.append(f"Runs of {one.release} would have nowhere to go until another worker serves it: {one.told}.")
    said.append(new_runs_told(alone))
    return [sentence for sentence in said if sentence]


def new_runs_told(alone: Sequence[Nowhere]) -> str:
    """Of releases without open runs, which are not named one by one; empty: there are none."""
    names = [one.release for one in alone if not one.has_runs]
    if not names:
        return ""
    which = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    return f"New runs of {which} would wait until another worker serves {'it' if len(names) == 1 else 'them'}."


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
        longest=longest_timeout(reach, found, user),
        nowhere=nowhere(reach, found, user),
        taken_by=str(GateExists(scope, gate.pk, gate.actor, gate.reason, gate.created_at)) if gate else "",
        unknown=unknown_in(scope),
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """A drain as it is now. `began_with`: runs in flight when it was ordered; None for who sees but some agents.

    `left_behind`: by workers that were lost since then; `lost`: by others, before.
    """

    drain: Drain
    as_of: datetime
    in_flight: Sequence[InFlight]
    left_behind: Sequence[InFlight]
    blockers: Sequence[Blocker]
    not_yet_at: Sequence[str]  # workers that may not have heard of the gate
    parked: Mapping[str, int]
    at_gate: int
    in_doubt: int
    lost: int
    nowhere: Sequence[Nowhere]
    longest: Longest | None
    unknown: str
    began_with: int | None

    @property
    def remaining(self) -> int:
        """At no checkpoint yet."""
        return len(self.in_flight) + len(self.left_behind)

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
        seconds = (self.drain.deadline_at - self.drain.created_at).total_seconds()
        return warned(self.unknown, self.longest, seconds, self.nowhere)

    @property
    def done_by(self) -> datetime | None:
        """When every call that is open is over by its timeout."""
        return max((one.ends_by for one in self.in_flight), default=None)


def progress(drain: Drain, user: Person | None = None) -> Progress:
    """What is in flight now, also after the deadline: calls may return until their process ends."""
    now, reach = database_now(), reach_of(drain.scope)
    found, gone = in_flight(reach, user), left_behind(reach, drain.created_at, user)
    return Progress(
        drain=drain,
        as_of=now,
        in_flight=found,
        left_behind=gone,
        blockers=blockers_of(found),
        not_yet_at=behind(drain.gate, reach, now) if drain.gate.lifted_at is None else (),
        parked=parked(reach, user),
        at_gate=at_gate(drain.scope, user) if drain.gate.lifted_at is None else 0,
        in_doubt=in_doubt(reach, user),
        lost=lost(reach, user) - (0 if reach.is_place else len(gone)),
        nowhere=[one for one in nowhere(reach, found, user) if one.now],
        longest=longest_timeout(reach, found, user),
        unknown=unknown_in(drain.scope),
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
            reach = reach_of(drain.scope)
            left = remaining(reach, user) + len(left_behind(reach, drain.created_at, user))
        made.append(Condition(drain, left, max((drain.deadline_at - now).total_seconds(), 0.0)))
    return made
