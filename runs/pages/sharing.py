"""One drawing for all who watch the same thing at the same time, and one answer to a question that many pages ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

MOST = 500  # keys; the oldest go first


class _Kept:
    __slots__ = ("at", "lock", "value")

    def __init__(self) -> None:
        self.lock, self.at, self.value = threading.Lock(), float("-inf"), None


class Shared:
    """Of this process, by key. Whoever asks while another makes it waits for that one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Kept] = {}

    def get[T](self, key: Hashable, seconds: float, make: Callable[[], T]) -> T:
        """What was made within the last `seconds`, else made anew."""
        with self._lock:
            kept: Any = self._kept.get(key)
            if kept is None:
                while len(self._kept) >= MOST:
                    self._kept.pop(next(iter(self._kept)))
                kept = self._kept[key] = _Kept()
        with kept.lock:
            if time.monotonic() - kept.at >= seconds:
                kept.value = make()
                kept.at = time.monotonic()
            value: T = kept.value
            return value

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


shared = Shared()
