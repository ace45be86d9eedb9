"""What is wrong, risky or needless in an agent's declaration: each finding names the thing, its place and the fix."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from types import FunctionType
from typing import Any

from journal.encoding import canonical, problems
from runs.agents import Agent, FunctionModel
from runs.findings import Finding as Finding
from runs.findings import Level
from runs.findings import place_of as place_of
from runs.inputs import input_faults, least_input
from runs.memory.store import Memory
from runs.model_contracts import USUAL_ANSWER, of_model, refused
from runs.moves import as_decided
from runs.run_view import RunView
from runs.state import fold
from runs.tools import Tool

USUAL = Tool.timeout  # seconds
LAPSE = "datetime.now datetime.utcnow datetime.today date.today time.time time.monotonic time.perf_counter time.time_ns"
# What gives another answer at each replay, and what to use instead.
IMPURE = {
    "random": "run.random(label), which is the same at each replay",
    "secrets": "run.random(label), or the key of a tool's call (ctx.key)",
    "uuid.uuid1": "run.id, or the key of a tool's call (ctx.key)",
    "uuid.uuid4": "run.id, or the key of a tool's call (ctx.key)",
    "os.environ": "the run's input, or a tool",
    "os.getenv": "the run's input, or a tool",
    "os.urandom": "run.random(label)",
    "open": "a tool with effect='read'",
    "input": "Ask",
    "httpx": "a tool",
    "requests": "a tool",
    "urllib.request": "a tool",
    "time.sleep": "Sleep",
} | dict.fromkeys(LAPSE.split(), "run.now, the time of the last entry")


def findings(agent: Agent, grace: float | None = None) -> list[Finding]:
    """All about one agent. `grace`: seconds that a worker has to stop."""
    found = [finding for tool in agent.toolbox.values() for finding in _of_tool(tool, grace)]
    return [*_of_stateless(agent), *refused(agent), *found, *of_model(agent, grace), *_of_decider(agent)]


def of_usual_timeouts(agents: Collection[Agent], grace: float) -> Iterator[Finding]:
    """Of what nobody has set, said once for all of them: the usual timeouts against a worker's grace."""
    tools = {tool.name for agent in agents for tool in agent.toolbox.values() if tool.effect != "read"
             and tool.timeout == USUAL > grace}  # fmt: skip
    asking = [agent for agent in agents if agent.model is not None and agent.model.timeout == USUAL_ANSWER > grace]
    told = [f"{USUAL:g} s for a call"] if tools else []
    told += [f"{USUAL_ANSWER:g} s for an answer of a model"] if asking else []
    if told:
        yield Finding(
            "info", "I067", f"a worker that stops waits {grace:g} s, and the usual timeout is {', '.join(told)}",
            "HOLDFAST_GRACE_SECONDS",
            "What has not come by then may be in doubt, or be paid for twice: where calls or answers take that long, "
            "raise HOLDFAST_GRACE_SECONDS.",
        )  # fmt: skip


def refusals(agent: Agent) -> list[Finding]:
    """What no worker may serve. Cheap: nothing is executed."""
    return [finding for finding in (*_of_stateless(agent), *refused(agent)) if finding.level == "error"]


# -- durability --------------------------------------------------------------------------------------------------------


def _of_stateless(agent: Agent) -> Iterator[Finding]:
    if agent.durability != "stateless":
        return
    for tool in agent.toolbox.values():
        if tool.effect != "read":
            yield Finding(
                "error", "E010", f"agent {agent.name} is stateless, but its tool {tool.name} is {tool.effect!r}",
                place_of(tool.plain),
                "A stateless run has no journal that could remember the effect: take durability='journal' (the "
                "default), or give it tools with effect='read' only.",
            )  # fmt: skip
        elif tool.approval is not False:
            yield Finding(
                "error", "E011", f"agent {agent.name} is stateless, but its tool {tool.name} asks for approval",
                place_of(tool.plain),
                "A stateless run cannot wait for a person: take durability='journal' (the default), or drop approval=.",
            )  # fmt: skip


def is_overkill(agent: Agent) -> bool:
    """Whether the agent only reads, so that a run could as well be done again from its start. What a model was
    answered was paid for, unless it is a function."""
    tools = agent.toolbox.values()
    return (
        agent.durability == "journal"
        and (agent.model is None or isinstance(agent.model, FunctionModel))
        and bool(tools)
        and all(t.effect == "read" and not t.approval for t in tools)
    )


# -- tools -------------------------------------------------------------------------------------------------------------


def _of_tool(tool: Tool, grace: float | None) -> Iterator[Finding]:
    place = place_of(tool.plain)

    def finding(level: Level, id: str, says: str, fix: str) -> Finding:
        return Finding(level, id, f"tool {tool.name}: {says}", place, fix)

    for parameter in tool.parameters:
        name = parameter.name
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.annotation is parameter.empty and _takes_anything(tool, name):
            yield finding("warning", "W030", f"its parameter {name!r} has no type",
                          f"Write {name}: str (or what it takes): wrong arguments are then refused before anything is "
                          "sent, and a model is told what to give.")  # fmt: skip
        if parameter.default is not parameter.empty and (lost := problems(parameter.default, name)):
            yield finding("warning", "W031", f"the default of {lost[0]} cannot be journaled",
                          "Take None or a JSON value as the default, and make the object inside the tool.")  # fmt: skip
    if tool.sample is not None and (wrong := tool.faults(dict(tool.sample))):
        yield finding("warning", "W032", f"its sample does not fit: {'; '.join(wrong)}",
                      "Give sample= the arguments of one call: `manage.py tools check` makes it.")  # fmt: skip
    if tool.effect == "keyed" and tool.probe is None:
        yield finding("info", "I040", "it is keyed and has no probe",
                      "A call in doubt is sent again under its key while the key is younger than key_ttl "
                      f"({tool.key_ttl:g} s), then it waits for a person. With probe= it is asked first.")  # fmt: skip
    if tool.effect == "keyed" and tool.max_in_flight > tool.key_ttl:
        yield finding("warning", "W041", f"max_in_flight ({tool.max_in_flight:g} s) is longer than key_ttl "
                      f"({tool.key_ttl:g} s)",
                      "A request may then still act when its key is forgotten: raise key_ttl to what the other side "
                      "promises.")  # fmt: skip
    if tool.effect == "probed" and tool.max_in_flight < tool.timeout:
        yield finding("warning", "W042", f"its window max_in_flight ({tool.max_in_flight:g} s) is shorter than its "
                      f"timeout ({tool.timeout:g} s)",
                      "A call could be asked for, found absent and sent again while the first is still under way: "
                      f"raise max_in_flight to {tool.timeout:g} or more.")  # fmt: skip
    if grace is not None and tool.timeout > grace and tool.timeout != USUAL and tool.effect != "read":
        yield finding("warning", "W043", f"its timeout ({tool.timeout:g} s) is longer than a worker's grace "
                      f"({grace:g} s)",
                      "A stop or a deploy may leave its call in doubt: raise HOLDFAST_GRACE_SECONDS or lower "
                      "timeout=.")  # fmt: skip


def _takes_anything(tool: Tool, name: str) -> bool:
    """The schema of a tool that came with its library says what its signature does not."""
    told = tool.contract["parameters"].get("properties", {}).get(name)
    return not isinstance(told, Mapping) or told.keys() <= {"title", "default", "description"}


# -- deciding ----------------------------------------------------------------------------------------------------------


def _of_decider(agent: Agent) -> Iterator[Finding]:
    decide = agent.flow or agent.decide
    if not callable(decide) or agent.model is not None:
        return
    seen: set[str] = set()
    for name, instead, place in _impure_uses(decide):
        if name not in seen:
            seen.add(name)
            yield Finding(
                "warning", "W050", f"agent {agent.name} uses {name} where it decides", place,
                f"A replay would decide otherwise and the run would be held as diverged: use {instead}.",
            )  # fmt: skip
    if agent.flow is None and not seen and (differs := _decides_twice(agent)):
        yield Finding(
            "warning", "W051", f"agent {agent.name} decides differently from the same state: {differs}",
            place_of(decide), "decide must be pure: it depends on the state alone (state.now, state.random(label)).",
        )  # fmt: skip


def _impure_uses(decide: Callable[..., Any]) -> Iterator[tuple[str, str, str]]:
    """Name, what to use instead and place of each use, in the function and in those of its module that it calls."""
    waiting: list[Any] = [decide]
    looked: set[Any] = set()
    while waiting:
        function = inspect.unwrap(waiting.pop())
        if not isinstance(function, FunctionType) or function in looked:
            continue
        looked.add(function)
        for node in ast.walk(_tree_of(function)):
            if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
                continue
            if (name := _full_name(node, function)) is not None and (instead := _instead_of(name)):
                yield name, instead, place_of(function, getattr(node, "lineno", 1) - 1)
            if isinstance(node, ast.Name):
                called = function.__globals__.get(node.id)
                if isinstance(called, FunctionType) and called.__module__ == function.__module__:
                    waiting.append(called)


def _tree_of(function: FunctionType) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # a lambda inside of a call, or code without a file
        return ast.Module([], [])


def _full_name(node: ast.expr, function: FunctionType) -> str | None:
    """`module.name` of what an expression like `random.random` or `uuid4` stands for at run time; None if unknown."""
    if isinstance(node, ast.Attribute):
        owner = _value_of(node.value, function)
        name = getattr(owner, "__name__", None) if inspect.ismodule(owner) or isinstance(owner, type) else None
        return f"{name}.{node.attr}" if name else None
    if not isinstance(node, ast.Name):
        return None
    found = function.__globals__.get(node.id)
    if found is None:
        return node.id if node.id in ("open", "input") else None
    module = getattr(found, "__module__", None) if callable(found) and not isinstance(found, type) else None
    return (
        f"{module}.{getattr(found, '__name__', node.id)}" if module in ("random", "uuid", "time", "secrets") else None
    )


def _value_of(node: ast.expr, function: FunctionType) -> Any:
    if isinstance(node, ast.Name):
        return function.__globals__.get(node.id)
    return getattr(_value_of(node.value, function), node.attr, None) if isinstance(node, ast.Attribute) else None


def _instead_of(name: str) -> str | None:
    return IMPURE.get(name) or IMPURE.get(name.partition(".")[0])


def _decides_twice(agent: Agent) -> str | None:
    """What differs when the first decision is made twice; None where it cannot be made from the least of inputs."""
    given = {} if agent.takes is None else least_input(agent.takes)
    if input_faults(agent.takes, given):
        return None
    run = Memory([agent]).start(agent, given)
    said = []
    for _ in range(2):
        try:
            assert callable(agent.decide)
            decided = as_decided(agent.decide(RunView(fold(run.id, run.entries))))
        except BaseException:  # it expects an input: nothing can be said
            return None
        said.append(canonical([repr(move) for move in decided.moves]).decode())
    return None if said[0] == said[1] else f"{said[0]}, then {said[1]}"
