"""The rows of stateless runs, which have no journal: start, cancel, sweep. runs/engine/stateless.py drives them.

They only read, so that one whose worker died can be started again by whoever wants it; nothing is taken over. The row
itself is what others lock a journal's head for: each statement here looks at it and changes it at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from journal.encoding import encode
from runs.audit import told
from runs.texts import plain_text

WORKER_LOST = "worker lost, start again"

BEGIN = """
WITH known AS (SELECT id FROM runs_release WHERE id = %(release)s), made AS (
    INSERT INTO runs_run (id, agent, release_id, labels, request_key, request_digest, reason, intents, priority,
                          deadline_at, business_id, input)
    SELECT holdfast_uuid7(), %(agent)s, known.id, %(labels)s::jsonb, %(key)s, %(digest)s, 'waits for a worker', '[]',
           %(priority)s, to_timestamp(%(deadline)s::float8), %(business)s, %(input)s
      FROM known ON CONFLICT DO NOTHING RETURNING id, created_at)
SELECT (SELECT id FROM known), (SELECT id FROM made), (SELECT created_at FROM made),
       (SELECT runs_audit_v2(%(only_if)s, %(actor)s, %(act)s, %(door)s, %(address)s, made.id, %(agent)s, %(subject)s,
                             %(why)s, %(detail)s::jsonb) FROM made)
"""
CANCEL = """
WITH gone AS (
    UPDATE runs_run SET status = 'cancelled', reason = %(reason)s, ending = %(ending)s, since = clock_timestamp(),
       ended_at = clock_timestamp(), session_id = NULL, epoch = epoch + 1
 WHERE id = %(run)s AND input IS NOT NULL AND ended_at IS NULL RETURNING id, agent)
SELECT id, runs_audit_v2(true, %(actor)s, %(act)s, %(door)s, %(address)s, id, agent, %(subject)s, %(why)s,
                         %(detail)s::jsonb)
  FROM gone
"""
BURY = """
UPDATE runs_run r SET status = 'failed', reason = %(reason)s, ending = %(ending)s, since = clock_timestamp(),
       ended_at = clock_timestamp(), session_id = NULL
  FROM runs_workersession s
 WHERE s.id = r.session_id AND s.ended_at IS NOT NULL AND r.input IS NOT NULL AND r.status = 'running'
"""
CANCEL_LATE = """
UPDATE runs_run SET status = 'cancelled', reason = 'its deadline has passed', ending = %(ending)s,
       since = clock_timestamp(), ended_at = clock_timestamp(), session_id = NULL, epoch = epoch + 1
 WHERE deadline_at <= clock_timestamp() AND ended_at IS NULL AND input IS NOT NULL
"""
# Like the sweep's own for runs with a journal: queued and reached by no message, or stopped by a gate that was lifted.
WAITING = """
SELECT r.id, r.release_id, EXISTS (SELECT FROM runs_workersession w WHERE w.ended_at IS NULL AND w.draining_at IS NULL
                                   AND w.serves @> ARRAY[r.release_id] AND runs_place_gate_v1(w.id) IS NULL)
  FROM runs_run r
 WHERE r.input IS NOT NULL AND r.session_id IS NULL AND r.ended_at IS NULL
   AND (NOT starts_with(r.reason, 'gate ') OR NOT EXISTS (SELECT FROM runs_gate g WHERE g.lifted_at IS NULL
                                          AND starts_with(r.reason, 'gate ' || g.scope || ': ')))
   AND (r.dispatched_at IS NULL AND r.since < clock_timestamp() - make_interval(secs => %(young)s)
        OR r.dispatched_at
           < clock_timestamp() - make_interval(secs => least(60, %(young)s * 2 ^ least(r.dispatches, 10))))
 ORDER BY r.priority DESC, r.id LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
"""
NOTE_SENT = """
UPDATE runs_run SET dispatched_at = clock_timestamp(), dispatches = dispatches + 1, reason = 'waits for a worker',
       since = CASE WHEN status = 'queued' THEN since ELSE clock_timestamp() END, status = 'queued'
 WHERE id = ANY (%s)
"""
STRANDED = """
UPDATE runs_run r SET status = 'waiting_for_version', since = clock_timestamp(), dispatched_at = clock_timestamp(),
       dispatches = 1, reason = 'waits for a worker that serves ' || (SELECT agent || '@' || version FROM runs_release
                                                                       WHERE id = r.release_id)
 WHERE id = ANY (%s) AND status <> 'waiting_for_version'
"""


# -- start and cancel --------------------------------------------------------------------------------------------------


def begin(
    release_id: str, agent: str, input: Any, labels: Mapping[str, str], key: str | None, digest: bytes | None,
    priority: int, deadline: float | None, business_id: str | None, audit: Mapping[str, Any],
) -> tuple[UUID | None, datetime | None] | None:  # fmt: skip
    """Id and time of the new run. None: its request key or business id is taken; (None, None): unknown release.

    `audit`: what the audit list says of it.
    """
    given = {
        "release": release_id, "agent": agent, "labels": json.dumps(dict(labels)), "key": key, "digest": digest,
        "priority": priority, "deadline": deadline, "business": business_id, "input": encode(input),
    }  # fmt: skip
    given |= audit
    with connection.cursor() as cursor:
        cursor.execute(BEGIN, given)
        known, made, created_at, _ = cursor.fetchone()
    if known is None:
        return None, None
    return (made, created_at) if made is not None else None


def cancel(run_id: UUID, reason: str, actor: str) -> bool:
    """At once, also while a worker is on it: what it finds out is then of no use. False: not stateless, or ended."""
    said = f"cancelled by {actor}: {reason}"
    ending = encode({"cancelled": reason})
    given: dict[str, Any] = {"run": run_id, "reason": plain_text(said), "ending": ending}
    given |= told(actor, "run.cancel", run_id, "", "", reason, {})
    with connection.cursor() as cursor:
        cursor.execute(CANCEL, given)
        return cursor.fetchone() is not None


# -- sweep -------------------------------------------------------------------------------------------------------------


def sweep(conn: psycopg.Connection[Any], young: float, batch: int, dispatch: Callable[[UUID, str], bool]) -> int:
    """End what a worker left, cancel what is late, send what no message reached. How many messages went out.

    `young`: seconds after which a queued run is thought to be forgotten.
    """
    conn.execute(BURY, {"reason": WORKER_LOST, "ending": encode({"error": {"reason": WORKER_LOST}})})
    conn.execute(CANCEL_LATE, {"ending": encode({"cancelled": "its deadline has passed"})})
    with conn.transaction():
        rows = conn.execute(WAITING, {"young": young, "batch": batch}).fetchall()
        served = [(run_id, release_id) for run_id, release_id, is_served in rows if is_served]
        if served:
            conn.execute(NOTE_SENT, ([run_id for run_id, _ in served],))
        if stranded := [run_id for run_id, _, is_served in rows if not is_served]:
            conn.execute(STRANDED, (stranded,))
    return sum(dispatch(run_id, release_id) for run_id, release_id in served)
