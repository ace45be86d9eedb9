"""The sweep: finds runs that nobody drives and sends them to a worker. It re-queues, it never executes.

Any number of sweepers may run; each statement takes what no other holds. A sweeper ends sessions for expiry only after
a whole lease of unbroken contact with the same server, so that an outage of the database robs nobody.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any
from uuid import UUID

import psycopg

from journal.partitions import ensure_partitions
from recovery.bulk import carry_out_bulk
from recovery.chains import Verifying
from recovery.drains import follow_drains
from recovery.replays import Send, send, send_again
from recovery.stranded import end_cancelled, tell_open
from runs import stateless, trees
from runs.engine import permits
from runs.engine.claims import agents_over_limit, next_in_flight
from runs.engine.drafts import SYSTEM
from runs.loops.under_way import clear_stale
from runs.spending import fold_spending
from runs.totals import fold_totals

log = logging.getLogger("holdfast.sweep")

GRACE = 1.0
PARTITIONS_EVERY = 3600.0
BATCH = 500

SERVER = """
SELECT (pg_control_system()).system_identifier, (pg_control_checkpoint()).timeline_id, pg_postmaster_start_time()
"""
END_EXPIRED = """
UPDATE runs_workersession SET ended_at = clock_timestamp(), end_reason = 'lease ran out'
WHERE id IN (SELECT id FROM runs_workersession WHERE ended_at IS NULL
             AND expires_at + make_interval(secs => %(grace)s) < clock_timestamp() FOR UPDATE SKIP LOCKED)
RETURNING name, id
"""
# Runs that should move and that no live session drives: orphans of ended sessions, due ones, queued ones that no
# message reached. Each message spaces the next: lease/5, doubled up to a minute. One that waits for a version may have
# been given back by a worker whose code was too old for its journal: it goes out again when another worker came since,
# else once a minute.
WAITING = """
SELECT r.id, r.release_id, r.status,
       EXISTS (SELECT FROM runs_workersession w WHERE w.ended_at IS NULL AND w.draining_at IS NULL
               AND w.serves @> ARRAY[r.release_id] AND runs_place_gate_v1(w.id) IS NULL) AS served,
       statement_timestamp()
  FROM runs_run r LEFT JOIN runs_workersession s ON s.id = r.session_id
 WHERE (r.session_id IS NOT NULL AND s.ended_at IS NOT NULL
        OR r.session_id IS NULL AND (r.status IN ('queued', 'waiting_for_version', 'running')
                                     OR r.wake_at <= clock_timestamp()))
   AND r.status NOT IN ('done', 'failed', 'cancelled') AND r.input IS NULL
   AND NOT (r.status = 'queued' AND starts_with(r.reason, 'gate '))
   AND NOT (r.over_limit AND r.status = 'queued' AND EXISTS (
            SELECT FROM runs_workersession w WHERE w.ended_at IS NULL AND w.serves @> ARRAY[r.release_id]))
   AND (r.status <> 'waiting_for_version' OR r.since < clock_timestamp() - make_interval(secs => 60)
        OR EXISTS (SELECT FROM runs_workersession w WHERE w.ended_at IS NULL AND w.started_at > r.since
                   AND w.serves @> ARRAY[r.release_id])
        OR EXISTS (SELECT FROM runs_gate g WHERE g.lifted_at > r.since AND g.scope ~ '^(worker|region):'))
   AND (r.dispatched_at IS NULL
          AND (r.status <> 'queued' OR r.since < clock_timestamp() - make_interval(secs => %(young)s))
        OR r.dispatched_at
           < clock_timestamp() - make_interval(secs => least(60, %(young)s * 2 ^ least(r.dispatches, 10))))
 ORDER BY r.priority DESC, r.id LIMIT %(batch)s
"""
LOOK = "SELECT clock_timestamp()"
# Stopped by a gate that is not there any more, or by several, of which one was lifted since. Queued ones were not taken
# at it, held ones came to it on their way.
STOPPED_BY_GATE = """
SELECT r.id, r.release_id, r.status FROM runs_run r
 WHERE r.status IN ('held', 'queued') AND r.session_id IS NULL AND starts_with(r.reason, 'gate ')
   AND (NOT EXISTS (SELECT FROM runs_gate g
                     WHERE g.lifted_at IS NULL AND starts_with(r.reason, 'gate ' || g.scope || ': '))
        OR EXISTS (SELECT FROM runs_gate g
                    WHERE g.lifted_at > r.since AND strpos(r.reason, 'gate ' || g.scope || ': ') > 0))
 LIMIT %(batch)s
"""
LATE = """
SELECT id FROM runs_run WHERE deadline_at <= clock_timestamp() AND ended_at IS NULL AND input IS NULL
 ORDER BY deadline_at LIMIT %(batch)s
"""
LOCK_HEAD = "SELECT run_id FROM journal_head WHERE run_id = %(run)s FOR NO KEY UPDATE SKIP LOCKED"
# It served: the run is being cancelled. The journal's START keeps what it was.
TAKE_DEADLINE = """
WITH late AS (SELECT id, deadline_at FROM runs_run WHERE id = %(run)s AND deadline_at <= clock_timestamp())
UPDATE runs_run r SET deadline_at = NULL FROM late WHERE r.id = late.id RETURNING late.deadline_at
"""
UNTOLD = """
SELECT id FROM runs_run WHERE parent_id IS NOT NULL AND ended_at IS NOT NULL AND NOT parent_told
   AND ended_at < clock_timestamp() - interval '0.5 seconds' LIMIT %(batch)s
"""
# Head first, then the row, and only if nothing has happened to it meanwhile.
NOTE_SENT = """
WITH head AS (SELECT run_id FROM journal_head WHERE run_id = %(run)s FOR NO KEY UPDATE SKIP LOCKED)
UPDATE runs_run r SET dispatched_at = clock_timestamp(), dispatches = r.dispatches + 1,
       status = CASE WHEN r.session_id IS NULL THEN 'queued' ELSE r.status END,
       since = CASE WHEN r.session_id IS NULL AND r.status <> 'queued' THEN clock_timestamp() ELSE r.since END,
       reason = CASE WHEN r.session_id IS NULL AND (r.status <> 'queued' OR starts_with(r.reason, 'gate '))
                     THEN 'waits for a worker' ELSE r.reason END,
       wake_at = NULL
  FROM head WHERE r.id = head.run_id AND r.status = %(status)s
RETURNING r.id
"""
STRANDED = """
WITH head AS (SELECT run_id FROM journal_head WHERE run_id = %(run)s FOR NO KEY UPDATE SKIP LOCKED)
UPDATE runs_run r SET status = 'waiting_for_version', since = %(looked)s,
       dispatched_at = NULL, dispatches = 0, wake_at = NULL, over_limit = false,
       reason = 'waits for a worker that serves '
                || (SELECT agent || '@' || version FROM runs_release WHERE id = r.release_id)
                || coalesce((SELECT ': ' || w.name || ' is stopped by a gate over ' || runs_place_gate_v1(w.id)
                               FROM runs_workersession w
                              WHERE w.ended_at IS NULL AND w.serves @> ARRAY[r.release_id]
                                AND runs_place_gate_v1(w.id) IS NOT NULL LIMIT 1), '')
  FROM head WHERE r.id = head.run_id AND r.status = %(status)s AND r.status <> 'waiting_for_version'
"""
# What became due before the last look was seen then, and is tried again with the next regular round.
NEXT_DUE = """
SELECT extract(epoch FROM least(
           (SELECT min(wake_at) FROM runs_run WHERE wake_at > %(looked)s),
           (SELECT min(deadline_at) FROM runs_run WHERE deadline_at > %(looked)s AND ended_at IS NULL)
       ) - clock_timestamp())::float8
"""
BULK = "SELECT EXISTS (SELECT FROM runs_bulkact WHERE ended_at IS NULL)"
DRAINS = """
SELECT EXISTS (SELECT FROM recovery_drain WHERE ended_at IS NULL)
    OR EXISTS (SELECT FROM runs_gate g JOIN recovery_drain d ON d.gate_id = g.id
                WHERE g.lifted_at IS NULL AND d.until_gone)
    OR EXISTS (SELECT FROM runs_workersession w JOIN recovery_drain d ON d.created_at = w.draining_at
                 JOIN runs_gate g ON g.id = d.gate_id WHERE w.ended_at IS NULL AND g.lifted_at IS NOT NULL)
"""
POLL = 0.25  # seconds between two looks whether something will be due sooner than was known

Dispatch = Callable[[UUID, str], bool]


@dataclass(slots=True)
class Sweep:
    """One sweeper. `lease` and `every` in seconds; `dispatch` sends a message and says whether the broker took it."""

    dsn: str
    lease: float
    every: float
    dispatch: Dispatch
    stopping: threading.Event = field(default_factory=threading.Event)
    send_replay: Send = send
    _conn: psycopg.Connection[Any] | None = None
    _server: Any = None
    _contact_since: float = 0.0
    _looked: Any = None  # when the last round began, by the database's clock
    _partitions_at: float = float("-inf")
    _verifying: Verifying = field(default_factory=Verifying)
    _more_bulk: bool = False  # whether the last round left work of bulk acts that it could have done

    def run(self) -> None:
        """Until `stopping` is set. A lost database is waited for."""
        while not self.stopping.is_set():
            try:
                self.once()
                pause = self.pause()
            except psycopg.Error as error:
                log.warning("the database does not answer: %s", error)
                self.close()
                pause = min(1.0, self.every)
            self._wait(pause)
        self.close()

    def once(self) -> int:
        """One round; how many messages went out."""
        conn = self._connected()
        self._keep_contact(conn)
        if time.monotonic() - self._contact_since >= self.lease:
            for name, session in conn.execute(END_EXPIRED, {"grace": GRACE}).fetchall():
                log.warning("session %s of %s ended: its lease ran out", session, name)
        if time.monotonic() - self._partitions_at > PARTITIONS_EVERY:
            ensure_partitions(conn)
            fold_totals(conn)
            fold_spending(conn)
            clear_stale(conn)
            self._partitions_at = time.monotonic()
        row = conn.execute(LOOK).fetchone()
        assert row is not None
        (self._looked,) = row
        self._cancel_late(conn)
        sent = self._send_waiting(conn)
        if (row := conn.execute(DRAINS).fetchone()) is not None and row[0]:
            follow_drains()
        row = conn.execute(BULK).fetchone()
        self._more_bulk = bool(row and row[0]) and carry_out_bulk(self.stopping.is_set)
        sent += send_again(conn, min(self.every, self.lease / 5), self.send_replay)
        self._verifying.once(conn)
        return sent

    def _cancel_late(self, conn: psycopg.Connection[Any]) -> None:
        for (run_id,) in conn.execute(LATE, {"batch": BATCH}).fetchall():
            woken: list[tuple[UUID, str]] = []
            with conn.transaction():
                if conn.execute(LOCK_HEAD, {"run": run_id}).fetchone() is None:
                    continue
                late = conn.execute(TAKE_DEADLINE, {"run": run_id}).fetchone()
                if late is not None:
                    why = f"its deadline of {late[0].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC has passed"
                    woken = trees.cancel_tree(run_id, why, SYSTEM, {}, conn)
            self._send(woken)

    def _send(self, runs: Iterable[tuple[UUID, str]]) -> None:
        for run_id, release_id in runs:
            self.dispatch(run_id, release_id)

    def _send_waiting(self, conn: psycopg.Connection[Any]) -> int:
        self._lift_gated(conn)
        permits.repair(conn, self.dispatch)
        for agent in agents_over_limit(conn):
            self._send(next_in_flight(conn, agent))
        for (child,) in conn.execute(UNTOLD, {"batch": BATCH}).fetchall():
            if (due := trees.tell_parent(child, conn)) is not None:
                self._send([due])
        given = {"young": min(self.every, self.lease / 5), "batch": BATCH}
        sent = stateless.sweep(conn, given["young"], BATCH, self.dispatch)
        for run_id, release_id, status, served, looked in conn.execute(WAITING, given).fetchall():
            if not served:  # since the moment of the look: a worker that came after it is heard of at the next
                with conn.transaction():
                    stranded = conn.execute(STRANDED, {"run": run_id, "status": status, "looked": looked}).rowcount
                    if stranded:
                        tell_open(run_id, conn)
                if stranded or status == "waiting_for_version":  # whoever stranded it may have died before this
                    self._send(end_cancelled(run_id, conn))
            elif conn.execute(NOTE_SENT, {"run": run_id, "status": status}).fetchone() is not None:
                sent += self.dispatch(run_id, release_id)
        return sent

    def _lift_gated(self, conn: psycopg.Connection[Any]) -> None:
        for run_id, release_id, status in conn.execute(STOPPED_BY_GATE, {"batch": BATCH}).fetchall():
            if conn.execute(NOTE_SENT, {"run": run_id, "status": status}).fetchone() is not None:
                self.dispatch(run_id, release_id)

    def pause(self) -> float:
        """Seconds to the next round: the next due time, at most `every`; none while a bulk act is under way."""
        if self._more_bulk:
            return 0.0
        row = self._connected().execute(NEXT_DUE, {"looked": self._looked}).fetchone()
        due = row[0] if row and row[0] is not None else self.every
        return float(min(max(due, 0.0), self.every))

    def _wait(self, seconds: float) -> None:
        """Until then, or until the supervisor says that a session ended."""
        deadline = time.monotonic() + seconds
        while not self.stopping.is_set() and (left := deadline - time.monotonic()) > 0:
            if self._conn is None:
                self.stopping.wait(left)
                continue
            try:
                for _ in self._conn.notifies(timeout=min(left, POLL), stop_after=1):
                    return
                deadline = min(deadline, time.monotonic() + self.pause())
            except psycopg.Error:
                self.close()

    # -- contact ----------------------------------------------------------------------------------------------------

    def _connected(self) -> psycopg.Connection[Any]:
        if self._conn is None or self._conn.closed:
            options = "-c lock_timeout=1000 -c statement_timeout=20000"
            self._conn = psycopg.connect(self.dsn, autocommit=True, options=options, application_name="holdfast sweep")
            self._conn.execute("LISTEN holdfast_sweep")
            self._server = None
        return self._conn

    def _keep_contact(self, conn: psycopg.Connection[Any]) -> None:
        server = conn.execute(SERVER).fetchone()
        if server != self._server:
            self._server, self._contact_since = server, time.monotonic()

    def close(self) -> None:
        """Give the connection back; the next round makes a new one, and waits a whole lease anew."""
        if self._conn is not None:
            self._conn.close()
        self._conn, self._server = None, None
