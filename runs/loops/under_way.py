"""An answer while it arrives: what has come so far, in a table beside the journal, for whoever watches the run.

Nothing depends on it. The journal gets the whole answer or none; what is here is shown only while the attempt that it
belongs to is open, and is removed behind it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from runs.secrets import redacted, struck_text

PERIOD = 0.4  # seconds between two writes of a process
MOST = 64 * 2**10  # characters of either that are kept, from the end
# A secret that has come by half matches nothing yet: where something is redacted, so much of the end is not told.
HELD_BACK = 200
STALE = "1 hour"

TELL = """
INSERT INTO runs_answer_under_way AS u (run_id, epoch, attempt_seq, text, thinking) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (run_id) DO UPDATE SET epoch = excluded.epoch, attempt_seq = excluded.attempt_seq,
        text = excluded.text, thinking = excluded.thinking, updated_at = clock_timestamp()
    WHERE (u.epoch, u.attempt_seq) <= (excluded.epoch, excluded.attempt_seq)
"""
CLEAR = "DELETE FROM runs_answer_under_way WHERE run_id = %s AND attempt_seq <= %s"
CLEAR_STALE = f"DELETE FROM runs_answer_under_way WHERE updated_at < clock_timestamp() - interval '{STALE}'"
READ = "SELECT text, thinking, updated_at FROM runs_answer_under_way WHERE run_id = %s AND attempt_seq = %s"

log = logging.getLogger("holdfast.under_way")


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What has come of the answer to one attempt: the last MOST characters."""

    text: str
    thinking: str
    at: datetime


def tell(conn: Any, run_id: UUID, epoch: int, attempt_seq: int, text: str, thinking: str) -> None:
    """All that has come so far; a lost worker's word never covers its successor's."""
    conn.execute(TELL, (run_id, epoch, attempt_seq, _shown(text), _shown(thinking)))


def clear(conn: Any, run_id: UUID, attempt_seq: int) -> None:
    conn.execute(CLEAR, (run_id, attempt_seq))


def clear_stale(conn: Any) -> None:
    """What workers left behind that are no more."""
    conn.execute(CLEAR_STALE)


def answer_under_way(cursor: Any, run_id: UUID, attempt_seq: int) -> UnderWay | None:
    """`attempt_seq`: of the attempt that is open in the journal; what belongs to another is not shown."""
    cursor.execute(READ, (run_id, attempt_seq))
    row = cursor.fetchone()
    return UnderWay(*row) if row else None


def _shown(text: str) -> str:
    if redacted() is not None:
        text = struck_text(text)[:-HELD_BACK]
    return text[-MOST:].replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Heard:
    epoch: int
    attempt_seq: int
    text: str
    thinking: str


class Teller:
    """Gathers what a process hears of the answers under way and writes it at most every PERIOD, in a thread of its own:
    who hears never waits. `touch`: tells watchers that a run's page has something new."""

    def __init__(
        self,
        borrow: Callable[[], AbstractContextManager[psycopg.Connection[Any]]],
        touch: Callable[[UUID], None],
        period: float = PERIOD,
    ) -> None:
        self._borrow, self._touch, self._period = borrow, touch, period
        self._heard: dict[UUID, Heard] = {}
        self._told: dict[UUID, int] = {}  # by run: the attempt that has a row
        self._over: dict[UUID, int] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def hear(self, run_id: UUID, epoch: int, attempt_seq: int, text: str, thinking: str) -> None:
        """Never blocks and never fails: what is lost of it stands in the journal a moment later."""
        with self._changed:
            if self._closed:
                return
            self._heard[run_id] = Heard(epoch, attempt_seq, text, thinking)
            self._wake()

    def over(self, run_id: UUID) -> None:
        """The run's answer is in the journal, or will never be."""
        with self._changed:
            heard = self._heard.pop(run_id, None)
            last = max(heard.attempt_seq if heard else 0, self._told.pop(run_id, 0))
            if last:
                self._over[run_id] = last
                self._wake()

    def close(self) -> None:
        """What is left is removed, if the database answers."""
        with self._changed:
            self._closed = True
            self._heard.clear()
            self._over |= self._told
            self._told.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(5)

    def _wake(self) -> None:
        self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="under way", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._heard or self._over or self._closed)
                heard, over, ends = self._heard, self._over, self._closed
                self._heard, self._over = {}, {}
                self._told |= {run_id: one.attempt_seq for run_id, one in heard.items()}
            self._write(heard, over)
            if ends:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._closed, self._period)

    def _write(self, heard: dict[UUID, Heard], over: dict[UUID, int]) -> None:
        """On a connection in autocommit: rows of many runs in one transaction would wait for each other."""
        try:
            with self._borrow() as conn:
                for run_id, last in over.items():
                    clear(conn, run_id, last)
                for run_id, one in heard.items():
                    tell(conn, run_id, one.epoch, one.attempt_seq, one.text, one.thinking)
                    self._touch(run_id)
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            log.warning("what arrives of %d answers is not told: %s", len(heard), error)
