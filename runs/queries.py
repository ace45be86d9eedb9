"""Reading runs: rows, folds, and the short ids that people read aloud."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from journal.entries import Entry
from journal.read import read_entries, read_tails
from runs.access import Person, agents_of, seen_by
from runs.engine.projections import intent_record
from runs.errors import CursorUnknown, JournalDamaged, RunAmbiguous, RunNotFound
from runs.models import Release, Run
from runs.short_ids import short_id, tail_of
from runs.state import RunState, fold
from runs.trees import DEEPEST


def find_run(ref: str, user: Person | None = None) -> Run:
    """By UUID or short id, among those that the user may see. Raises RunNotFound, RunAmbiguous (listing both)."""
    runs = seen_by(user, Run.objects.select_related("release", "session"))
    try:
        found = list(runs.filter(id=UUID(ref)))
    except ValueError:
        found = list(runs.filter(id__in=ids_ending_in(ref))[:10])
    if not found:
        raise RunNotFound(f"({ref[:60]})")
    if len(found) > 1:
        raise RunAmbiguous([str(run.id) for run in found])
    return found[0]


def ids_ending_in(ref: str) -> list[UUID]:
    tail = tail_of(ref)
    if tail is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(ENDING_IN, [tail])
        return [row[0] for row in cursor.fetchall()]


ENDING_IN = "SELECT id FROM runs_run WHERE substring(uuid_send(id) FROM 12) = %s LIMIT 10"


def list_runs(
    *,
    status: Sequence[str] = (),
    agent: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
    parent: UUID | None = None,
    started: tuple[datetime | None, datetime | None] = (None, None),
    text: str | None = None,
    after: str | None = None,
    limit: int = 50,
    user: Person | None = None,
) -> tuple[list[Run], str | None]:
    """The newest first, by keyset: `after` is the cursor of the page before. Raises CursorUnknown.

    Those that `user` may see, None: all.

    `started`: from a time on, and before one. Ids begin with the time, so that new runs come in front of every page.
    """
    runs = seen_by(user, Run.objects.select_related("release", "session").defer(*UNLISTED).order_by("-id"))
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
        runs = matching(runs, text)
    if after:
        try:
            runs = runs.filter(id__lt=UUID(after))
        except ValueError:
            raise CursorUnknown(after) from None
    found = list(runs[: limit + 1])
    return found[:limit], str(found[limit - 1].id) if len(found) > limit else None


# JSON that no list shows, and that would be parsed once a row.
UNLISTED = (
    "release__content",
    "session__serves",
    "session__codes",
    "session__totals",
    "intents",
    "input",
    "ending",
    "request_digest",
)


def first_id(at: datetime) -> UUID:
    """The smallest id that a run started at this millisecond may have."""
    milliseconds = int(at.timestamp() * 1000)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)


def releases_named(name: str) -> list[str]:
    """By id, or by agent@version: a version has several where its content was redefined in development."""
    agent, _, version = name.partition("@")
    named = Release.objects.filter(Q(id=name) | Q(agent=agent, version=version))
    return list(named.values_list("id", flat=True))


def matching(runs: QuerySet[Run], text: str) -> QuerySet[Run]:
    """Runs that this text names: by id, short id, request key or business id; else those of an agent of this name."""
    if "\0" in text:
        return runs.none()
    ids = set(ids_ending_in(text))
    with suppress(ValueError):
        ids.add(UUID(text))
    with connection.cursor() as cursor:
        cursor.execute(NAMED, {"text": text})
        ids.update(row[0] for row in cursor.fetchall())
    if not ids and Release.objects.filter(agent=text).exists():
        return runs.filter(agent=text)
    return runs.filter(id__in=ids)


# Each part by its own index: one condition with OR would read the whole table.
NAMED = """
(SELECT id FROM runs_run WHERE request_key = %(text)s ORDER BY id DESC LIMIT 1000)
UNION (SELECT id FROM runs_run WHERE business_id = %(text)s ORDER BY id DESC LIMIT 1000)
"""


@dataclass(frozen=True, slots=True)
class IntentView:
    """One unsettled intent: what it would do, exactly, since when it waits, and which worker is on it."""

    run_id: UUID
    seq: int
    step: int
    tool: str
    args: Any
    key: str
    digest: str
    effect: str
    state: str
    since: datetime
    deadline: datetime | None
    attempt: int
    worker: str | None


# Parked runs tell of their intents in their row; what is under way, or was when its worker died, is in the journal.
WITH_INTENTS = """
SELECT id FROM (
    (SELECT id FROM runs_run WHERE NOT intents = '[]' AND id > %(after)s
        AND (%(agents)s::text[] IS NULL OR agent = ANY (%(agents)s))
        AND (%(state)s::text IS NULL OR intents @> jsonb_build_array(jsonb_build_object('state', %(state)s)))
     ORDER BY id LIMIT %(limit)s)
    UNION
    (SELECT id FROM runs_run WHERE status IN ('running', 'queued') AND epoch > 0 AND id > %(after)s
        AND (%(agents)s::text[] IS NULL OR agent = ANY (%(agents)s))
     ORDER BY id LIMIT %(limit)s)
) AS either ORDER BY id LIMIT %(limit)s
"""
FIRST_ID = UUID(int=0)


def list_intents(
    *, state: str | None = None, after: UUID | None = None, limit: int = 1000, user: Person | None = None
) -> tuple[list[IntentView], UUID | None]:
    """The unsettled intents of at most `limit` runs behind the run `after`, the oldest first, and where to go on.

    Of runs that `user` may see, None: of all.
    """
    within = agents_of(user)
    agents = None if within is None else sorted(within)
    given = {"state": state, "after": after or FIRST_ID, "limit": limit + 1, "agents": agents}
    with connection.cursor() as cursor:
        cursor.execute(WITH_INTENTS, given)
        ids = [row[0] for row in cursor.fetchall()]
    runs = Run.objects.select_related("session").in_bulk(ids[:limit])
    tails = read_tails(None, list(runs))
    found = [view for run_id, tail in tails.items() for view in intents_in(runs[run_id], tail)]
    wanted = [view for view in found if state is None or view.state == state]
    return sorted(wanted, key=lambda view: view.since), ids[limit - 1] if len(ids) > limit else None


def intents_in(run: Run, tail: Sequence[Entry]) -> Iterator[IntentView]:
    """Folded from the run's last decision on: whatever came before it is settled."""
    session = run.session
    worker = session.name if session and session.ended_at is None else None
    for slot in fold(run.id, tail).unsettled():
        if slot.kind != "call":
            continue
        listed = intent_record(slot)
        asked = slot.approval is not None and slot.approval.verdict == "requested"
        digest = slot.approval.digest if slot.approval and asked else slot.digest
        deadline = parse_datetime(listed["deadline"]) if listed["deadline"] else None
        since = datetime.fromisoformat(listed["since"])
        yield IntentView(
            run.id, slot.seq, slot.step, slot.tool, slot.args, slot.key, digest, slot.effect, slot.state, since,
            deadline, listed["attempt"], worker,
        )  # fmt: skip


def entries_of(run_id: UUID, after: int = 0, limit: int | None = None) -> list[Entry]:
    return read_entries(connection, run_id, after=after, limit=limit)


def state_of(run_id: UUID, at: int | None = None) -> RunState:
    """The fold of the journal, whole or up to and with seq `at`."""
    entries = read_entries(connection, run_id, limit=at)
    for seq, entry in enumerate(entries, 1):
        if entry.seq != seq:
            raise JournalDamaged(seq)
    return fold(run_id, entries)


# Of each child that has not ended, the nearest run in its tree that somebody has to see to.
STANDING = """
WITH RECURSIVE tree AS (
    SELECT id, id AS top, agent, status, reason, 1 AS depth FROM runs_run
     WHERE parent_id = %(run)s AND ended_at IS NULL
    UNION ALL
    SELECT r.id, tree.top, r.agent, r.status, r.reason, tree.depth + 1
      FROM runs_run r JOIN tree ON r.parent_id = tree.id WHERE r.ended_at IS NULL AND tree.depth < %(deepest)s
)
SELECT DISTINCT ON (top) top, id, agent, status, reason FROM tree
 WHERE status = ANY (%(need)s) OR status = 'waiting' AND reason LIKE 'asks: %%'
 ORDER BY top, depth, id
"""
NEED_SOMEBODY = {
    "awaiting_approval": "awaits approval", "needs_reconciliation": "needs reconciliation", "held": "is held",
    "quarantined": "is quarantined", "waiting_for_version": "waits for a version", "waiting": "waits for an answer",
}  # fmt: skip


def standing_below(run_id: UUID) -> dict[UUID, str]:
    """What keeps a child from ending that does not go on by itself, in one sentence, by the child's id."""
    need = [status for status in NEED_SOMEBODY if status != "waiting"]
    with connection.cursor() as cursor:
        cursor.execute(STANDING, {"run": run_id, "deepest": DEEPEST, "need": need})
        return {
            top: f"{agent} {short_id(below)} {NEED_SOMEBODY[status]}: {reason}"
            for top, below, agent, status, reason in cursor.fetchall()
        }
