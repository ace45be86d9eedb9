"""Tools: what an agent may call, with the effect class that says how a call in doubt is settled."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import random
import re
import typing
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model

from journal.encoding import canonical
from runs.limits import Limit, Rate, as_limit, missing_keys, value_of
from runs.outcomes import Absent, Found, Undecided
from runs.policies import ANY_ONE, Policy

Effect = Literal["read", "keyed", "probed", "unkeyed"]
EFFECTS: tuple[str, ...] = typing.get_args(Effect)
LONGEST_SUMMARY = 1_000


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after how many seconds at first, a call that surely did not act is sent again."""

    attempts: int = 5
    backoff: float = 1.0

    LONGEST = 300.0

    def wait(self, attempt: int, label: str) -> float:
        """Seconds before attempt `attempt + 1`: doubled each time, with a jitter that `label` alone decides."""
        spread = random.Random(f"{label}:{attempt}").uniform(0.5, 1.0)
        return min(self.backoff * 2.0 ** min(attempt - 1, 30), self.LONGEST) * spread


class Cancelled:
    """Whether somebody asked to cancel the run; true for a call that is under way when it happens."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool knows of its call. `key` is the same at each attempt; `deadline` is POSIX seconds."""

    key: str
    run_id: UUID
    step: int
    attempt: int
    deadline: float
    cancelled: Cancelled
    scratch: dict[str, Any] = field(default_factory=dict)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("holdfast.tool"))


NAME = re.compile(r"\S{1,200}")  # as a gate can name it
Probe = Callable[..., Found | Absent | Undecided]
Summary = Callable[[dict[str, Any]], str]
Approval = bool | Policy | Callable[[dict[str, Any]], bool | Policy]
Canonical = Callable[[dict[str, Any]], Mapping[str, Any]]


@dataclass(eq=False)
class Tool:
    """A function of the world. Made by `@tool`; called by the engine, and by tests directly."""

    function: Callable[..., Any]
    effect: Effect
    probe: Probe | None = None
    approval: Approval = False
    timeout: float = 60.0
    max_in_flight: float = 60.0
    key_ttl: float = 86_400.0
    retry: Retry = Retry()
    name: str = ""
    limit: Limit | None = None
    rate: Rate | None = None
    summary: Summary | None = None
    sample: Mapping[str, Any] | None = None
    canonical: Canonical | None = None

    def __post_init__(self) -> None:
        self.name = self.name or self.function.__name__
        if not NAME.fullmatch(self.name) or not self.name.isprintable():
            raise ValueError(f"tool {self.name!r}: its name has 1 to 200 printable characters and no spaces")
        if self.effect not in EFFECTS:
            raise ValueError(f"tool {self.name}: effect is one of {', '.join(EFFECTS)}, not {self.effect!r}")
        if self.effect == "probed" and self.probe is None:
            raise ValueError(f"tool {self.name}: effect='probed' needs probe=, the function that asks by key")
        if not (isinstance(self.approval, (bool, Policy)) or callable(self.approval)):
            raise ValueError(
                f"tool {self.name}: approval= is True, a Policy(...), or a function of the arguments that returns one"
                f" of them, not {self.approval!r}"
            )
        if self.canonical is not None and not callable(self.canonical):
            raise ValueError(f"tool {self.name}: canonical= is a function of the arguments that returns a dict")
        first = next(iter(inspect.signature(self.function).parameters), None)
        if first is None:
            raise ValueError(f"tool {self.name}: its first parameter is the ToolContext")
        self._parameters = list(inspect.signature(self.function).parameters.values())[1:]
        for fault in missing_keys(self.limit, self.rate, (p.name for p in self._parameters)):
            raise ValueError(f"tool {self.name}: {fault}")

    def __call__(self, ctx: ToolContext, **args: Any) -> Any:
        return self.function(ctx, **args)

    def faults(self, args: dict[str, Any]) -> list[str]:
        """What is wrong with these arguments, one sentence each."""
        try:
            self._arguments.model_validate(args)
        except ValidationError as error:
            return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        return []

    def takes_alike(self, mine: Any, theirs: Any) -> bool:
        """Whether two calls say the same to it, however they are written: numbers by value, text that its types read as
        numbers, what is left out as its default. `theirs` may be of another release: what this one does not know is
        passed over, and where it cannot read one of the two, what both name is compared."""
        if mine == theirs:
            return True
        if not (isinstance(mine, dict) and isinstance(theirs, dict)):
            return False
        try:
            return bool(self._read(mine) == self._read(theirs))
        except Exception:  # a validator of today may stumble over a value of then
            return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())

    def _read(self, args: dict[str, Any]) -> Any:
        known = self._arguments.model_fields
        open_ended = self._arguments.model_config["extra"] == "allow"
        return self._arguments.model_validate({n: arg for n, arg in args.items() if open_ended or n in known})

    def result_fault(self, result: object) -> str | None:
        """Why the result is not of the declared type, else None."""
        if self._result is None:
            return None
        try:
            self._result.validate_python(result)
        except ValidationError as error:
            return f"the result is not a {self._result_name}: {error.error_count()} fault(s)"
        return None

    def policy_for(self, args: dict[str, Any]) -> Policy | None:
        """Who has to agree to a call with these arguments; None: nobody. Raises what the tool's predicate raises."""
        given = self.approval(args) if callable(self.approval) else self.approval
        if isinstance(given, Policy):
            return given
        return ANY_ONE if given else None

    def fields_of(self, args: dict[str, Any]) -> dict[str, Any] | None:
        """The fields that an approval is bound to and that approvers see first, as `canonical=` names them. None: all
        of the arguments; also if it raised or returned no dict, since more is bound then, never less."""
        if self.canonical is None:
            return None
        try:
            return dict(self.canonical(deepcopy(args)))
        except Exception:
            logging.getLogger("holdfast.tool").warning("canonical= of %s failed", self.name, exc_info=True)
            return None

    @cached_property
    def has_secrets(self) -> bool:
        """Whether a parameter is `Secret`."""
        return '"writeOnly": true' in json.dumps(self.contract["parameters"])

    @property
    def limited(self) -> bool:
        """Whether a send needs a permit."""
        return self.limit is not None or self.rate is not None

    def limit_value(self, args: dict[str, Any]) -> str:
        """The value that calls at once are counted by."""
        return value_of(self.limit.key if self.limit else None, args, self._defaults)

    def rate_value(self, args: dict[str, Any]) -> str:
        """The value that sends in a time are counted by."""
        return value_of(self.rate.key if self.rate else None, args, self._defaults)

    def summary_of(self, args: dict[str, Any]) -> str | None:
        """What the call would do, for whoever approves it. None if nobody said, or if saying it failed."""
        if self.summary is None:
            return None
        try:
            return str(self.summary(args))[:LONGEST_SUMMARY]
        except Exception:
            logging.getLogger("holdfast.tool").warning("the summary of %s raised", self.name, exc_info=True)
            return None

    @cached_property
    def contract(self) -> dict[str, Any]:
        """The tool as a release holds it: schema, effect class and policy."""
        limits: dict[str, Any] = {}
        if self.limit is not None:
            limits["limit"] = {"at_once": self.limit.at_once, "key": self.limit.key}
        if self.rate is not None:
            limits["rate"] = {"calls": self.rate.calls, "per": self.rate.per, "key": self.rate.key}
        return limits | {
            "name": self.name,
            "parameters": self._arguments.model_json_schema(),
            "effect": self.effect,
            "probe": self.probe is not None,
            "returns": self._returns,
            "approval": self._approval_content,
            "canonical": self.canonical is not None,
            "timeout": self.timeout,
            "max_in_flight": self.max_in_flight,
            "key_ttl": self.key_ttl,
            "retry": {"attempts": self.retry.attempts, "backoff": self.retry.backoff},
            "doc": inspect.getdoc(self.function) or "",
        }

    @cached_property
    def digest(self) -> bytes:
        """sha256 over schema, effect class, policy and code: what an approval is bound to, beside the arguments."""
        functions = (self.function, self.probe, self.approval, self.canonical)
        code = [_source(f) for f in functions if callable(f)]
        return hashlib.sha256(canonical([self.contract, code])).digest()

    @property
    def _approval_content(self) -> Any:
        if isinstance(self.approval, Policy):
            return self.approval.content
        return "predicate" if callable(self.approval) else self.approval

    @property
    def _returns(self) -> dict[str, Any] | None:
        """JSON schema of the declared result; None without one, and of a type that JSON schema has no words for."""
        try:
            return self._result.json_schema() if self._result is not None else None
        except PydanticUserError:
            return None

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return {p.name: p.default for p in self._parameters if p.default is not p.empty}

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return typing.get_type_hints(self.function, include_extras=True)

    @cached_property
    def _arguments(self) -> Any:
        fields: dict[str, Any] = {}
        for parameter in self._parameters:
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            required = parameter.default is parameter.empty
            fields[parameter.name] = (self._hints.get(parameter.name, Any), ... if required else parameter.default)
        anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in self._parameters)
        config = ConfigDict(extra="allow" if anything else "forbid", arbitrary_types_allowed=True)
        return create_model(self.name, __config__=config, **fields)

    @cached_property
    def _result(self) -> TypeAdapter[Any] | None:
        hint = self._hints.get("return", Any)
        try:
            return None if hint in (Any, None, type(None)) else TypeAdapter(hint)
        except PydanticUserError:  # a class that says nothing of its fields: there is nothing to judge by
            return None

    @property
    def _result_name(self) -> str:
        return getattr(self._hints.get("return"), "__name__", str(self._hints.get("return")))


def _source(function: object) -> str:
    try:
        return inspect.getsource(function)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__qualname__)


def tool(
    *,
    effect: Effect,
    probe: Probe | None = None,
    approval: Approval = False,
    timeout: float = 60.0,
    max_in_flight: float = 60.0,
    key_ttl: float = 86_400.0,
    retry: Retry = Retry(),
    name: str = "",
    limit: int | str | Limit | None = None,
    rate: Rate | None = None,
    summary: Summary | None = None,
    sample: Mapping[str, Any] | None = None,
    canonical: Canonical | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a function as a tool. Times in seconds.

    `timeout`: after it a call's outcome is unknown. `max_in_flight`: how long a sent request may still act, waited out
    before a `probed` tool is asked. `key_ttl`: how long the other side remembers a key. `limit`: calls at once over all
    runs: `3`, `"customer_id"` (one for each value of that argument) or `Limit(3, "customer_id")`. `rate`: sends in a
    time. Both count by the tool's name, whatever agent calls. `summary`: what a call would do, in one sentence, for
    whoever approves it. `sample`: arguments with which `manage.py tools check` may really call it. `approval`: True
    (any one approver), a `Policy`, or a function of the arguments that returns one of these or False. `canonical`: a
    function of the arguments that returns the fields that an approval is bound to; without it, that is all of them.
    """
    if callable(effect):
        raise TypeError("@tool needs its effect class: @tool(effect='read' | 'keyed' | 'probed' | 'unkeyed')")

    def declare(function: Callable[..., Any]) -> Tool:
        return Tool(function, effect, probe, approval, timeout, max_in_flight, key_ttl, retry, name,
                    as_limit(limit), rate, summary, sample, canonical)  # fmt: skip

    return declare
