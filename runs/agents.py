"""Agents: a name, a version, tools, and what decides the next move."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from journal.encoding import canonical
from runs.brakes import Budget
from runs.moves import Move, schema_of
from runs.tools import Tool

if TYPE_CHECKING:
    from runs.run_view import RunView

Flow = Callable[["RunView"], Generator[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """The model slot filled by a function: `ask(state) -> (moves, usage)`. Its answers are journaled before use.

    `model`, `prompt` and `settings` (what JSON knows) say what the function asks, and how: they are part of the
    release, so that another prompt needs another version. Nothing is sent from here; the function sends it.
    """

    ask: Callable[[RunView], tuple[Move | list[Move], dict[str, Any]]]
    model: str = "function"
    timeout: float = 60.0
    prompt: str | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.prompt is not None and not isinstance(self.prompt, str):
            raise ValueError(f"model {self.model}: prompt= is a text, not {type(self.prompt).__name__}")
        if self.settings is not None and not _is_json_object(self.settings):
            raise ValueError(f"model {self.model}: settings= is a dict of what JSON knows")

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        return [self.ask]

    @property
    def content(self) -> dict[str, Any]:
        """What a release says of it; what is not given is left out."""
        given = {"prompt": self.prompt, "settings": dict(self.settings) if self.settings else None}
        return {"name": self.model, "timeout": self.timeout} | {n: v for n, v in given.items() if v is not None}


class ModelSlot(Protocol):
    """What decides by asking a model. `content`: what the release says of it; `functions`: code of the agent's that it
    runs, which the code digest covers."""

    @property
    def content(self) -> dict[str, Any]: ...

    @property
    def functions(self) -> Sequence[Callable[..., Any]]: ...

    @property
    def timeout(self) -> float: ...


Decider = Callable[["RunView"], Any] | ModelSlot
Durability = Literal["journal", "stateless"]
LONGEST_DEADLINE = 10 * 366 * 86_400.0


@dataclass(eq=False)
class Agent:
    """`decide(state) -> Move | [Move]` is pure, and is called when no intent is unsettled; or a model decides: a
    ModelLoop, or a FunctionModel.

    `budget`: what a run may spend before a person looks at it. `deadline`: seconds after its start at which a run that
    has not ended is cancelled. `limit`: runs in flight at once; one that waits or is parked is not in flight. `unique`:
    a label whose value only one open run of the agent may have. `input`: the type of a run's input, or its JSON schema;
    whoever starts a run is told what the type refuses. A run's `input` stays the JSON that was given.
    """

    name: str
    version: str
    tools: Iterable[Tool] = ()
    decide: Decider | None = None
    flow: Flow | None = None
    budget: Budget | None = None
    deadline: float | None = None
    limit: int | None = None
    unique: str | None = None
    durability: Durability = "journal"
    input: Any = None

    def __post_init__(self) -> None:
        if (self.decide is None) == (self.flow is None):
            raise ValueError(f"agent {self.name}: give decide=, or declare a generator with @flow")
        for word, value in (("name", self.name), ("version", self.version)):
            if not value or not isinstance(value, str) or any(c in value for c in "@,: \n"):
                raise ValueError(f"agent {self.name!r}: its {word} is a text without spaces, '@', ':' and ','")
        self.toolbox = {t.name: t for t in self.tools}
        if len(self.toolbox) != len(list(self.tools)):
            raise ValueError(f"agent {self.name}: two of its tools have the same name")
        if wrong := self._wrong_bounds():
            raise ValueError(f"agent {self.name}: {wrong}")
        self.takes = None if self.input is None else schema_of(self.input, f"agent {self.name}: input=")
        self.limited = [t.name for t in self.toolbox.values() if t.limited]

    def _wrong_bounds(self) -> str | None:
        if self.budget is not None and not isinstance(self.budget, Budget):
            return f"budget= takes a Budget, not {type(self.budget).__name__}"
        if self.deadline is not None and not 0 < self.deadline <= LONGEST_DEADLINE:
            return "deadline= is a number of seconds, up to ten years"
        if self.limit is not None and not (type(self.limit) is int and self.limit > 0):
            return "limit= is how many of its runs may be in flight: a whole number above zero"
        if self.unique is not None and (not self.unique or ":" in self.unique):
            return "unique= names a label, which has no colon"
        if self.durability not in ("journal", "stateless"):
            return f"durability= is 'journal' or 'stateless', not {self.durability!r}"
        return None

    @property
    def model(self) -> ModelSlot | None:
        """What asks a model for the moves, if one decides."""
        return self.decide if hasattr(self.decide, "content") else None  # type: ignore[return-value]

    @cached_property
    def content(self) -> dict[str, Any]:
        """The whole contract that runs are pinned to."""
        slot = self.model
        bounds = {
            "input": self.takes,
            "budget": self.budget.content if self.budget else None,
            "deadline": self.deadline,
            "limit": self.limit,
            "unique": self.unique,
            "durability": None if self.durability == "journal" else self.durability,
        }
        return {name: bound for name, bound in bounds.items() if bound is not None} | {
            "agent": self.name,
            "version": self.version,
            "driver": "flow" if self.flow else "model" if slot else "decide",
            "model": slot.content if slot else None,
            "tools": [t.contract for _, t in sorted(self.toolbox.items())],
        }

    @cached_property
    def release_id(self) -> str:
        return hashlib.sha256(canonical(self.content)).hexdigest()

    @cached_property
    def code_digest(self) -> str:
        """SHA-256 of the source files of the modules that define the agent and its tools."""
        slot = self.model
        deciding = slot.functions if slot is not None else [self.flow or self.decide]
        functions = [*deciding, *(t.plain for _, t in sorted(self.toolbox.items()))]
        files = {inspect.getsourcefile(sys.modules[f.__module__]) or "" for f in functions if f is not None}
        digest = hashlib.sha256()
        for file in sorted(files):
            digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
        return digest.hexdigest()


def flow(
    *,
    name: str,
    version: str,
    tools: Iterable[Tool] = (),
    budget: Budget | None = None,
    deadline: float | None = None,
    limit: int | None = None,
    unique: str | None = None,
    durability: Durability = "journal",
    input: Any = None,
) -> Callable[[Flow], Agent]:
    """Declare a generator as an agent. It is replayed from the journal: a yield unlike the recorded is a divergence."""

    def declare(function: Flow) -> Agent:
        if not inspect.isgeneratorfunction(function):
            raise ValueError(f"flow {name}: it has to yield its calls (it is not a generator function)")
        return Agent(
            name, version, tuple(tools), flow=function, budget=budget, deadline=deadline, limit=limit, unique=unique,
            durability=durability, input=input,
        )  # fmt: skip

    return declare


def _is_json_object(value: Any) -> bool:
    """Whether JSON gives it back as it is: a release is found again by the digest of its content."""
    try:
        return isinstance(value, dict) and canonical(json.loads(json.dumps(value, allow_nan=False))) == canonical(value)
    except (TypeError, ValueError):
        return False
