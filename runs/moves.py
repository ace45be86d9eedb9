"""What an agent can decide next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runs.tools import Tool


@dataclass(frozen=True, slots=True, init=False)
class Call:
    """Call a tool, given itself or its name. `id` is the agent's own name for the call; it is never the key."""

    tool: str
    args: dict[str, Any]
    id: str | None
    plan: Sequence[Any] | None
    thought: str | None

    def __init__(
        self,
        tool: Tool | str,
        /,
        *,
        id: str | None = None,
        plan: Sequence[Any] | None = None,
        thought: str | None = None,
        **args: Any,
    ) -> None:
        for name, value in (
            ("tool", tool if isinstance(tool, str) else tool.name),
            ("args", args),
            ("id", id),
            ("plan", plan),
            ("thought", thought),
        ):
            object.__setattr__(self, name, value)


LONGEST_SLEEP = 10 * 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait without holding a worker, for some seconds or until a time (with a zone)."""

    seconds: float | None = None
    until: datetime | None = field(default=None, kw_only=True)
    plan: Sequence[Any] | None = field(default=None, kw_only=True)
    thought: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.until is None):
            raise ValueError("Sleep takes either seconds or until=")
        if self.seconds is not None and not 0 <= self.seconds <= LONGEST_SLEEP:
            raise ValueError("Sleep takes from 0 to ten years of seconds")
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError("Sleep(until=) needs a datetime with a time zone")

    def due(self, now: datetime) -> float:
        """POSIX seconds at which it ends, counted from `now`."""
        return now.timestamp() + self.seconds if self.seconds is not None else self.until.timestamp()  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run with a result."""

    value: Any = None
    plan: Sequence[Any] | None = field(default=None, kw_only=True)
    thought: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Fail:
    """End the run as failed."""

    reason: str
    plan: Sequence[Any] | None = field(default=None, kw_only=True)
    thought: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"Fail takes its reason as text, not {type(self.reason).__name__}")


Move = Call | Sleep | Finish | Fail


def as_record(move: Move) -> dict[str, Any]:
    """The move as it is journaled in a model's PLAN, shown in a divergence and compared at a re-decision."""
    match move:
        case Call():
            return {"call": move.tool, "args": move.args} | ({"id": move.id} if move.id is not None else {})
        case Sleep():
            return {"sleep": move.seconds} if move.until is None else {"until": move.until.astimezone(UTC)}
        case Finish():
            return {"finish": move.value}
        case Fail():
            return {"fail": move.reason}


def from_record(record: Mapping[str, Any]) -> Move:
    if "call" in record:
        return Call(record["call"], id=record.get("id"), **record["args"])
    if "sleep" in record:
        return Sleep(record["sleep"])
    if "until" in record:
        return Sleep(until=record["until"])
    if "finish" in record:
        return Finish(record["finish"])
    return Fail(record["fail"])


def as_moves(given: object) -> list[Move]:
    """What an agent returned or yielded, as a list of moves; raises TypeError naming what is wrong."""
    moves: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    for move in moves:
        if not isinstance(move, (Call, Sleep, Finish, Fail)):
            raise TypeError(f"an agent decides Call, Sleep, Finish or Fail, not {type(move).__name__}")
    if not moves:
        raise TypeError("an agent decided nothing: return a move, or Finish()")
    if len(moves) > 1 and any(isinstance(move, (Finish, Fail)) for move in moves):
        raise TypeError("Finish and Fail stand alone: they cannot be decided beside other moves")
    return moves
