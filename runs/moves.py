"""What an agent can decide next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from runs.answer_types import SchemaRefused, check_options, validator_of
from runs.labels import wrong_labels
from runs.mistakes import not_a_move
from runs.texts import is_writable

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

    @classmethod
    def of(
        cls, tool: str, args: Mapping[str, Any], id: str | None = None, plan: Sequence[Any] | None = None,
        thought: str | None = None,
    ) -> Call:  # fmt: skip
        """With whatever names its arguments have: `id`, `plan` and `thought` too."""
        call = cls(tool, id=id, plan=plan, thought=thought)
        object.__setattr__(call, "args", dict(args))
        return call


LONGEST_NAME = 200  # of a signal, an agent, a version
LONGEST_SLEEP = 10 * 366 * 86_400.0


def check_seconds(what: str, given: Any, least: str = "0") -> None:
    """Raises ValueError for what is no number of seconds from `least` ("0", or "above 0") to ten years."""
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not number or not 0 <= given <= LONGEST_SLEEP or (given == 0 and least != "0"):
        raise ValueError(f"{what} takes a number of seconds, from {least} to ten years, not {given!r:.40}")


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
        if self.seconds is not None:
            check_seconds("Sleep", self.seconds)
            return
        if not isinstance(self.until, datetime) or self.until.tzinfo is None:
            raise ValueError("Sleep(until=) needs a datetime with a time zone")
        if not 1 < self.until.year < 9999:  # whose zone could lead out of the calendar
            raise ValueError("Sleep(until=) takes a time in the years 2 to 9998")

    def due(self, now: datetime) -> float:
        """POSIX seconds at which it ends, counted from `now`."""
        return now.timestamp() + self.seconds if self.seconds is not None else self.until.timestamp()  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait for a signal of this name. Signals are kept in order, also those that came before anybody waited for them.

    The result is the signal's payload; after `timeout` seconds the wait has expired.
    """

    name: str
    timeout: float | None = None
    plan: Sequence[Any] | None = field(default=None, kw_only=True)
    thought: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= LONGEST_NAME:
            raise ValueError(f"WaitFor takes the name of a signal, 1 to {LONGEST_NAME} characters")
        if "\0" in self.name or not self.name.isprintable():
            raise ValueError("WaitFor takes the name of a signal: printable text")
        if self.timeout is not None:
            check_seconds("WaitFor(timeout=)", self.timeout)


@dataclass(frozen=True, slots=True, init=False)
class Ask:
    """Ask a person. The result is the answer, of this type and, where given, one of the options.

    After `timeout` seconds without an answer the question has expired.
    """

    question: str
    schema: dict[str, Any]
    type: Any  # None if it was given as a schema
    options: Sequence[Any] | None
    timeout: float | None
    plan: Sequence[Any] | None
    thought: str | None

    def __init__(
        self,
        question: str,
        type: Any = str,
        options: Sequence[Any] | None = None,
        timeout: float | None = None,
        *,
        plan: Sequence[Any] | None = None,
        thought: str | None = None,
    ) -> None:
        if not isinstance(question, str) or not question.strip():
            raise ValueError("Ask takes a question as text")
        if options is not None and not list(options):
            raise ValueError("Ask(options=) needs at least one option, or none given at all")
        if timeout is not None:
            check_seconds("Ask(timeout=)", timeout)
        schema = schema_of(type, "Ask(type=)")
        for name, value in (
            ("question", question),
            ("schema", schema),
            ("type", None if isinstance(type, dict) else type),
            ("options", None if options is None else options_of(type, schema, options)),
            ("timeout", timeout),
            ("plan", plan),
            ("thought", thought),
        ):
            object.__setattr__(self, name, value)

    def typed(self, answer: Any) -> Any:
        """The answer, which came as JSON, as a value of the type. Raises ValueError if it is none."""
        return answer if self.type is None else TypeAdapter(self.type).validate_python(answer)


def schema_of(type: Any, what: str) -> dict[str, Any]:
    """The JSON schema of a type that `what` was given, or a schema given as such. Raises ValueError."""
    if isinstance(type, dict):
        try:
            validator_of(json.dumps(type))
        except (SchemaRefused, TypeError) as error:
            raise ValueError(f"{what} is no JSON schema: {error}") from error
        return type
    try:
        return TypeAdapter(type).json_schema()
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, TypeError) as error:
        raise ValueError(f"{what} takes a type that has a JSON schema, not {type!r}") from error


def options_of(type: Any, schema: dict[str, Any], options: Sequence[Any]) -> list[Any]:
    """As a person gives them: JSON. Raises ValueError for one that the type refuses."""
    given = list(options)
    if not isinstance(type, dict):
        given = [TypeAdapter(Any).dump_python(option, mode="json") for option in given]
    check_options(schema, given)
    return given


def is_name(given: Any) -> bool:
    return isinstance(given, str) and 0 < len(given) <= LONGEST_NAME and is_writable(given)


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a run of another agent as a child. The result is the child's; its failure is the call's.

    `deadline`: seconds after which the child is cancelled.
    """

    agent: Any  # an Agent, or its name; kept as the name
    input: Any = None
    release: str | None = field(default=None, kw_only=True)
    labels: Mapping[str, str] | None = field(default=None, kw_only=True)
    deadline: float | None = field(default=None, kw_only=True)
    plan: Sequence[Any] | None = field(default=None, kw_only=True)
    thought: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        name = getattr(self.agent, "name", self.agent)
        if not is_name(name):
            raise ValueError(f"Spawn takes an agent or its name, 1 to {LONGEST_NAME} characters")
        object.__setattr__(self, "agent", name)
        if self.release is not None and not is_name(self.release):
            raise ValueError("Spawn(release=) takes the version of a release, or its id, as text")
        if self.labels is not None and not isinstance(self.labels, Mapping):
            raise ValueError(f"Spawn(labels=) takes texts by name, not {self.labels!r:.60}")
        if wrong := wrong_labels(self.labels or {}):
            raise ValueError(f"Spawn(labels=): {wrong}")
        if self.deadline is not None:
            check_seconds("Spawn(deadline=)", self.deadline, least="above 0")

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked for beside agent and input."""
        return some(release=self.release, labels=dict(self.labels or {}) or None, deadline=self.deadline)


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


Wait = Sleep | WaitFor | Ask | Spawn
Move = Call | Wait | Finish | Fail
Join = Literal["all", "first"]


class First:
    """Waits side by side, over as soon as one of them has succeeded (a Sleep by ending) or all have failed.

    The others are withdrawn; children among them are cancelled. A call cannot be withdrawn, so it cannot stand here.
    """

    def __init__(self, *moves: Wait) -> None:
        for move in moves:
            if not isinstance(move, (Sleep, WaitFor, Ask, Spawn)):
                raise TypeError(f"First takes Sleep, WaitFor, Ask and Spawn, not {type(move).__name__}")
        if not moves:
            raise TypeError("First takes at least one move")
        self.moves = moves


class Won(NamedTuple):
    """What a flow gets for a First: which of its moves succeeded first, counted from 0, and its result."""

    which: int
    value: Any


@dataclass(frozen=True, slots=True)
class Decided:
    """Moves side by side, and whether all of them are waited for or the first to succeed. `said`: they follow from the
    model's last answer, whose PLAN is theirs."""

    moves: list[Move]
    join: Join = "all"
    said: bool = False


def as_record(move: Move) -> dict[str, Any]:
    """The move as it is journaled in a model's PLAN, shown in a divergence and compared at a re-decision."""
    match move:
        case Call():
            return {"call": move.tool, "args": move.args} | some(id=move.id)
        case Sleep():
            return {"sleep": move.seconds} if move.until is None else {"until": move.until.astimezone(UTC)}
        case WaitFor():
            return {"wait_for": move.name} | some(timeout=move.timeout)
        case Ask():
            return {"ask": move.question, "schema": move.schema} | some(options=move.options, timeout=move.timeout)
        case Spawn():
            asked = some(
                release=move.release, labels=dict(move.labels) if move.labels else None, deadline=move.deadline
            )
            return {"spawn": move.agent, "input": move.input} | asked
        case Finish():
            return {"finish": move.value}
        case Fail():
            return {"fail": move.reason}


def some(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def from_record(record: Mapping[str, Any]) -> Move:
    """The move that `as_record` told of."""
    given = dict(record)
    if "call" in given:
        return Call.of(given["call"], given["args"], given.get("id"))
    if "sleep" in given:
        return Sleep(given["sleep"])
    if "until" in given:
        return Sleep(until=given["until"])
    if "wait_for" in given:
        return WaitFor(given["wait_for"], given.get("timeout"))
    if "ask" in given:
        return Ask(given["ask"], given["schema"], given.get("options"), given.get("timeout"))
    if "spawn" in given:
        return Spawn(given.pop("spawn"), given.pop("input"), **given)
    if "finish" in given:
        return Finish(given["finish"])
    return Fail(given["fail"])


MOVES = (Call, Sleep, WaitFor, Ask, Spawn, Finish, Fail)
NAMED = "Call, Sleep, WaitFor, Ask, Spawn, First, Finish or Fail"


def as_decided(given: object) -> Decided:
    """What an agent returned or yielded; raises TypeError naming what is wrong."""
    if isinstance(given, First):
        return Decided(list(given.moves), "first")
    moves: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    for move in moves:
        if isinstance(move, First):
            raise TypeError("First stands alone: decide it by itself, not in a list")
        if not isinstance(move, MOVES):
            raise TypeError(not_a_move(move, NAMED))
    if not moves:
        raise TypeError("an agent decided nothing: return a move, or Finish()")
    if len(moves) > 1 and any(isinstance(move, (Finish, Fail)) for move in moves):
        raise TypeError("Finish and Fail stand alone: they cannot be decided beside other moves")
    return Decided(moves)
