"""Reading runs: rows, folds, and the short ids that people read aloud."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils.dateparse import parse_datetime

from journal.entries import Entry
from journal.read import read_entries, read_tails
from runs.access import Person, agents_of, seen_by
from runs.engine.projections import intent_record
from runs.errors import JournalDamaged, RunAmbiguous, RunNotFound
from runs.models import Run
from runs.short_ids import short_id, tail_of
from runs.slots import Slot
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


# JSON that no list shows, and that would be parsed once a row.
UNLISTED = (
    "release__content",
    "release__declared",
    "session__serves",
    "session__codes",
    "session__totals",
    "intents",
    "input",
    "ending",
    "request_digest",
)


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
    slot: Slot


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
        deadline = parse_datetime(listed["deadline"]) if listed["deadline"] else None
        since = datetime.fromisoformat(listed["since"])
        yield IntentView(
            run.id, slot.seq, slot.step, slot.tool, slot.args, slot.key, listed["digest"], slot.effect, slot.state,
            since, deadline, listed["attempt"], worker, slot,
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
