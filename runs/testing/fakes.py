"""Fakes for tools: what they answer, and a ledger of what acted. Nothing here touches the world."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from runs.agents import Agent
from runs.calling import made_under
from runs.engine.calls import finish
from runs.outcomes import Absent, Found, UnknownOutcome
from runs.tools import Tool, ToolContext


class NotFaked(AssertionError):
    """A run called a tool for which the test gives no fake."""


class _Real:
    def __repr__(self) -> str:
        return "testing.REAL"


REAL = _Real()


@dataclass(frozen=True, slots=True)
class Each:
    """One behaviour after the other, the last for ever."""

    behaviours: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """It acts, and the answer never comes back."""

    result: Any = None


def each(*behaviours: Any) -> Each:
    """A fake that answers differently each time: `each(TransientError("busy"), {"id": 1})`. The last one stays."""
    if not behaviours:
        raise ValueError("each() takes at least one behaviour")
    return Each(behaviours)


def lost(result: Any = None) -> Lost:
    """A fake that acts, with this result for whoever asks by key, but whose answer is lost: the outcome is unknown."""
    return Lost(result)


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a fake did."""

    tool: str
    key: str
    args: dict[str, Any]
    result: Any


@dataclass(slots=True)
class World:
    """What fakes did, and how often they were called. One for all runs of a trial."""

    effects: list[Effect] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    _by_key: dict[str, list[Effect]] = field(default_factory=dict)

    def act(self, effect: Effect) -> None:
        self.effects.append(effect)
        self._by_key.setdefault(effect.key, []).append(effect)

    def acted(self, key: str) -> int:
        return len(self._by_key.get(key, ()))

    def first(self, key: str) -> Effect | None:
        return next(iter(self._by_key.get(key, ())), None)

    def of(self, tool: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.tool == tool]


@dataclass(eq=False)
class FakeTool(Tool):
    """A tool with its declaration kept and its function replaced.

    It behaves as its effect class says: a `keyed` one acts once a key and answers the same again, the others act at
    each call. Its probe, if the tool has one, looks into the ledger.
    """

    world: World = field(default_factory=World)
    behaviour: Any = None
    count: int = 0

    def perform(self, ctx: ToolContext, args: Mapping[str, Any]) -> Any:
        self.world.sent[ctx.key] = self.world.sent.get(ctx.key, 0) + 1
        before = self.world.first(ctx.key)
        if before is not None and self.effect == "keyed":
            return deepcopy(before.result)
        behaviour = self.behaviour
        if isinstance(behaviour, Each):
            behaviour = behaviour.behaviours[min(self.count, len(behaviour.behaviours) - 1)]
            self.count += 1
        result = self._behave(behaviour, ctx, dict(args))
        if self.effect != "read":
            self.world.act(Effect(self.name, ctx.key, deepcopy(dict(args)), deepcopy(result)))
        if isinstance(behaviour, Lost):
            raise UnknownOutcome("the answer was lost")
        return result

    def _behave(self, behaviour: Any, ctx: ToolContext, args: dict[str, Any]) -> Any:
        if isinstance(behaviour, Lost):
            return behaviour.result
        if isinstance(behaviour, BaseException) or (
            isinstance(behaviour, type) and issubclass(behaviour, BaseException)
        ):
            raise behaviour
        if behaviour is REAL:
            return finish(super().perform(ctx, args))
        if not callable(behaviour):
            return deepcopy(behaviour)
        takes = list(inspect.signature(behaviour).parameters)
        with_context = bool(takes) and takes[0] in ("ctx", "context")
        return finish(made_under(ctx, behaviour, *([ctx] if with_context else []), **args))

    def look(self, ctx: ToolContext, **args: Any) -> Found | Absent:
        effect = self.world.first(ctx.key)
        return Absent() if effect is None else Found(deepcopy(effect.result))


Behaviours = Mapping[Any, Any] | _Real | None


def faked(agents: Iterable[Agent], given: Behaviours, world: World) -> list[Agent]:
    """The agents with their tools replaced by fakes. Raises ValueError for a fake of a tool that none of them has."""
    agents = list(agents)
    if given is REAL:
        return agents
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"tools= takes fakes by the tool's name, or testing.REAL, not {given!r}")
    behaviours = {str(getattr(name, "name", name)): behaviour for name, behaviour in (given or {}).items()}
    known = sorted({name for agent in agents for name in agent.toolbox})
    for name in behaviours:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"a fake is given for {name!r}, but the agent has {', '.join(known) or 'no tools'}{meant}")
    made: dict[str, Tool] = {}
    return [replace(agent, tools=[_fake(tool, behaviours, world, made) for tool in agent.tools]) for agent in agents]


def _fake(tool: Tool, behaviours: Mapping[str, Any], world: World, made: dict[str, Tool]) -> Tool:
    if behaviours.get(tool.name) is REAL:
        return tool
    if tool.name not in made:
        declared = {f.name: getattr(tool, f.name) for f in fields(Tool)}
        fake = FakeTool(**declared, world=world, behaviour=behaviours.get(tool.name, _refusal(tool.name)))
        if tool.probe is not None:
            fake.probe = fake.look
        made[tool.name] = fake
    return made[tool.name]


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(**args: Any) -> None:
        given = ", ".join(f"{key}={value!r}" for key, value in args.items())
        raise NotFaked(
            f"the run called {name}({given}), for which the test gives no fake: "
            f"tools={{{name!r}: a value, a function or an exception}}, or tools=testing.REAL to let it act"
        )

    return refuse
