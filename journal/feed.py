"""Who writes tells that a run changed, who shows it hears of it. Messages carry run ids and no facts: readers re-read.

Appends do not notify inside their transaction, which would make commits wait for each other.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Literal
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.conf import settings

CHANNEL = "holdfast_feed"
# Whoever listens holds this lock, shared, for as long: a NOTIFY is a commit, and where nobody listens it is spared.
_LISTENS = 0x686F6C64  # "hold"
LISTEN = f"SELECT pg_advisory_lock_shared({_LISTENS}); LISTEN {CHANNEL}"
NOTIFY = f"""SELECT pg_notify(%s, %s) WHERE EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = {_LISTENS} AND granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
_PERIOD = 0.1  # seconds between two messages of a process
_IDS = 200  # a message: NOTIFY takes at most 8000 bytes
_LONGEST_PAUSE = 5.0  # seconds between two tries to connect
_LISTENING: dict[str, Any] = {"autocommit": True, "connect_timeout": 5, "application_name": "holdfast feed"}

log = logging.getLogger("holdfast.feed")


class Notifier:
    """Gathers the runs that a process touched and tells them at most every 100 ms, on a borrowed connection that is in
    no transaction."""

    def __init__(self, borrow: Callable[[], AbstractContextManager[psycopg.Connection[Any]]], period: float = _PERIOD):
        self._borrow, self._period = borrow, period
        self._touched: set[UUID] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def touch(self, *run_ids: UUID) -> None:
        """Never blocks and never fails: a lost message costs a page some seconds."""
        with self._changed:
            if not self._touched:  # else it was woken, or looks when its pause is over
                self._changed.notify()
            self._touched.update(run_ids)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="notifier", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Tells what is left, if the database answers."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(5)

    def _work(self) -> None:
        pause = self._period
        while ids := self._take():
            try:
                with self._borrow() as conn:
                    _tell(conn, ids)
                pause = self._period
            except psycopg.Error as error:
                log.warning("could not tell that %d runs changed: %s", len(ids), error)
                with self._changed:
                    self._touched.update(() if self._closed else ids)
                pause = min(2 * pause, _LONGEST_PAUSE)
            self._rest(pause)

    def _take(self) -> set[UUID]:
        """Waits for touched runs. Empty: closed, nothing left."""
        with self._changed:
            self._changed.wait_for(lambda: self._touched or self._closed)
            ids, self._touched = self._touched, set()
            return ids

    def _rest(self, pause: float) -> None:
        until = time.monotonic() + pause
        with self._changed:
            self._changed.wait_for(lambda: self._closed or time.monotonic() >= until, pause)


def _tell(conn: psycopg.Connection[Any], ids: Iterable[UUID]) -> None:
    texts = [str(run_id) for run_id in ids]
    for n in range(0, len(texts), _IDS):
        conn.execute(NOTIFY, (CHANNEL, ",".join(texts[n : n + _IDS])))


type Changes = set[UUID] | Literal["refresh"]


class Subscription:
    """What one stream has not heard yet. Repeated ids are one; too many become "refresh"."""

    def __init__(self, run_id: UUID | None, bound: int) -> None:
        self._run_id, self._bound = run_id, bound
        self._changed: set[UUID] = set()
        self._refresh = False
        self._event = asyncio.Event()

    async def get(self, timeout: float) -> Changes:
        """The runs that changed since the last call; empty after `timeout` seconds without one. "refresh": too many, or
        messages may have been missed."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout)
        except TimeoutError:
            return set()
        self._event.clear()
        changed, refresh = self._changed, self._refresh
        self._changed, self._refresh = set(), False
        return "refresh" if refresh else changed

    def hear(self, changed: Iterable[UUID]) -> None:
        self._changed.update(c for c in changed if self._run_id is None or c == self._run_id)
        if len(self._changed) > self._bound:
            self.refresh()
        elif self._changed:
            self._event.set()

    def refresh(self) -> None:
        self._changed.clear()
        self._refresh = True
        self._event.set()


class Listener:
    """One LISTEN connection for all streams of an event loop, open while there are any."""

    def __init__(self, dsn: str, bound: int = 500) -> None:
        self._dsn, self._bound = dsn, bound
        self._subscriptions: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def subscribe(self, run_id: UUID | None = None) -> AsyncIterator[Subscription]:
        """Changes of one run, or of all. Subscribe, then read, then wait for changes: so nothing is missed."""
        subscription = Subscription(run_id, self._bound)
        self._subscriptions.add(subscription)
        if self._task is None:
            self._task = asyncio.create_task(self._listen())
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            if not self._subscriptions and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _listen(self) -> None:
        pause = _PERIOD
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._dsn, **_LISTENING) as conn:
                    await conn.execute(LISTEN)
                    pause = _PERIOD
                    self._refresh_all()  # messages before this moment were not heard
                    async for message in conn.notifies():
                        self._hear(message.payload)
            except psycopg.Error as error:
                log.warning("the feed's connection is gone: %s", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _hear(self, payload: str) -> None:
        try:
            changed = {UUID(text) for text in payload.split(",")}
        except ValueError:  # not one of ours
            return
        for subscription in self._subscriptions:
            subscription.hear(changed)

    def _refresh_all(self) -> None:
        for subscription in self._subscriptions:
            subscription.refresh()


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()


def listener() -> Listener:
    """The running event loop's listener. It connects when somebody subscribes: an ASGI server has no start-up hook."""
    loop = asyncio.get_running_loop()
    if loop not in _listeners:
        _listeners[loop] = Listener(settings.HOLDFAST_DSN)
    return _listeners[loop]
