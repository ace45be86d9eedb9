"""What a query means to the database: each term by an index, however many runs there are.

A term that excludes a few of a small known set asks for the others instead: "not done" is the open statuses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, cast
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from runs.access import Person, seen_by
from runs.errors import QueryInvalid, RunAmbiguous, RunNotFound
from runs.models import Release, Run, Status
from runs.queries import find_run
from runs.query_language import STATUS_WORDS, Term
from runs.repeated import runs_with_repeated
from runs.short_ids import tail_of

NONE = Q(pk__in=[])
NEED_PERSON = (
    Status.NEEDS_RECONCILIATION, Status.AWAITING_APPROVAL, Status.QUARANTINED, Status.HELD, Status.WAITING,
)  # fmt: skip
IN_DOUBT = [{"state": "in_doubt"}]
ASKED = [{"state": "asked"}]
BY_GATE = Q(status__in=(Status.HELD, Status.QUEUED), reason__startswith="gate ")
WITH_QUESTION = Q(status=Status.WAITING, intents__contains=ASKED) & ~Q(intents=[])
HAS: dict[str, Q] = {
    "person": Q(status__in=NEED_PERSON) & ~BY_GATE & (~Q(status=Status.WAITING) | Q(intents__contains=ASKED)),
    "question": WITH_QUESTION,
    "intent": Q(intents__contains=IN_DOUBT, ended_at__isnull=True) & ~Q(status=Status.RUNNING),  # a worker is on it
    "takeover": Q(taken_over_at__isnull=False),
    "acted": Q(person_acted=True) | Q(status=Status.CANCELLED),
    "repeated": Q(id__in=runs_with_repeated()),
    "overbudget": Q(status=Status.HELD, reason__startswith="brake:"),
    "stranded": Q(status=Status.WAITING_FOR_VERSION),
    "parent": Q(parent__isnull=False),
    "fork": Q(forked_from__isnull=False),
    "gate": BY_GATE,
}
FLIPPED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
LOOKUPS = {"=": "", ">": "__gt", ">=": "__gte", "<": "__lt", "<=": "__lte"}


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks, where their day begins, and when."""

    user: Person | None = None
    zone: tzinfo = UTC
    now: datetime = field(default_factory=timezone.now)


def meaning(terms: Sequence[Term], reader: Reader) -> Q:
    """Raises QueryInvalid for a parent that the reader cannot see."""
    found = Q()
    groups: dict[tuple[str, str], list[Term]] = {}
    for term in terms:
        if term.op != "=":
            found &= compared(term, reader)
        else:
            groups.setdefault((term.key, term.name), []).append(term)
    for (key, _), group in groups.items():
        wanted, refused = [t for t in group if not t.negated], [t for t in group if t.negated]
        found &= OF_SMALL_SETS[key](wanted, refused) if key in OF_SMALL_SETS else either(key, wanted, refused, reader)
    return found


def either(key: str, wanted: Sequence[Term], refused: Sequence[Term], reader: Reader) -> Q:
    """One of the wanted values, and none of the refused."""
    means = MEANINGS[key]
    found = means(wanted, reader) if wanted else Q()
    return found & ~means(refused, reader) if refused else found


# -- sets that are small -----------------------------------------------------------------------------------------------


def of_status(wanted: Sequence[Term], refused: Sequence[Term]) -> Q:
    chosen = set(statuses(wanted)) if wanted else set(Status.values)
    return Q(status__in=sorted(chosen - set(statuses(refused))))


def statuses(terms: Iterable[Term]) -> list[str]:
    return [status for term in terms for status in STATUS_WORDS[str(term.value)]]


def of_agent(wanted: Sequence[Term], refused: Sequence[Term]) -> Q:
    known = Release.objects.order_by().values_list("agent", flat=True).distinct()
    chosen = {str(term.value) for term in wanted} if wanted else set(known)
    return Q(agent__in=sorted(chosen - {str(term.value) for term in refused}))


OF_SMALL_SETS: dict[str, Callable[[Sequence[Term], Sequence[Term]], Q]] = {"status": of_status, "agent": of_agent}


# -- values ------------------------------------------------------------------------------------------------------------


def texts(terms: Iterable[Term]) -> list[str]:
    return [str(term.value) for term in terms]


def of_has(terms: Sequence[Term], reader: Reader) -> Q:
    return any_of(HAS[text] for text in texts(terms))


def of_release(terms: Sequence[Term], reader: Reader) -> Q:
    return Q(release_id__in=[release for text in texts(terms) for release in releases_meant(text)])


def releases_meant(text: str) -> list[str]:
    """By id, by agent@version, or by the version alone."""
    agent, at, version = text.rpartition("@")
    named = Q(id=text) | (Q(agent=agent, version=version) if at else Q(version=text))
    return list(Release.objects.filter(named).values_list("id", flat=True))


def of_label(terms: Sequence[Term], reader: Reader) -> Q:
    return any_of(Q(labels__contains={term.name: str(term.value)}) for term in terms)


def of_tool(terms: Sequence[Term], reader: Reader) -> Q:
    return Q(tools__overlap=texts(terms))


def of_at(terms: Sequence[Term], reader: Reader) -> Q:
    """A run that has ended stands at nothing any more."""
    return Q(at__in=texts(terms), ended_at__isnull=True) & ~Q(at="")


def of_region(terms: Sequence[Term], reader: Reader) -> Q:
    return Q(region__in=texts(terms)) & ~Q(region="")


def of_parent(terms: Sequence[Term], reader: Reader) -> Q:
    return Q(parent_id__in=[parent_meant(term, reader) for term in terms])


def of_fork(terms: Sequence[Term], reader: Reader) -> Q:
    return Q(forked_from_id__in=[parent_meant(term, reader) for term in terms])


def parent_meant(term: Term, reader: Reader) -> UUID:
    try:
        return find_run(str(term.value), reader.user).id
    except (RunNotFound, RunAmbiguous) as wrong:
        raise QueryInvalid(str(wrong), term.start, term.end - term.start) from None


def of_number(terms: Sequence[Term], reader: Reader) -> Q:
    return Q((f"{terms[0].key}__in", [term.value for term in terms]))


def of_started(terms: Sequence[Term], reader: Reader) -> Q:
    return any_of(within(*stretch(cast(Any, term.value), reader)) for term in terms)


def of_ended(terms: Sequence[Term], reader: Reader) -> Q:
    stretches = [stretch(cast(Any, term.value), reader) for term in terms]
    return any_of(Q(ended_at__gte=begins, ended_at__lt=ends) for begins, ends in stretches)


def of_words(terms: Sequence[Term], reader: Reader) -> Q:
    """Runs of these names; where none has one of them, those of agents that are called so."""
    ids = ids_named(texts(terms))
    agents = [] if ids else list(Release.objects.filter(agent__in=texts(terms)).values_list("agent", flat=True))
    return Q(agent__in=agents) if agents else Q(pk__in=ids)


MEANINGS: dict[str, Callable[[Sequence[Term], Reader], Q]] = {
    "": of_words, "has": of_has, "release": of_release, "label": of_label, "tool": of_tool, "at": of_at,
    "region": of_region, "parent": of_parent, "fork": of_fork, "epoch": of_number, "cost": of_number,
    "tokens": of_number,
    "started": of_started, "ended": of_ended,
}  # fmt: skip
# Each part by its own index: one condition with OR would read the whole table.
NAMED = """
(SELECT id FROM runs_run WHERE substring(uuid_send(id) FROM 12) = ANY (%(tails)s) LIMIT 1000)
UNION (SELECT id FROM runs_run WHERE request_key = ANY (%(texts)s) ORDER BY id DESC LIMIT 1000)
UNION (SELECT id FROM runs_run WHERE business_id = ANY (%(texts)s) ORDER BY id DESC LIMIT 1000)
"""


def ids_named(words: Collection[str]) -> set[UUID]:
    """By id, short id, request key or business id; by an effect's key (`<run>:7`) its run."""
    ids: set[UUID] = set()
    refs = [head if head and step.isdigit() else word for word in words for head, _, step in [word.rpartition(":")]]
    for ref in refs:
        with suppress(ValueError):
            ids.add(UUID(ref))
    others = [word for word, ref in zip(words, refs, strict=True) if len(ref) < 32 or not is_uuid(ref)]
    if others:
        tails = [tail for ref in refs if (tail := tail_of(ref)) is not None]
        with connection.cursor() as cursor:
            cursor.execute(NAMED, {"tails": tails, "texts": others})
            ids.update(row[0] for row in cursor.fetchall())
    return ids


def is_uuid(text: str) -> bool:
    with suppress(ValueError):
        UUID(text)
        return True
    return False


def any_of(parts: Iterable[Q]) -> Q:
    found = Q()
    for part in parts:
        found |= part
    return found


# -- comparisons -------------------------------------------------------------------------------------------------------


def compared(term: Term, reader: Reader) -> Q:
    op = FLIPPED[term.op] if term.negated else term.op
    match term.key:
        case "age":
            return started_in(FLIPPED_TIME[op], reader.now - cast(timedelta, term.value))
        case "ended" if isinstance(term.value, timedelta):
            return Q((f"ended_at{LOOKUPS[FLIPPED_TIME[op]]}", reader.now - term.value))
        case "ended":
            op, at = edge(op, term, reader)
            return Q((f"ended_at{LOOKUPS[op]}", at))
        case "started":
            return started_in(*edge(op, term, reader))
    return Q((f"{term.key}{LOOKUPS[op]}", term.value))


def edge(op: str, term: Term, reader: Reader) -> tuple[str, datetime]:
    """After a day means from its end on, until a day with the whole of it."""
    begins, ends = stretch(cast(Any, term.value), reader)
    return {">": ">=", "<=": "<"}.get(op, op), ends if op in (">", "<=") else begins


FLIPPED_TIME = {">": "<", ">=": "<=", "<": ">", "<=": ">="}  # who is older was started earlier


def started_in(op: str, at: datetime) -> Q:
    """Ids begin with the time."""
    return Q((f"id{LOOKUPS[op]}", first_id(at)))


def within(begins: datetime, ends: datetime) -> Q:
    return Q(id__gte=first_id(begins), id__lt=first_id(ends))


def first_id(at: datetime) -> UUID:
    """The smallest id that a run started at this millisecond may have."""
    milliseconds = int(at.timestamp() * 1000)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)


def stretch(value: str | date | datetime, reader: Reader) -> tuple[datetime, datetime]:
    """From when to when: a day is the reader's, a time is its own millisecond."""
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=reader.zone)
        return at, at + timedelta(milliseconds=1)
    today = reader.now.astimezone(reader.zone).date()
    days = {"today": today, "yesterday": today - timedelta(days=1)}
    day = value if isinstance(value, date) else days[value]
    begins = datetime.combine(day, time.min, reader.zone)
    following = datetime.combine(day + timedelta(days=1), time.min, reader.zone) if day < date.max else begins
    return begins, following


def runs_meant(terms: Sequence[Term], reader: Reader) -> QuerySet[Run]:
    """The runs that match and that the reader may see. Raises QueryInvalid."""
    return seen_by(reader.user, Run.objects.filter(meaning(terms, reader)))
