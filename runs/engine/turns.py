"""One run that died twice in a row at a time in a process, so that it alone is blamed if the process dies again."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from uuid import UUID


class Turns:
    """`send(run id, release id)` sends the run whose turn has come."""

    def __init__(self, send: Callable[[UUID, str], object]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._has_it: UUID | None = None
        self._waiting: deque[tuple[UUID, str]] = deque()

    def reserve(self, run_id: UUID) -> bool:
        """Whether the turn is free: it is kept for this run until its claim tells whether it is a suspect."""
        with self._lock:
            if self._has_it is None:
                self._has_it = run_id
            return self._has_it == run_id

    def wait(self, run_id: UUID, release_id: str) -> None:
        with self._lock:
            if self._has_it is not None:
                self._waiting.append((run_id, release_id))
                return
        self._send(run_id, release_id)  # its turn came while the claim was answered

    def over(self, run_id: UUID) -> None:
        """The run has let go, made progress, or is no suspect."""
        if self._has_it != run_id:
            return
        with self._lock:
            self._has_it = None
            following = self._waiting.popleft() if self._waiting else None
        if following is not None:
            self._send(*following)
