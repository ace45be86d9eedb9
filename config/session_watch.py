"""The supervisor's word in the database: ends the sessions of workers it buried, and finds those whose lease lapsed."""

import threading
import time
from collections.abc import Callable
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

END = """
UPDATE runs_workersession SET ended_at = clock_timestamp(), end_reason = 'process died'
WHERE id = ANY(%s) AND ended_at IS NULL
"""
WAKE_SWEEP = "NOTIFY holdfast_sweep"
LAPSED = """
SELECT id FROM runs_workersession
WHERE id = ANY(%s) AND expires_at + interval '2 seconds' < clock_timestamp()
"""  # ended or not: the sweep may have ended it already, and its process still stands still


class SessionWatch(threading.Thread):
    """A thread of its own, since the database may hang and the supervisor must not.

    `on_lapse` is called from this thread with each session whose lease has lapsed while the database was in reach for a
    whole lease without a break: after an outage every worker gets the time to renew.
    """

    def __init__(self, dsn: str, lease: float, on_lapse: Callable[[UUID], None]) -> None:
        super().__init__(name="session-watch", daemon=True)
        self._dsn = make_conninfo(dsn, connect_timeout=2, application_name="holdfast supervisor")
        self._lease = lease
        self._on_lapse = on_lapse
        self._wake = threading.Condition()
        self._living: set[UUID] = set()
        self._dead: set[UUID] = set()
        self._closing = False

    def begin(self, session: UUID) -> None:
        with self._wake:
            self._living.add(session)

    def end(self, session: UUID) -> None:
        """The session's process is dead: its end is written at once, or as soon as the database is back."""
        with self._wake:
            self._living.discard(session)
            self._dead.add(session)
            self._wake.notify()

    def close(self, patience: float) -> None:
        """Writes what is still to be written, for at most `patience` seconds."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self.join(patience)

    def run(self) -> None:
        while not self._closing:
            try:
                with psycopg.connect(self._dsn, autocommit=True) as connection:
                    connection.execute("SET statement_timeout = '2s'; SET lock_timeout = '1s'")
                    self._watch(connection)
            except psycopg.Error:
                time.sleep(0.2)

    def _watch(self, connection: psycopg.Connection[tuple[UUID]]) -> None:
        in_touch_since = time.monotonic()
        while True:
            with self._wake:
                if not self._dead and not self._closing:
                    self._wake.wait(1)
                dead, living, closing = list(self._dead), list(self._living), self._closing
            if dead:
                connection.execute(END, [dead])
                connection.execute(WAKE_SWEEP)
                with self._wake:
                    self._dead.difference_update(dead)
            elif closing:
                return
            lapsed = connection.execute(LAPSED, [living]).fetchall()
            if time.monotonic() - in_touch_since > self._lease + 2:
                for (session,) in lapsed:
                    self._on_lapse(session)
