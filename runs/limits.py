"""What may be limited: calls of a tool at once, sends in a time, runs in flight. Pure; `permits` keeps it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from journal.encoding import canonical

LONGEST_KEY = 100
MOST_COUNTED = 100  # sends that one row remembers; a faster rate is kept over a shorter time
MOST_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `at_once` calls under way, over all runs; with `key` (an argument's name) for each value of it."""

    at_once: int = 1
    key: str | None = None

    def __post_init__(self) -> None:
        _whole("Limit(at_once=)", self.at_once)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `calls` sends in any `per` seconds, over all runs; with `key` for each value of that argument.

    Every attempt counts. A worker that dies between asking and sending wastes one.
    """

    calls: int
    per: float
    key: str | None = None

    def __post_init__(self) -> None:
        _whole("Rate(calls=)", self.calls)
        if not 0 < self.per <= 366 * 86_400:
            raise ValueError("Rate(per=) is a number of seconds, up to a year")

    @property
    def counted(self) -> tuple[int, float]:
        """Calls and seconds as they are counted: 1,000 in 10 s are kept as 100 in 1 s, which is never more."""
        calls = self.calls // math.ceil(self.calls / MOST_COUNTED)
        return calls, self.per * calls / self.calls


def as_limit(given: int | str | Limit | None) -> Limit | None:
    """`limit=3`, `limit="customer_id"` (one at a time for each customer), `limit=Limit(3, "customer_id")`."""
    match given:
        case None | Limit():
            return given
        case str():
            return Limit(1, given)
        case int():
            return Limit(given)
    raise TypeError(f"limit= takes a number, an argument's name or a Limit, not {type(given).__name__}")


def missing_keys(limit: Limit | None, rate: Rate | None, arguments: Iterable[str]) -> list[str]:
    """What names an argument that the tool does not have, one sentence each."""
    known = list(arguments)
    asked = [(word, bound.key) for word, bound in (("limit", limit), ("rate", rate)) if bound and bound.key]
    return [
        f"{word}= names the argument {key!r}; it has {', '.join(known) or 'none'}"
        for word, key in asked
        if key not in known
    ]


def value_of(key: str | None, args: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The value that is counted by, as a short text: itself if it is one, else the digest of its canonical form."""
    if key is None:
        return ""
    value = args.get(key, defaults.get(key))
    if isinstance(value, str) and value.isascii() and value.isprintable() and len(value) <= LONGEST_KEY:
        return value
    return hashlib.sha256(canonical(value)).hexdigest()


def at_once_text(tool: str, limit: Limit, value: str) -> str:
    """`refund is limited to 3 at once`, `refund is limited to 1 at once for customer_id c-1`."""
    return f"{tool} is limited to {limit.at_once} at once" + (f" for {limit.key} {value}" if limit.key else "")


def rate_text(tool: str, rate: Rate, value: str) -> str:
    per = f"{rate.calls} in {rate.per:g} s"
    return f"{tool} is limited to {per}" + (f" for {rate.key} {value}" if rate.key else "")


def ordinal(place: int) -> str:
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _whole(name: str, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MOST_AT_ONCE:
        raise ValueError(f"{name} is a whole number from 1 to {MOST_AT_ONCE:,}")
