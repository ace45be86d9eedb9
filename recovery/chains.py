"""Verifies journals in the background: the one that was not looked at for longest comes first, at a bounded cost."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

import psycopg

from journal.errors import NoSuchRun
from journal.verify import Fault, verify_again

log = logging.getLogger("holdfast.chains")

SHARE = 0.02  # of the sweeper's time, at most
ROUND = 0.1  # seconds at a time: who waits for the sweep waits no longer
MOST = 50  # journals a round
WHOLE = 20_000  # entries; of a longer journal only what is new is read
LOCK = 0x6368696E  # "chin": one sweeper verifies, however many there are
NEXT = """
SELECT run_id, last_seq FROM journal_head
 WHERE verified_at IS NULL OR verified_at < clock_timestamp() - interval '10 minutes'
 ORDER BY verified_at NULLS FIRST, run_id LIMIT %s
"""


@dataclass(slots=True)
class Verifying:
    """`share` and `seconds` bound what it costs: a round that took long is followed by a longer rest."""

    share: float = SHARE
    seconds: float = ROUND
    _rests_until: float = float("-inf")

    def once(self, conn: psycopg.Connection[Any]) -> list[Fault]:
        """A round of it on an autocommitting connection; the first fault of each journal that is broken."""
        if time.monotonic() < self._rests_until:
            return []
        if not self._is_alone(conn):
            return []
        began = time.monotonic()
        try:
            return list(self._look(conn, began + self.seconds))
        finally:
            conn.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))
            self._rests_until = time.monotonic() + (time.monotonic() - began) / self.share

    def _is_alone(self, conn: psycopg.Connection[Any]) -> bool:
        row = conn.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone()
        return bool(row and row[0])

    def _look(self, conn: psycopg.Connection[Any], until: float) -> list[Fault]:
        broken = []
        for run_id, last_seq in conn.execute(NEXT, (MOST,)).fetchall():
            if time.monotonic() >= until:
                break
            try:
                faults = verify_again(run_id, whole=last_seq <= WHOLE, conn=conn)
            except NoSuchRun:  # erased meanwhile
                continue
            if faults:
                log.error("the chain of a journal is broken: %s", faults[0])
                broken.append(faults[0])
        return broken
