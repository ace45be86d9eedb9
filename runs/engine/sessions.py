"""A worker process's session: one row, one heartbeat, one lease for all its runs."""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from runs.open_gates import OpenGates
from runs.totals import Totals

REGISTER = """
INSERT INTO runs_workersession
       (id, name, host, pid, pool, concurrency, region, serves, codes, heartbeat_at, expires_at, end_reason,
        pool_started_at)
VALUES (coalesce(%(id)s, holdfast_uuid7()), %(name)s, %(host)s, %(pid)s, %(pool)s, %(concurrency)s, %(region)s,
        %(serves)s, %(codes)s, clock_timestamp(), clock_timestamp() + make_interval(secs => %(lease)s), '',
        %(pool_started_at)s)
RETURNING id, extract(epoch FROM clock_timestamp())::float8
"""
RENEW = """
UPDATE runs_workersession
   SET heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => %(lease)s),
       totals = %(totals)s
WHERE id = %(id)s AND ended_at IS NULL
RETURNING extract(epoch FROM clock_timestamp())::float8
"""
HOLDS = """
SELECT r.id, h.last_steering_seq, r.release_id FROM runs_run r JOIN journal_head h ON h.run_id = r.id
WHERE r.session_id = %(id)s
"""
GATES = "SELECT scope, reason FROM runs_gate WHERE lifted_at IS NULL"
# Also where somebody's drain of this worker has said so already: that may be called off, this not.
DRAIN = "UPDATE runs_workersession SET draining_at = clock_timestamp() WHERE id = %(id)s"
END = """
UPDATE runs_workersession SET ended_at = clock_timestamp(), end_reason = %(reason)s, totals = %(totals)s
 WHERE id = %(id)s AND ended_at IS NULL
"""


class SessionEnded(Exception):
    """The worker's session was ended by somebody else: its runs belong to others now."""


def boottime() -> float:
    """Seconds that also pass while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(slots=True)
class Heartbeat:
    """What a renewal brought back: each run that the session holds, with its last steering seq and its release, and the
    gates in force."""

    holds: dict[UUID, tuple[int, str]]
    gates: OpenGates


@dataclass(slots=True)
class Session:
    """Lease in seconds, counted from before the renewal was sent; only the database's clock is compared with others."""

    name: str
    pool: str
    concurrency: int
    region: str
    lease: float
    serves: list[str]
    codes: dict[str, str]
    id: UUID | None = None
    pool_started_at: datetime | None = None  # of a child: its parent's begin, by the database's clock
    ended: bool = False
    totals: Totals = field(default_factory=Totals)
    _until: float = 0.0
    _offset: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def register(self, connections: ConnectionPool) -> None:
        asked = boottime()
        given: dict[str, Any] = {
            "id": self.id, "name": self.name, "host": socket.gethostname(), "pid": os.getpid(), "pool": self.pool,
            "concurrency": self.concurrency, "region": self.region, "serves": self.serves, "codes": Jsonb(self.codes),
            "lease": self.lease, "pool_started_at": self.pool_started_at,
        }  # fmt: skip
        with connections.connection() as conn:
            row = conn.execute(REGISTER, given).fetchone()
        assert row is not None
        self.id = row[0]
        self._renewed(asked, row[1])

    def renew(self, connections: ConnectionPool) -> Heartbeat:
        """Raises SessionEnded if somebody ended the session."""
        asked = boottime()
        with connections.connection() as conn, conn.pipeline():
            renewed = conn.execute(RENEW, {"id": self.id, "lease": self.lease, "totals": Jsonb(self.totals.snapshot())})
            holds = conn.execute(HOLDS, {"id": self.id})
            gates = conn.execute(GATES)
            row = renewed.fetchone()
            held = {run_id: (steered, release_id) for run_id, steered, release_id in holds.fetchall()}
            reasons: dict[str, str] = dict(gates.fetchall())
        if row is None:
            self.ended = True
            raise SessionEnded
        self._renewed(asked, row[0])
        return Heartbeat(held, OpenGates(reasons, row[0]))

    def _renewed(self, asked: float, database_now: float) -> None:
        with self._lock:
            self._until = asked + self.lease
            self._offset = database_now - boottime()

    @property
    def alive(self) -> bool:
        """Whether the lease surely still runs, looked at just before each effect."""
        return not self.ended and boottime() < self._until

    @property
    def lapses_in(self) -> float:
        return self._until - boottime()

    def now(self) -> float:
        """POSIX seconds of the database's clock, as last heard."""
        return boottime() + self._offset

    def drain(self, connections: ConnectionPool) -> None:
        with connections.connection(timeout=1) as conn:
            conn.execute(DRAIN, {"id": self.id})

    def end(self, connections: ConnectionPool, reason: str) -> None:
        self.ended = True
        with connections.connection(timeout=1) as conn:
            conn.execute(END, {"id": self.id, "reason": reason, "totals": Jsonb(self.totals.snapshot())})


def open_connections(dsn: str, size: int = 4) -> ConnectionPool:
    """The worker's pool beside its committer: claims, reads, evidence.

    It asks for a lost database each second. The pool's own pauses double: after a long outage the worker would come
    back more than a lease later than the sweep, which ends its session by then.
    """
    options = {"autocommit": True, "application_name": "holdfast worker", "options": "-c lock_timeout=1000"}
    return ConnectionPool(
        dsn, min_size=1, max_size=size, open=True, kwargs=options, timeout=10, check=_check,
        reconnect_timeout=1.0, reconnect_failed=ConnectionPool.check,
    )  # fmt: skip


def _check(conn: psycopg.Connection[Any]) -> None:
    """A dead connection is found by the statement that fails on it: asking first would cost each claim a round trip."""
    if conn.closed or conn.pgconn.status != psycopg.pq.ConnStatus.OK:
        raise psycopg.OperationalError("the connection is closed")
