"""Calls: a tool, a probe or a model function runs in a thread of its own, and its timeout is ours."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from django.db import close_old_connections

ABANDONED_LIMIT = 16


@dataclass(frozen=True, slots=True)
class Returned:
    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    error: BaseException


Ended = Returned | Raised


class Job(Protocol):
    """One call under way. `run` does it; `ended` hears of it, in the call's own thread, and may give that the next."""

    def run(self) -> Any: ...

    def ended(self, how: Ended) -> Job | None: ...


@dataclass(slots=True)
class CallPool:
    """Threads made when needed and kept when idle. A call that outlives its timeout keeps its thread: abandoned."""

    most: int = 256
    abandoned: int = 0
    on_too_many: Callable[[], None] = lambda: None
    _jobs: SimpleQueue[Job] = field(default_factory=SimpleQueue)
    _idle: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _threads: int = 0
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, job: Job) -> None:
        with self._lock:
            self._running += 1
        if not self._idle.acquire(blocking=False):
            with self._lock:
                grow = self._threads < self.most
                self._threads += grow
            if grow:
                threading.Thread(target=self._work, name=f"call-{self._threads}", daemon=True).start()
        self._jobs.put(job)

    @property
    def idle(self) -> bool:
        """Whether no call is under way."""
        return self._running == 0

    @property
    def crowded(self) -> bool:
        """Whether calls wait for a thread."""
        return not self._jobs.empty()

    def _work(self) -> None:
        while True:
            job: Job | None = self._jobs.get()
            while job is not None:
                try:
                    how: Ended = Returned(job.run())
                except BaseException as error:
                    how = Raised(error)
                close_old_connections()  # a tool may use Django's: as after a request, none stays idle or broken here
                job = job.ended(how)
            with self._lock:
                self._running -= 1
            self._idle.release()

    def abandon(self) -> None:
        with self._lock:
            self.abandoned += 1
            too_many = self.abandoned >= ABANDONED_LIMIT
        if too_many:
            self.on_too_many()

    def came_back(self) -> None:
        with self._lock:
            self.abandoned -= 1


def finish(value: Any) -> Any:
    """An async tool's coroutine is run to its end here."""
    return asyncio.run(value) if inspect.iscoroutine(value) else value


def drain(queue: SimpleQueue[Any]) -> list[Any]:
    """Everything that is in the queue now."""
    found = []
    while True:
        try:
            found.append(queue.get_nowait())
        except Empty:
            return found
