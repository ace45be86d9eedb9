"""One event loop in one thread per process, and one HTTP client on it: requests of all runs share them.

Threads hand it coroutines and wait. A client is bound to the loop that it was first used on, so that there is one of
each; a child that was forked makes its own.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

END_SECONDS = 2.0

_lock = threading.Lock()
_closing: list[Callable[[], Coroutine[Any, Any, None]]] = []
_loop: asyncio.AbstractEventLoop | None = None


def submit[T](work: Coroutine[Any, Any, T]) -> Future[T]:
    """Never call `result()` of it on the loop's own thread."""
    return asyncio.run_coroutine_threadsafe(work, _running())


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="model-loop", daemon=True).start()
        return _loop


def at_end(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """What the process does on the loop before it ends."""
    with _lock:
        _closing.append(close)


def _end() -> None:
    """A worker leaves without this; whoever ends in peace leaves no connection open behind it."""
    global _loop
    with _lock:
        loop, closing, _loop = _loop, list(_closing), None
        _closing.clear()
    if loop is None:
        return
    for close in closing:
        try:
            asyncio.run_coroutine_threadsafe(close(), loop).result(END_SECONDS)
        except Exception:  # it ends all the same
            continue
    loop.call_soon_threadsafe(loop.stop)


def _forget() -> None:
    """In a child: the thread has stayed behind, and the lock may have been held by another."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()
    _closing.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)
