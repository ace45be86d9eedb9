"""What no message tells, asked every few seconds once for all streams: leases that lapse, children that move, logins
that are over. A stream that had to ask by itself would cost a query each, and there may be hundreds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import DatabaseError, connection

from journal.feed import Subscription
from runs.pages.failures import is_busy
from runs.pages.run_page import QUIET
from runs.pages.viewers import Viewer, judge

LOOKS = 5.0  # seconds
WATCHED = """
SELECT r.id, (r.status, r.since, r.epoch, s.ended_at, s.expires_at > clock_timestamp(),
              s.expires_at + make_interval(secs => %(quiet)s) < clock_timestamp(), kids.count, kids.last)::text
  FROM runs_run r LEFT JOIN runs_workersession s ON s.id = r.session_id,
       LATERAL (SELECT count(c.ended_at), max(c.since) AS last FROM runs_run c WHERE c.parent_id = r.id) AS kids
 WHERE r.id = ANY (%(runs)s)
"""

log = logging.getLogger("holdfast.live")


@dataclass(slots=True, eq=False)
class Watch:
    """One open stream: of one run, or of any (None)."""

    run_id: UUID | None
    touched: Subscription
    viewer: Viewer
    told: str | None = field(default=None)


class Pulse:
    """One task of an event loop, alive while streams are open."""

    def __init__(self, executor: Executor, closing: Callable[[Callable[[], Any]], Any]) -> None:
        self.open: set[Watch] = set()
        self._executor, self._closing = executor, closing
        self._task: asyncio.Task[None] | None = None

    def add(self, watch: Watch) -> None:
        self.open.add(watch)
        if self._task is None:
            self._task = asyncio.create_task(self._beat())

    def remove(self, watch: Watch) -> None:
        self.open.discard(watch)
        if not self.open and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOKS)
            watches = list(self.open)
            try:
                moved = await loop.run_in_executor(self._executor, self._closing, lambda w=watches: look(w))
            except DatabaseError as error:
                log.warning("streams were not looked after: %s", error)
                if not is_busy(error):  # a page must not go on saying that it is live
                    for watch in watches:
                        watch.viewer.gone = True
                        watch.touched.refresh()
                continue
            for watch in moved:
                watch.touched.refresh()


def look(watches: list[Watch]) -> list[Watch]:
    """Those that have something to draw, or whose viewer has to be judged anew."""
    gone = set(judge([watch.viewer for watch in watches]))
    runs = {watch.run_id for watch in watches if watch.run_id is not None}
    with connection.cursor() as cursor:
        cursor.execute(WATCHED, {"runs": list(runs), "quiet": QUIET.total_seconds()})
        now: dict[UUID | None, str] = dict(cursor.fetchall())
    moved = []
    for watch in watches:
        told = now.get(watch.run_id, "")
        if watch.viewer in gone or (watch.told is not None and told != watch.told):
            moved.append(watch)
        watch.told = told
    return moved


_pulses: WeakKeyDictionary[asyncio.AbstractEventLoop, Pulse] = WeakKeyDictionary()


def pulse(executor: Executor, closing: Callable[[Callable[[], Any]], Any]) -> Pulse:
    """The running event loop's."""
    loop = asyncio.get_running_loop()
    if loop not in _pulses:
        _pulses[loop] = Pulse(executor, closing)
    return _pulses[loop]
