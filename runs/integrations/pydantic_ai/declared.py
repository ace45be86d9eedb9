"""A pydantic-ai Agent, unchanged, as an agent of ours."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from pydantic_ai import Agent as LibraryAgent
from pydantic_ai import ModelMessagesTypeAdapter
from pydantic_ai.durable_exec import replay_scope
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_jsonable_python

from journal.entries import Entry
from runs.agents import Agent
from runs.brakes import Budget
from runs.compared import Judge
from runs.integrations.pydantic_ai.driver import JournaledDriver
from runs.integrations.pydantic_ai.durability import Durability, hear
from runs.integrations.pydantic_ai.toolbox import OpenToolbox, Treatment, added_since, tools_of
from runs.integrations.pydantic_ai.units import innermost
from runs.moves import some
from runs.run_view import RunView
from runs.state import RunState
from runs.tools import Approval, Effect, Probe

Deps = Callable[[RunView], Any] | None


@dataclass(eq=False)
class JournaledAgent:
    """Fills the model slot of an agent; drives it itself."""

    library: LibraryAgent[Any, Any]
    name: str
    timeout: float
    deps: Deps
    native: Mapping[str, str]
    limits: UsageLimits | None
    stream: bool
    origin: str  # the module that declares it
    model_name: str
    known: frozenset[str] = frozenset()

    @property
    def content(self) -> dict[str, Any]:
        """What the release says of it. Instructions that functions make are theirs to say; their code counts."""
        texts = [each for each in _instructions(self.library) if isinstance(each, str)]
        settings = self.library.model_settings
        return {
            "name": self.model_name,
            "library": "pydantic-ai",
            "timeout": self.timeout,
            "prompt": "\n\n".join(texts),
            "settings": _plain(settings) if settings and not callable(settings) else {},
            "output": _plain(self.library.output_json_schema()),
            "streamed": self.stream,
        } | some(
            native=dict(self.native) or None,
            usage_limits=None if self.limits is None else _plain(self.limits),
        )

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        """The module where it is declared counts as its code, and those of the functions that write instructions."""
        writing = [each for each in _instructions(self.library) if inspect.isfunction(each)]
        return [SimpleNamespace(__module__=self.origin), *writing]  # type: ignore[list-item]

    def driver(self, agent: Agent, state: RunState, entries: Sequence[Entry], judge: Judge) -> JournaledDriver:
        return JournaledDriver(self, agent, state, judge)

    async def run(self, view: RunView) -> Any:
        """The agent's own run, from the top. Raises what that raises."""
        if late := added_since(self.library, self.known):
            raise ValueError(f"the tool {late} was added after journaled() had declared the agent: declare it last")
        asked = asked_of(view.input)
        given: dict[str, Any] = {"model_settings": {"max_retries": 0}}
        if self.deps is not None:
            given["deps"] = self.deps(view)
        if self.limits is not None:
            given["usage_limits"] = self.limits
        if asked["message_history"]:
            given["message_history"] = ModelMessagesTypeAdapter.validate_python(asked["message_history"])
        with replay_scope():
            return await self.library.run(asked["prompt"], capabilities=[self.durability()], infer_name=False, **given)

    def durability(self) -> Durability:
        return Durability(name=self.name, event_stream_handler=hear if self.stream else None)


class Journaled(Agent):
    """An agent whose toolbox also has what a server offers at run time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.toolbox = OpenToolbox(self.toolbox)


def journaled(
    agent: LibraryAgent[Any, Any],
    *,
    name: str,
    version: str,
    effects: Mapping[str, Effect] | None = None,
    probes: Mapping[str, Probe] | None = None,
    approval: Mapping[str, Approval] | None = None,
    tools: Mapping[str, Mapping[str, Any]] | None = None,
    native: Mapping[str, str] | None = None,
    deps: Deps = None,
    usage_limits: UsageLimits | None = None,
    timeout: float = 120.0,
    stream: bool | None = None,
    budget: Budget | None = None,
    deadline: float | None = None,
    limit: int | None = None,
    unique: str | None = None,
    input: Any = None,
) -> Agent:
    """The agent, journaled: each model request and each tool's call happens once, whatever crashes.

    By the tool's name ("server:tool" for a server's, "server:*" for all others of it): `effects`, the effect class of
    each (default "unkeyed"); `probes`; `approval`, who has to agree (with requires_approval=True any approver);
    `tools`, other settings of `@tool` (timeout, retry, limit, summary …). `native`: tools that the provider runs
    inside a request, each declared "read". `deps(run)` makes the agent's deps, anew at each replay. `usage_limits`:
    instead of the library's own, which end a run after 50 requests. `timeout`: seconds for a model request. `stream`:
    whether answers are shown while they arrive. The others are those of `Agent`. A run's input is the prompt, or
    {"prompt": …, "message_history": […]}. Raises ValueError.
    """
    if (fault := _unfit(agent) or _unread(native or {})) is not None:
        raise ValueError(f"journaled agent {name}: {fault}")
    stream = _streams(agent.model) if stream is None else stream
    origin = sys._getframe(1).f_globals["__name__"]
    slot = JournaledAgent(
        agent, name, timeout, deps, native or {}, usage_limits, stream, origin, _model_name(agent.model)
    )
    treatment = Treatment(effects or {}, probes or {}, approval or {}, tools or {})
    try:
        durability = slot.durability()
        durability.for_agent(agent)  # the library's own objections, before anything runs
        found = tools_of(agent, treatment, durability.operations)
        slot.known = frozenset(tool.name for tool in found)
    except (UserError, ValueError) as error:
        raise ValueError(f"journaled agent {name}: {error}") from error
    return Journaled(
        name=name, version=version, tools=found, decide=slot, budget=budget, deadline=deadline, limit=limit,
        unique=unique, input=input,
    )  # fmt: skip


def asked_of(given: Any) -> dict[str, Any]:
    """What a run's input asks: prompt and message history."""
    if isinstance(given, dict) and "prompt" in given:
        return {"prompt": given["prompt"], "message_history": given.get("message_history")}
    return {"prompt": given if isinstance(given, str) else json.dumps(given), "message_history": None}


def _streams(model: Any) -> bool:
    """A FunctionModel of tests has a function for one of the two, or for both."""
    return getattr(innermost(model), "stream_function", True) is not None


def _unfit(agent: Any) -> str | None:
    """Why it cannot be journaled."""
    if not isinstance(agent, LibraryAgent):
        return f"journaled() takes a pydantic_ai.Agent, not {type(agent).__name__}"
    if agent.model is None:
        return "it has no model: give Agent(model) one"
    if isinstance(innermost(agent.model), FallbackModel):
        return (
            "a FallbackModel makes several requests in one, of which the journal would know one: give it one model; "
            "a request that fails is asked again by the engine"
        )
    if _retries(agent.model):
        return "its model's HTTP transport retries unseen by the journal: leave it out, the engine asks again"
    return None


def _unread(native: Mapping[str, str]) -> str | None:
    wrong = next((kind for kind, effect in native.items() if effect != "read"), None)
    return None if wrong is None else f"native={{{wrong!r}: …}}: what a provider runs by itself has to be read"


def _retries(model: Any) -> bool:
    """Whether requests are repeated below the model, where its own setting for retries does not reach. Clients have no
    public word for their transport: what is not found is not refused."""
    http = getattr(getattr(innermost(model), "client", None), "_client", None)
    return "Tenacity" in type(getattr(http, "_transport", None)).__name__


def _model_name(model: Any) -> str:
    """A FunctionModel calls itself function:function:brain:streams."""
    name = model.model_id if isinstance(model, Model) else str(model)
    provider, _, rest = name.partition(":")
    return f"{provider}:{rest.removeprefix(f'{provider}:').strip(':')}" if rest else name


def _instructions(agent: Any) -> list[Any]:
    """Texts and functions. The library has no public word for them: without them the release says less."""
    given = [getattr(each, "instruction", each) for each in getattr(agent, "_instructions", ())]
    return [*getattr(agent, "_system_prompts", ()), *given]


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(to_jsonable_python(value, fallback=lambda other: type(other).__name__)))
