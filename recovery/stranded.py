"""What becomes of a run whose release no live worker serves.

Nobody takes it over from the worker that it lost, so its row is told here which intents it left open: people find them.
One that is being cancelled ends here: to stop needs no agent's code. What is open and surely was not done is withdrawn,
as a worker would. With a call in doubt it stays stranded: a worker of its release asks the tool, or a person says what
happened.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from psycopg import Connection

from journal.append import append_person, raise_epoch
from journal.crash import crash_point
from journal.read import read_entries
from runs import trees
from runs.engine import drafts
from runs.engine.drafts import SYSTEM
from runs.engine.projections import open_intents
from runs.state import fold

log = logging.getLogger("holdfast.sweep")

IS_CANCELLED = """
SELECT EXISTS (SELECT FROM journal_entry e WHERE e.run_id = %s AND e.kind = 'CONTROL'
                  AND position('"verb":"cancel"'::bytea IN e.body) > 0)
"""
LOCK_HEAD = "SELECT run_id FROM journal_head WHERE run_id = %s FOR NO KEY UPDATE SKIP LOCKED"
LOCK_RUN = """
SELECT id FROM runs_run WHERE id = %s AND status = 'waiting_for_version' AND session_id IS NULL FOR NO KEY UPDATE
"""
END = """
UPDATE runs_run SET status = 'cancelled', reason = '', since = clock_timestamp(), ended_at = clock_timestamp(),
       wake_at = NULL, intents = '[]', epoch = %s, as_of_seq = %s
 WHERE id = %s
"""


UNTOLD = "SELECT id FROM runs_run WHERE id = %s AND status = 'waiting_for_version' AND epoch > 0 AND intents = '[]'"
TELL = "UPDATE runs_run SET intents = %s::jsonb, doubts = greatest(doubts, %s) WHERE id = %s"


def tell_open(run_id: UUID, conn: Connection[Any]) -> None:
    """In the transaction that stranded it, which has its head: a row of which nothing is known open lists what is."""
    if conn.execute(UNTOLD, (run_id,)).fetchone() is None:
        return
    try:
        state = fold(run_id, read_entries(conn, run_id))
    except ValueError as error:  # a damaged journal: the chain's verification tells of it
        log.warning("run %s is stranded, and its journal cannot be read: %s", run_id, error)
        return
    started_by = state.started_by if state.parent is None else trees.started_by(run_id, conn)
    asked_by = state.fork["by"] if state.fork is not None else started_by
    doubts = sum(slot.doubted or slot.in_doubt for slot in state.slots.values() if slot.seq > state.copied_to)
    conn.execute(TELL, (open_intents(state, asked_by=asked_by), doubts, run_id))


def end_cancelled(run_id: UUID, conn: Connection[Any]) -> list[tuple[UUID, str]]:
    """Which runs are to be sent to workers because this one has ended: its parent, if that waited for it."""
    row = conn.execute(IS_CANCELLED, (run_id,)).fetchone()
    if row is None or not row[0] or not _ended(run_id, conn):
        return []
    due = trees.tell_parent(run_id, conn)
    return [] if due is None else [due]


def _ended(run_id: UUID, conn: Connection[Any]) -> bool:
    with conn.transaction():
        if (
            conn.execute(LOCK_HEAD, (run_id,)).fetchone() is None
            or conn.execute(LOCK_RUN, (run_id,)).fetchone() is None
        ):
            return False
        state = fold(run_id, read_entries(conn, run_id))
        open_slots = state.unsettled()
        if state.cancel is None or state.beyond is not None or any(slot.in_doubt for slot in open_slots):
            return False
        entries = [drafts.withdrawn(slot, "the run was cancelled") for slot in open_slots]
        entries.append(drafts.cancelled(state.cancel))
        written = append_person(run_id, entries, request_id=None, actor=SYSTEM, conn=conn)
        crash_point("before-cancelled")
        conn.execute(END, (raise_epoch(run_id, conn), written.last_seq, run_id))
    return True
