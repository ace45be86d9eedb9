"""Faults on order: what the providers do wrong, for which model and turn, and how many times."""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

# Answered instead of the turn, in each provider's own shape (dialects/refusals.py):
REFUSALS = (
    "rate_limit", "rate_limit_date", "server_error", "unavailable", "overloaded", "quota",
    "authentication", "not_found", "context_length", "bad_request",
)  # fmt: skip
# cut_before: the connection goes before a byte.     cut: it goes in the middle, `after` pieces of a stream.
# early_end: the stream ends cleanly too soon.       error_event: an error inside the stream, `after` pieces.
# garbage: 200 and no JSON.                          delay: `seconds` before the first byte.
# slow: `seconds` between pieces.                    hold: waits `after` pieces (0: before a byte) until released.
DELIVERIES = ("cut_before", "cut", "early_end", "error_event", "garbage", "delay", "slow", "hold")
STREAMED = ("early_end", "error_event")
# The turn itself comes out wrong (spoiled.py):
SPOILED = (
    "empty", "content_filter", "refusal", "length", "bad_arguments", "unknown_tool", "no_call_id", "empty_call_id",
)  # fmt: skip
KINDS = (*REFUSALS, *DELIVERIES, *SPOILED)


class BadFault(Exception):
    """A fault that cannot be ordered; the text says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`model`, `turn` None: any. `times` None: until removed. `retry_after` in seconds, None: not said.

    `after`: pieces of the stream that are sent before it, None: about half. `share`: of the requests it is for, evenly
    spread: 0.2 strikes every fifth.
    """

    kind: str
    model: str | None = None
    turn: int | None = None
    times: int | None = 1
    seconds: float = 1.0
    retry_after: float | None = None
    after: int | None = None
    share: float = 1.0

    @classmethod
    def parse(cls, wanted: Any) -> Self:
        """Raises BadFault."""
        if not isinstance(wanted, dict):
            raise BadFault("A fault is a JSON object.")
        if unknown := set(wanted) - set(cls.__dataclass_fields__):
            raise BadFault(f"Unknown: {', '.join(sorted(unknown))}.")
        try:
            fault = cls(**wanted)
            fault.check()
        except TypeError as error:
            raise BadFault(str(error)) from None
        return fault

    def check(self) -> None:
        """Raises BadFault."""
        if self.kind not in KINDS:
            raise BadFault(f"`kind` is one of {', '.join(KINDS)}.")
        for name, lowest in (("times", 1), ("turn", 0), ("after", 0)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < lowest):
                raise BadFault(f"`{name}` is a whole number from {lowest}.")
        if not 0 < self.share <= 1:
            raise BadFault("`share` is above 0 and at most 1.")
        if self.seconds < 0 or (self.retry_after or 0) < 0:
            raise BadFault("`seconds` and `retry_after` cannot be negative.")


@dataclass(slots=True)
class _Count:
    """Of one fault: requests it was for, and those it struck."""

    met: int = 0
    struck: int = 0

    def strikes(self, fault: Fault) -> bool:
        self.met += 1
        if int(self.met * fault.share) == int((self.met - 1) * fault.share) or self.spent(fault):
            return False
        self.struck += 1
        return True

    def spent(self, fault: Fault) -> bool:
        return fault.times is not None and self.struck >= fault.times


class Faults:
    """Ordered faults, oldest first, and how often a turn's own were given. For many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._ordered: dict[int, tuple[Fault, _Count]] = {}
        self._own: dict[tuple[str, int, int], _Count] = {}
        self._released = threading.Event()

    def order(self, fault: Fault) -> int:
        """Its number. Raises BadFault."""
        fault.check()
        with self._lock:
            number = next(self._numbers)
            self._ordered[number] = (fault, _Count())
        return number

    def take(self, model: str, turn: int, own: tuple[Fault, ...]) -> Fault | None:
        """The oldest ordered fault that strikes this request, counted; else the first of the turn's own that does."""
        with self._lock:
            for number, (fault, count) in list(self._ordered.items()):
                if fault.model in (None, model) and fault.turn in (None, turn) and count.strikes(fault):
                    if count.spent(fault):
                        del self._ordered[number]
                    return fault
            for place, fault in enumerate(own):
                if self._own.setdefault((model, turn, place), _Count()).strikes(fault):
                    return fault
        return None

    def active(self) -> list[Mapping[str, Any]]:
        with self._lock:
            ordered = list(self._ordered.items())
        return [{"id": number, **asdict(fault), "struck": count.struck} for number, (fault, count) in ordered]

    def clear(self) -> int:
        """Removes what was ordered. How many."""
        with self._lock:
            count = len(self._ordered)
            self._ordered.clear()
        return count

    def begin(self, model: str) -> None:
        """The faults of its turns' own strike anew."""
        with self._lock:
            self._own = {place: count for place, count in self._own.items() if place[0] != model}

    def gate(self) -> threading.Event:
        """Set at the next release: whoever is held waits for it."""
        with self._lock:
            return self._released

    def release(self) -> None:
        """Lets everybody go on who is held now; the next one is held again."""
        with self._lock:
            gate, self._released = self._released, threading.Event()
        gate.set()
