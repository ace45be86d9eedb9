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
from dataclasses import dataclass, replace
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Literal

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from journal.encoding import canonical
from runs.calling import Cancelled as Cancelled
from runs.calling import ToolContext as ToolContext
from runs.calling import made_under
from runs.limits import Limit, Rate, as_limit, missing_keys, value_of
from runs.outcomes import Absent, Found, PermanentError, Undecided
from runs.policies import ANY_ONE, Policy
from runs.signatures import hints_of, is_context, model_of, name_of, parameters_of, plain_of, plain_values, split

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


NAME = re.compile(r"\S{1,200}")  # as a gate can name it
Probe = Callable[..., Found | Absent | Undecided]
Summary = Callable[[dict[str, Any]], str]
Approval = bool | Policy | Callable[[dict[str, Any]], bool | Policy]
Canonical = Callable[[dict[str, Any]], Mapping[str, Any]]


@dataclass(eq=False)
class Tool:
    """A function of the world. Made by `@tool`; a run calls it by `perform`, everybody else as the function itself."""

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
        self.name = self.name or name_of(self.function)
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
        self.parameters = parameters_of(self.function)
        self.takes_context = bool(self.parameters) and is_context(self.parameters[0], self.function)
        if self.takes_context:
            del self.parameters[0]
        self._places = self.parameters if any(p.kind is p.POSITIONAL_ONLY for p in self.parameters) else []
        for fault in missing_keys(self.limit, self.rate, (p.name for p in self.parameters)):
            raise ValueError(f"tool {self.name}: {fault}")
        update_wrapper(self, self.function, updated=())
        if inspect.iscoroutinefunction(self.function):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """As the function is called: whoever else calls it notices nothing."""
        if args and isinstance(args[0], ToolContext) and self.takes_context:
            return made_under(args[0], self.function, *args, **named)
        return self.function(*args, **named)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method is bound as any method is: `shop.refund` is a tool of that shop."""
        if not self._is_method:
            return self
        bound = self.function.__get__(instance, owner)
        return self if bound is self.function else replace(self, function=bound)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What else the function has: `delay` of a task of Celery, `cache_clear`."""
            if name.startswith("_") or hasattr(type(self), name):  # as it failed at first
                return object.__getattribute__(self, name)
            return getattr(self.__dict__.get("function"), name)

    def perform(self, ctx: ToolContext, args: Mapping[str, Any]) -> Any:
        """A run's call: the result, or the coroutine that gives it. Its code finds `ctx` by `current_call()` too."""
        by_place, named = split(args, self._places)
        return made_under(ctx, self.function, *([ctx] if self.takes_context else []), *by_place, **named)

    def ask(self, ctx: ToolContext, args: Mapping[str, Any]) -> Any:
        """What the probe says of this call, or the coroutine that gives it."""
        assert self.probe is not None
        return made_under(ctx, self.probe, *([ctx] if self._probe_takes_context else []), **args)

    def typed(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """These arguments, of a JSON body for instance, as values of the declared types; what is left out stays out.

        Sealed ones have to be opened before. Raises PermanentError with what is wrong: nothing was sent.
        """
        try:
            read = self._arguments.model_validate(args)
        except ValidationError:
            raise PermanentError("; ".join(self.faults(dict(args)))) from None
        fields, others = self._field_of, read.model_extra or {}
        return {name: getattr(read, fields[name]) if name in fields else others[name] for name in args}

    def normal(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """A model's arguments as their types read them, in JSON's own types and Decimals: the number that a text stands
        for. What a predicate judges and a person approves is then what the function gets. As they are, where reading
        twice is not reading once."""
        try:
            read = self._arguments.model_validate(args)
            plain = plain_values(read.model_dump(exclude_unset=True))
            fields = self._field_of
            given = {name: plain[fields.get(name, name)] for name in args}
            return given if self._arguments.model_validate(given) == read else dict(args)
        except Exception:  # of a type's own serializer, or of what is no argument: whoever checks it says so
            return dict(args)

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
        open_ended = self._arguments.model_config["extra"] == "allow"
        return self._arguments.model_validate({n: arg for n, arg in args.items() if open_ended or n in self._field_of})

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
            "parameters": self._schema,
            "effect": self.effect,
            "probe": self.probe is not None,
            "returns": self._returns,
            "approval": self._approval_content,
            "canonical": self.canonical is not None,
            "timeout": self.timeout,
            "max_in_flight": self.max_in_flight,
            "key_ttl": self.key_ttl,
            "retry": {"attempts": self.retry.attempts, "backoff": self.retry.backoff},
            "doc": inspect.getdoc(self.plain) or "",
        }

    @cached_property
    def digest(self) -> bytes:
        """sha256 over schema, effect class, policy and code: what an approval is bound to, beside the arguments."""
        functions = (self.plain, self.probe, self.approval, self.canonical)
        code = [_source(f) for f in functions if callable(f)]
        return hashlib.sha256(canonical([self.contract, code])).digest()

    @property
    def _schema(self) -> Any:
        try:
            return self._arguments.model_json_schema()
        except PydanticUserError as error:
            raise ValueError(
                f"tool {self.name}: an argument is of a type that JSON has no words for"
                f" ({error.message.splitlines()[0]}): take its id, or a model of what is needed"
            ) from error

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
        return {p.name: p.default for p in self.parameters if p.default is not p.empty}

    @cached_property
    def plain(self) -> Any:
        """The function that somebody wrote, behind what binds or wraps it."""
        return plain_of(self.function)

    @property
    def _is_method(self) -> bool:
        if isinstance(self.function, classmethod):
            return True
        return bool(self.parameters) and self.parameters[0].name == "self" and inspect.isfunction(self.function)

    @property
    def _probe_takes_context(self) -> bool:
        """Unless it begins with an argument of the tool, or takes them by name alone."""
        first = next(iter(inspect.signature(self.probe).parameters.values()), None) if self.probe else None
        by_place = first is not None and first.kind not in (first.VAR_KEYWORD, first.KEYWORD_ONLY)
        return by_place and first is not None and first.name not in {p.name for p in self.parameters}

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return hints_of(self.function)
        except NameError as error:
            raise ValueError(
                f"tool {self.name}: an annotation cannot be read ({error}): import the type at run time, not only under"
                " TYPE_CHECKING"
            ) from error

    @property
    def _arguments(self) -> Any:
        return self._model[0]

    @property
    def _field_of(self) -> dict[str, str]:
        return self._model[1]

    @cached_property
    def _model(self) -> tuple[Any, dict[str, str]]:
        if self._is_method:
            raise ValueError(f"tool {self.name}: it is a method: give the agent that of an object, as in Shop().refund")
        return model_of(self.name, self.parameters, self._hints)

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
        if isinstance(function, Tool):  # another tool of the same function
            function = function.function
        if isinstance(function, staticmethod):
            function = function.__func__
        return Tool(function, effect, probe, approval, timeout, max_in_flight, key_ttl, retry, name,
                    as_limit(limit), rate, summary, sample, canonical)  # fmt: skip

    return declare
