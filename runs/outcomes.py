"""What a tool or a probe can say about an effect. Three values, not two: succeeded, failed, unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_WAIT = 30 * 86_400.0


def seconds_of(given: object) -> float | None:
    """A Retry-After as seconds, at most thirty days; None for what is not a number of seconds."""
    try:
        seconds = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return min(seconds, LONGEST_WAIT) if seconds >= 0 else None


class PermanentError(Exception):
    """Raised by a tool: the effect was surely not done, and trying again is pointless."""


class TransientError(Exception):
    """Raised by a tool: the effect was surely not done, and may be tried again.

    `retry_after`: seconds to wait at least, from the other side's Retry-After.
    """

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = seconds_of(retry_after)


class NeedsApproval(Exception):
    """Raised by a tool of another library: the effect was surely not done, and somebody has to approve it first."""


class UnknownOutcome(Exception):
    """Raised by a tool: nobody can say whether the effect was done."""


class CallFailed(Exception):
    """Raised into a flow whose call did not succeed: `outcome` is failed, denied, expired or cancelled.

    `edited`: whose arguments they were and which, if a person had changed them: `{"by": …, "args": …}`; else None.
    """

    def __init__(
        self, tool: str, outcome: str, reason: str, step: int, edited: Mapping[str, Any] | None = None
    ) -> None:
        said = f"{tool} {outcome}: "
        super().__init__(reason if said in reason else said + reason)  # once in a whole tree of the same agents
        self.tool, self.outcome, self.reason, self.step, self.edited = tool, outcome, reason, step, edited


@dataclass(frozen=True, slots=True)
class Found:
    """A probe's answer: the effect was done, with this result."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Absent:
    """A probe's answer: the effect was not done, and no request for it is on its way."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A probe's answer: it cannot be said now."""

    why: str = ""


LONGEST_ERROR = 10_000
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def describe(error: BaseException) -> str:
    """The error in words; never a traceback or a memory address, and not more than a person reads."""
    try:
        said = ADDRESS.sub("", str(error).strip())
    except Exception as fault:
        said = f"its text cannot be written: {type(fault).__name__}"
    if len(said) > LONGEST_ERROR:
        said = f"{said[:LONGEST_ERROR]} … ({len(said)} characters in all)"
    if isinstance(error, (PermanentError, TransientError)) and said:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
