"""Lists of runs, a page at a time by keyset: no page repeats or skips a run because others were started meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from runs.access import Person
from runs.errors import CursorUnknown
from runs.models import ENDED, Release, Run, Status
from runs.queries import UNLISTED
from runs.query_language import Term, parse
from runs.query_meaning import BY_GATE, WITH_QUESTION, Reader, first_id, of_words, runs_meant

PER_PAGE = 50
# What the console shows beside a run, and the API and the shell do not.
BESIDE = (
    "awaits", "awaits_signals", "awaits_any", "tools", "at", "person_acted", "crash_seq", "dispatched_at", "dispatches",
    "parent_told",
)  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Who needs a person first: each part by (status, since), the longest waiting first; then all others, the newest first.
NEEDS: tuple[Q, ...] = (
    Q(status=Status.NEEDS_RECONCILIATION, ended_at__isnull=True),
    Q(status=Status.AWAITING_APPROVAL, ended_at__isnull=True),
    WITH_QUESTION & Q(ended_at__isnull=True),
    Q(status=Status.QUARANTINED, ended_at__isnull=True),
    Q(status=Status.HELD, ended_at__isnull=True) & ~BY_GATE,
)
NEEDS_NOBODY = (
    ~Q(status__in=[Status.NEEDS_RECONCILIATION, Status.AWAITING_APPROVAL, Status.QUARANTINED])
    & (~Q(status=Status.HELD) | BY_GATE)
    & (~Q(status=Status.WAITING) | ~WITH_QUESTION)
)
OPEN = tuple(status for status in Status if status not in ENDED)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a list under one order, and how it goes on behind a run."""

    runs: QuerySet[Run]
    by: tuple[str, ...]
    behind: Callable[[QuerySet[Run], str], QuerySet[Run]]
    place: Callable[[Run], str]


def list_runs(
    *,
    status: Sequence[str] = (),
    agent: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
    parent: UUID | None = None,
    started: tuple[datetime | None, datetime | None] = (None, None),
    text: str | None = None,
    query: str | None = None,
    after: str | None = None,
    limit: int = PER_PAGE,
    user: Person | None = None,
) -> tuple[list[Run], str | None]:
    """The newest first, by keyset: `after` is the cursor of the page before. Raises CursorUnknown, QueryInvalid.

    Those that `user` may see, None: all. `started`: from a time on, and before one. `query`: see runs/query_language.
    """
    runs = runs_meant(parse(query or ""), Reader(user))
    if status:
        runs = runs.filter(status__in=status)
    if agent:
        runs = runs.filter(agent=agent)
    if release:
        runs = runs.filter(release_id__in=releases_named(release))
    if labels:
        runs = runs.filter(labels__contains=dict(labels))
    if parent:
        runs = runs.filter(parent_id=parent)
    since, before = started
    if since:
        runs = runs.filter(id__gte=first_id(since))
    if before:
        runs = runs.filter(id__lt=first_id(before))
    if text:
        runs = runs.none() if "\0" in text else runs.filter(of_words([Term("", text, 0, 0)], Reader(user)))
    return read_page(newest(runs), after, limit, (*UNLISTED, *BESIDE))


def releases_named(name: str) -> list[str]:
    """By id, or by agent@version: a version has several where its content was redefined in development."""
    agent, _, version = name.partition("@")
    named = Release.objects.filter(Q(id=name) | Q(agent=agent, version=version))
    return list(named.values_list("id", flat=True))


# -- orders ------------------------------------------------------------------------------------------------------------


def newest(runs: QuerySet[Run]) -> list[Part]:
    return [Part(runs, ("-id",), lambda rows, place: rows.filter(id__lt=uuid_in(place)), lambda run: str(run.id))]


def oldest(runs: QuerySet[Run]) -> list[Part]:
    return [Part(runs, ("id",), lambda rows, place: rows.filter(id__gt=uuid_in(place)), lambda run: str(run.id))]


def longest(runs: QuerySet[Run]) -> list[Part]:
    """Open runs by since when they stand as they stand."""
    return [by_since(runs.filter(ended_at__isnull=True))]


def needs_person_first(runs: QuerySet[Run]) -> list[Part]:
    return [by_since(runs.filter(need)) for need in NEEDS] + newest(runs.filter(NEEDS_NOBODY))


def by_since(runs: QuerySet[Run]) -> Part:
    return Part(runs, ("since", "id"), behind_since, lambda run: f"{micros(run.since)}.{run.id}")


def behind_since(rows: QuerySet[Run], place: str) -> QuerySet[Run]:
    stamp, _, run_id = place.partition(".")
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 17:
        raise ValueError(place)
    since = EPOCH + timedelta(microseconds=int(stamp))
    return rows.filter(Q(since__gt=since) | Q(since=since, id__gt=uuid_in(run_id)), since__gte=since)


def micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def uuid_in(text: str) -> UUID:
    return UUID(text)


ORDERS: dict[str, tuple[str, Callable[[QuerySet[Run]], list[Part]]]] = {
    "person": ("Needs a person first", needs_person_first),
    "newest": ("Newest first", newest),
    "oldest": ("Oldest first", oldest),
    "longest": ("Longest waiting first", longest),
}


# -- pages -------------------------------------------------------------------------------------------------------------


def page_of(
    terms: Sequence[Term], reader: Reader, order: str, after: str | None, limit: int = PER_PAGE
) -> tuple[list[Run], str | None]:
    """The runs that match, with their intents, and where the next page begins. Raises QueryInvalid, CursorUnknown."""
    unlisted = tuple(name for name in UNLISTED if name != "intents")
    return read_page(ORDERS[order][1](runs_meant(terms, reader)), after, limit, unlisted)


def read_page(
    parts: Sequence[Part], after: str | None, limit: int, unlisted: Sequence[str]
) -> tuple[list[Run], str | None]:
    found: list[tuple[str, Run]] = []
    for number, rows, part in remaining(parts, after):
        rows = rows.select_related("release", "session").defer(*unlisted).order_by(*part.by)
        lead = f"{number}." if len(parts) > 1 else ""
        found += [(lead + part.place(run), run) for run in rows[: limit + 1 - len(found)]]
        if len(found) > limit:
            break
    return [run for _, run in found[:limit]], found[limit - 1][0] if len(found) > limit else None


def remaining(parts: Sequence[Part], after: str | None) -> Iterator[tuple[int, QuerySet[Run], Part]]:
    """The parts from where the page before ended."""
    first, place = 0, after or ""
    try:
        if after and len(parts) > 1:
            written, _, place = after.partition(".")
            first = int(written)
            if not 0 <= first < len(parts):
                raise ValueError(after)
        behind = parts[first].behind(parts[first].runs, place) if after else parts[first].runs
    except ValueError:
        raise CursorUnknown(after or "") from None
    yield first, behind, parts[first]
    for number in range(first + 1, len(parts)):
        yield number, parts[number].runs, parts[number]
