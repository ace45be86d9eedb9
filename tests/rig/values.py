"""Awkward values by name, for tools that return, take or fail with them."""

import dataclasses
import datetime as dt
import enum
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: float


def _cycle() -> list[Any]:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


MOMENT = dt.datetime(2026, 2, 3, 4, 5, 6, 789, dt.UTC)
VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "nan": lambda: float("nan"),
    "infinity": lambda: {"rate": float("inf"), "worst": float("-inf")},
    "minus zero": lambda: -0.0,
    "large float": lambda: 1e22,
    "huge int": lambda: 10**5000,
    "nul": lambda: "before\x00after",
    "written nul": lambda: "before\\u0000after",
    "surrogate": lambda: "lone \ud800",
    "datetime": lambda: MOMENT,
    "naive datetime": lambda: MOMENT.replace(tzinfo=None),
    "date": lambda: MOMENT.date(),
    "time": lambda: MOMENT.time(),
    "timedelta": lambda: dt.timedelta(days=1, microseconds=5),
    "decimal": lambda: Decimal("120.00"),
    "uuid": lambda: uuid.UUID(int=7),
    "bytes": lambda: b"\x00\xff",
    "set": lambda: {3, 1, 2},
    "tuple": lambda: (1, ("a", None)),
    "enum": lambda: Colour.RED,
    "dataclass": lambda: Point(1, 2.5),
    "exception": lambda: ValueError("wrong", 3),
    "number keys": lambda: {1: "one", None: "none", (2, 3): "pair"},
    "looks like a tag": lambda: {"$": "bytes", "v": "AA=="},
    "lock": lambda: {"items": [1, threading.Lock()]},
    "cycle": _cycle,
    "deep": lambda: _nested(5_000),
    "50 MB bytes": lambda: bytes(50_000_000),
    "50 MB text": lambda: "x" * 50_000_000,
    "markup": lambda: "<img src=x onerror=alert(1)></script><script>alert(2)</script>",
}
