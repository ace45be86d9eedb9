"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """The first true value of the condition; AssertionError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)
    return value
