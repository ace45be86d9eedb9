"""What is in flight in a scope: the runs that live workers hold, what each does just now, and where else it could go.

In flight is what a session holds that nobody has ended, also one that is silent: its process may still be at work. What
an ended session left behind is not in flight, and not at a checkpoint either; resume has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, QuerySet

from journal.read import read_tails
from runs.access import Person, seen_by, sees
from runs.engine.stateless import LONGEST
from runs.engine.worker import DECISION_LIMIT
from runs.models import Release, Run, WorkerSession
from runs.open_gates import names_of
from runs.state import RunState, fold

CALL, MODEL, BETWEEN, STATELESS = "call", "model", "between", "stateless"
BATCH = 200  # journals read at once


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Of one release, in seconds: of each tool, and of its model's requests."""

    agent: str
    version: str
    tools: dict[str, float]
    model: str
    model_seconds: float

    def __str__(self) -> str:
        return f"{self.agent}@{self.version}"


@lru_cache(maxsize=512)
def timeouts_of(release_id: str) -> Timeouts:
    """A release is immutable, so it is read but once."""
    release = Release.objects.get(id=release_id)
    tools = {tool["name"]: float(tool.get("timeout", 60.0)) for tool in release.content.get("tools") or ()}
    model = release.content.get("model") or {}
    name = str(model.get("name", ""))
    return Timeouts(release.agent, release.version, tools, name, float(model.get("timeout", 0.0)))


# -- a scope, resolved -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """`sessions`: not ended, in the scope or serving what it names. `elsewhere`: not ended, and outside of it.

    `releases`: ids, where the scope names an agent, a release or a tool; None: any.
    """

    kind: str
    what: str
    sessions: Sequence[WorkerSession]
    elsewhere: Sequence[WorkerSession] = ()
    releases: frozenset[str] | None = None

    @property
    def is_place(self) -> bool:
        """Whether its runs go on at other workers, rather than wait for the gate."""
        return self.kind in ("worker", "region")

    @property
    def tool(self) -> str | None:
        return self.what if self.kind == "tool" else None

    def contains(self, session: WorkerSession) -> bool:
        """Of a place."""
        return (
            self.what in names_of(session.name, session.pool) if self.kind == "worker" else session.region == self.what
        )


def reach_of(scope: str) -> Reach:
    kind, _, what = scope.partition(":")
    live = list(WorkerSession.objects.filter(ended_at__isnull=True).defer("totals", "codes").order_by("name"))
    if kind in ("worker", "region"):
        place = Reach(kind, what, ())
        inside = [session for session in live if place.contains(session)]
        return Reach(kind, what, inside, [session for session in live if session not in inside])
    named = releases_in(kind, what)
    if named is None:
        return Reach(kind, what, live)
    ids = frozenset(named.values_list("id", flat=True))
    return Reach(kind, what, [session for session in live if ids.intersection(session.serves)], (), ids)


def releases_in(kind: str, what: str) -> QuerySet[Release] | None:
    """Those that the scope names; None: it names none."""
    match kind:
        case "agent":
            return Release.objects.filter(agent=what)
        case "release":
            agent, _, version = what.partition("@")
            return Release.objects.filter(agent=agent, version=version)
        case "tool":
            return Release.objects.filter(content__tools__contains=[{"name": what}])
    return None


# -- what is in flight -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call or a model request that was sent and has not been answered yet. `ends_by`: its timeout, at the latest."""

    does: str
    tool: str
    since: datetime
    ends_by: datetime
    seq: int = 0
    step: int | None = None
    key: str = ""
    effect: str = ""
    attempt: int = 1

    @property
    def name(self) -> str:
        return f"model {self.tool}".strip() if self.does == MODEL else self.tool


@dataclass(frozen=True, slots=True)
class InFlight:
    """A run that a worker holds. `calls`: the oldest first; none: it is between two steps, or decides."""

    run_id: UUID
    agent: str
    version: str
    release_id: str
    session_id: UUID
    worker: str
    region: str
    does: str
    since: datetime
    ends_by: datetime
    calls: Sequence[OpenCall] = ()

    @property
    def call(self) -> OpenCall | None:
        """The one that keeps it longest from a checkpoint, as far as is known."""
        return max(self.calls, key=lambda call: call.ends_by, default=None)

    @property
    def doing(self) -> str:
        """What it does, by name: a tool, `model M`, `between steps`, `stateless run`."""
        if self.call is not None:
            return self.call.name
        return "stateless run" if self.does == STATELESS else "between steps"

    def ends_in_time(self, deadline: datetime) -> bool:
        """Whether every open call is over by its timeout before the deadline."""
        return self.ends_by <= deadline


def held_runs(reach: Reach, user: Person | None = None) -> QuerySet[Run]:
    """The rows of runs that sessions in the scope hold. For a tool, all that could be calling it."""
    rows = Run.objects.filter(session_id__in=[session.id for session in reach.sessions], ended_at__isnull=True)
    if reach.releases is not None:
        rows = rows.filter(release_id__in=reach.releases)
    return seen_by(user, rows)


HELD = ("id", "agent", "release_id", "session_id", "since", "input")


def in_flight(reach: Reach, user: Person | None = None) -> list[InFlight]:
    """Exactly what is in flight now, the longest at what it does first."""
    return told_in(held_runs(reach, user), {session.id: session for session in reach.sessions}, reach.tool)


def left_behind(reach: Reach, since: datetime, user: Person | None = None) -> list[InFlight]:
    """As they were: runs that workers in the scope held when they were lost, or left with a call open, since then."""
    ended = WorkerSession.objects.filter(ended_at__gte=since, run__ended_at__isnull=True).distinct()
    gone = {session.id: session for session in ended if not reach.is_place or reach.contains(session)}
    rows = Run.objects.filter(session_id__in=gone, ended_at__isnull=True)
    if reach.releases is not None:
        rows = rows.filter(release_id__in=reach.releases)
    return told_in(seen_by(user, rows), gone, reach.tool) if gone else []


def told_in(held: QuerySet[Run], workers: Mapping[UUID, WorkerSession], tool: str | None) -> list[InFlight]:
    rows = list(held.only(*HELD))
    found: list[InFlight] = []
    for first in range(0, len(rows), BATCH):
        part = rows[first : first + BATCH]
        tails = read_tails(None, [row.id for row in part], undecided=True)
        for row in part:
            assert row.session_id is not None
            told = told_of(row, workers[row.session_id], fold(row.id, tails.get(row.id, ())))
            if tool is None or any(call.does == CALL and call.tool == tool for call in told.calls):
                found.append(told)
    return sorted(found, key=lambda one: (one.since, one.run_id))


def told_of(row: Run, session: WorkerSession, state: RunState) -> InFlight:
    known = timeouts_of(row.release_id)
    calls = sorted(open_calls(state, known), key=lambda call: call.since)
    if row.input is not None:
        does, since, longest = STATELESS, row.since, LONGEST
    else:
        does, since, longest = BETWEEN, max([row.since, *state.times[-1:]]), DECISION_LIMIT
    if calls:
        does, since = calls[0].does, calls[0].since
    ends_by = max((call.ends_by for call in calls), default=since + timedelta(seconds=longest))
    return InFlight(
        row.id, row.agent, known.version, row.release_id, session.id, session.name, session.region, does, since,
        ends_by, tuple(calls),
    )  # fmt: skip


def open_calls(state: RunState, known: Timeouts) -> Iterable[OpenCall]:
    if (asked := state.model_attempt) is not None:
        ends_by = asked.at + timedelta(seconds=known.model_seconds or 60.0)
        name = str(asked.told.get("model") or known.model)  # a fallback, perhaps
        yield OpenCall(MODEL, name, asked.at, ends_by, asked.seq, attempt=asked.number)
    for slot in state.unsettled():
        if not slot.in_doubt:
            continue
        last = slot.attempts[-1]
        ends_by = last.at + timedelta(seconds=known.tools.get(slot.tool, 60.0))
        yield OpenCall(CALL, slot.tool, last.at, ends_by, slot.seq, slot.step, slot.key, slot.effect, last.number)


@dataclass(frozen=True, slots=True)
class Blocker:
    """What several runs are at: a tool, a model, or the time between two steps. `ends_by`: of the last, its timeout."""

    name: str
    does: str
    count: int
    since: datetime
    ends_by: datetime

    def ends_in_time(self, deadline: datetime) -> bool:
        return self.ends_by <= deadline


def blockers_of(found: Iterable[InFlight]) -> list[Blocker]:
    """Grouped by name, whatever lasts longest first."""
    groups: dict[tuple[str, str], list[tuple[datetime, datetime]]] = {}
    for one in found:
        spans = [((call.name, call.does), (call.since, call.ends_by)) for call in one.calls]
        for name, span in spans or [((one.doing, one.does), (one.since, one.ends_by))]:
            groups.setdefault(name, []).append(span)
    made = [
        Blocker(name, does, len(spans), min(began for began, _ in spans), max(end for _, end in spans))
        for (name, does), spans in groups.items()
    ]
    return sorted(made, key=lambda blocker: blocker.since)


# -- what else the scope touches ---------------------------------------------------------------------------------------

PARKED = (
    "queued", "waiting", "awaiting_approval", "needs_reconciliation", "waiting_for_version", "held", "quarantined",
)  # fmt: skip
ARRIVING = timedelta(minutes=10)  # over which arrivals are counted


def parked(reach: Reach, user: Person | None = None) -> dict[str, int]:
    """Runs in the scope that no worker holds, by status: they do not block a drain. At a place, none is parked."""
    if reach.is_place:
        return {}
    rows = seen_by(user, Run.objects.filter(status__in=PARKED, session_id__isnull=True))
    if reach.tool is not None:
        rows = rows.filter(release_id__in=reach.releases or (), at=reach.tool)
    elif reach.kind == "agent":
        rows = rows.filter(agent=reach.what)
    elif reach.releases is not None:
        rows = rows.filter(release_id__in=reach.releases)
    return dict(rows.order_by().values_list("status").annotate(n=Count("id")))


def at_gate(scope: str, user: Person | None = None) -> int:
    """Runs that wait for this very gate to be lifted, queued or held."""
    rows = Run.objects.filter(status__in=("queued", "held"), reason__contains=f"gate {scope}: ")
    return seen_by(user, rows).count()


def in_doubt(reach: Reach, user: Person | None = None) -> int:
    """Runs in the scope that wait with a call of which nobody knows whether it happened."""
    if reach.is_place:
        return 0
    wanted: dict[str, Any] = {"state": "in_doubt"} | ({"tool": reach.tool} if reach.tool is not None else {})
    rows = Run.objects.filter(intents__contains=[{"state": "in_doubt"}], session_id__isnull=True)
    if reach.tool is not None:
        rows = rows.filter(intents__contains=[wanted])
    if reach.releases is not None:
        rows = rows.filter(release_id__in=reach.releases)
    return seen_by(user, rows).count()


def lost(reach: Reach, user: Person | None = None) -> int:
    """Runs in the scope whose worker is gone and that nobody has taken over yet."""
    if reach.is_place:
        return 0
    rows = Run.objects.filter(session__ended_at__isnull=False, ended_at__isnull=True)
    if reach.releases is not None:
        rows = rows.filter(release_id__in=reach.releases)
    return seen_by(user, rows).count()


def arrivals(reach: Reach, now: datetime, user: Person | None = None) -> float | None:
    """New runs a second in the scope, over the last ten minutes; None where new runs belong to no such scope."""
    if reach.is_place or reach.tool is not None:
        return None
    first = UUID(int=int((now - ARRIVING).timestamp() * 1000) << 80)  # ids begin with their time
    rows = Run.objects.filter(id__gte=first)
    if reach.kind == "agent":
        rows = rows.filter(agent=reach.what)
    elif reach.releases is not None:
        rows = rows.filter(release_id__in=reach.releases)
    return seen_by(user, rows).count() / ARRIVING.total_seconds()


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest that one call in the scope may take: a tool's timeout, or a model's."""

    seconds: float
    name: str
    release: str


def longest_timeout(reach: Reach, found: Iterable[InFlight] = (), user: Person | None = None) -> Longest | None:
    """Over the releases that its workers serve, and those of what is in flight; None: nothing there can call. For
    somebody with a scope, over the releases of their agents."""
    ids = {one.release_id for one in found}
    ids |= {id for session in reach.sessions for id in session.serves if reach.releases is None or id in reach.releases}
    made: list[Longest] = []
    for known in map(timeouts_of, ids):
        if not sees(user, known.agent):
            continue
        for tool, seconds in known.tools.items():
            if reach.tool in (None, tool):
                made.append(Longest(seconds, tool, str(known)))
        if known.model and reach.tool is None:
            made.append(Longest(known.model_seconds, f"model {known.model}", str(known)))
    return max(made, key=lambda one: (one.seconds, one.name), default=None)


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
