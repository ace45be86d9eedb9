"""Evidence: results that the journal refused because their run had gone to another epoch, or was settled meanwhile."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import Connection

from journal.encoding import decode, encode
from journal.entries import Draft

SETTLED_ALIKE = """
SELECT body FROM journal_entry WHERE run_id = %s AND settles = %s
"""
INSERT = """
INSERT INTO runs_evidence (run_id, step, epoch, session_id, body, outcome) VALUES (%s, %s, %s, %s, %s, %s)
"""
# A run that waits for somebody to say what happened is looked at again. Head first, as everywhere.
WAKE = """
WITH head AS (SELECT run_id FROM journal_head WHERE run_id = %(run)s FOR NO KEY UPDATE)
UPDATE runs_run r SET status = 'queued', reason = 'a late result arrived', since = clock_timestamp(), wake_at = NULL
  FROM head WHERE r.id = head.run_id AND r.session_id IS NULL AND r.status IN ('needs_reconciliation', 'waiting')
RETURNING r.release_id
"""
LATE = """
SELECT DISTINCT ON (step) id, step, epoch, body FROM runs_evidence
WHERE run_id = %s AND step = ANY (%s) AND outcome = 'succeeded' AND adopted_seq IS NULL ORDER BY step, id
"""
ADOPTED = "UPDATE runs_evidence SET adopted_seq = %s WHERE id = %s"


def keep(conn: Connection[Any], run_id: UUID, epoch: int, session_id: UUID | None, draft: Draft) -> str | None:
    """Keep an OBS that could not be written; the release id of a run that it woke, else None.

    A resend may be answered *lost* although its first try was written: what the journal has already is no evidence.
    """
    outcome = draft.body.get("outcome")
    if draft.step is None or outcome is None:
        return None
    settled = conn.execute(SETTLED_ALIKE, (run_id, draft.step)).fetchone()
    body = encode(draft.body)
    if settled is not None and bytes(settled[0]) == body:
        return None
    with conn.transaction():
        conn.execute(INSERT, (run_id, draft.step, epoch, session_id, body, outcome))
        if settled is None and outcome == "succeeded":
            woken = conn.execute(WAKE, {"run": run_id}).fetchone()
            return str(woken[0]) if woken else None
    return None


def late_successes(
    conn: Connection[Any], run_id: UUID, steps: list[int]
) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Step, OBS body and origin of each late success that nobody has adopted."""
    rows = conn.execute(LATE, (run_id, steps)).fetchall()
    return [(step, decode(bytes(body)), {"evidence": number, "epoch": epoch}) for number, step, epoch, body in rows]


def adopt(conn: Connection[Any], number: int, seq: int) -> None:
    conn.execute(ADOPTED, (seq, number))
