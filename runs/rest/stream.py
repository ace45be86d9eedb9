"""The feed of one run: its entries as server-sent events, from where the caller stopped until the run is over.

An event's id is the entry's seq, so that whoever reconnects names the last one it saw and misses nothing. Between two
events a stream holds no database connection, and it reads on only when its caller has taken what was read before: a
slow one costs a page of entries, no more.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError

from journal.entries import Entry
from journal.feed import listener
from runs.access import VIEW
from runs.models import ENDED, Run, Status
from runs.pages.live import closing, renderers
from runs.queries import entries_of
from runs.rest.answers import entry
from runs.rest.schemas import StatusOut
from runs.rest.wire import strict_json

AT_ONCE = 100  # entries read at once
LOOKS = 5.0  # seconds; a status may change without an entry and without a message
PINGS = 15.0
JUDGES = 30.0  # seconds between two looks at who may look
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries to reach the database

log = logging.getLogger("holdfast.stream")


@dataclass(frozen=True, slots=True)
class Look:
    """What there was at one look: the row's status, then the entries that came after the last one told."""

    status: StatusOut
    entries: Sequence[Entry]

    @property
    def whole(self) -> bool:
        return len(self.entries) < AT_ONCE

    @property
    def over(self) -> bool:
        """The row was read first and tells its end in the transaction of DONE: that entry is among these, or told."""
        return self.whole and self.status.status in ENDED


@dataclass(slots=True)
class Follower:
    """One caller: how far it has been told, and whether it may still look."""

    run_id: UUID
    after: int
    user_id: int
    judged: float = float("-inf")

    def look(self) -> Look | None:
        """None: not any more. Raises OperationalError or InterfaceError while the database is away."""
        if time.monotonic() - self.judged >= JUDGES:
            user = User.objects.filter(pk=self.user_id, is_active=True).first()
            if user is None or not user.has_perm(VIEW):
                return None
            self.judged = time.monotonic()
        run = Run.objects.only("status", "reason", "since", "wake_at").get(id=self.run_id)
        status = StatusOut(status=Status(run.status), reason=run.reason, since=run.since, wake_at=run.wake_at)
        return Look(status, entries_of(self.run_id, self.after, AT_ONCE))


async def events_of(run_id: UUID, after: int, user_id: int) -> AsyncGenerator[str]:
    """`entry` for each entry behind seq `after`, `status` at first and when it changes, `end` when the run is over."""
    yield "retry: 1000\n\n"
    follower = Follower(run_id, after, user_id)
    told: StatusOut | None = None
    spoke, pause = time.monotonic(), SHORTEST_PAUSE
    async with listener().subscribe(run_id) as touched:
        while True:
            try:
                looking = functools.partial(closing, follower.look)
                seen = await asyncio.get_running_loop().run_in_executor(renderers, looking)
            except (OperationalError, InterfaceError) as error:
                log.warning("the stream of run %s waits for the database: %s", run_id, error)
                yield ": the database does not answer\n\n"
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = SHORTEST_PAUSE
            if seen is None:
                return
            events = [event("entry", entry(e).model_dump(), e.seq) for e in seen.entries]
            if seen.entries:
                follower.after = seen.entries[-1].seq
            if seen.whole and seen.status != told:
                told = seen.status
                events.append(event("status", told.model_dump()))
            if seen.over:
                yield "".join((*events, event("end", {"status": seen.status.status})))
                return
            if events or time.monotonic() - spoke >= PINGS:
                yield "".join(events) or ": still here\n\n"
                spoke = time.monotonic()
            if seen.whole:
                await touched.get(LOOKS)


def event(name: str, data: Any, seq: int | None = None) -> str:
    """JSON has no line breaks of its own, so that one data line is enough."""
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}event: {name}\ndata: {strict_json(data).decode()}\n\n"
