"""Agents that run a small program: their input. One as a flow, one as a pure decider, one in the model's place.

A program is a list of statements, done in order; the result lists what each gave:
`["call", TOOL]` "acted" · `["sleep", SECONDS]` None · `["wait", NAME, TIMEOUT]` the payload · `["ask", TIMEOUT]` the
answer · `["spawn", PROGRAM, DRIVER]` the child's result · `["all", [statement …]]` the list of theirs ·
`["first", [statement …]]` [which, what it gave] · `["fail"]` ends the run. What did not succeed: "!" + its outcome.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from runs.sdk import Agent, Ask, Call, CallFailed, Fail, Finish, First, RunView, Sleep, Spawn, Tool, WaitFor, flow
from runs.sdk.models import FunctionModel
from runs.slots import Slot

Statement = list[Any]
QUESTION = "How much?"


def scripted(tools: Mapping[str, Tool], prefix: str = "script", count: Any = None) -> tuple[Agent, Agent, Agent]:
    """The three agents, on tools by the names that programs use. `count` hears the run's id at each model request."""
    own = tuple(tools.values())

    @flow(name=prefix, version="1", tools=own)
    def by_flow(run: RunView) -> Generator[Any, Any, Any]:
        given = []
        for statement in run.input:
            if statement[0] == "fail":
                yield Fail("as it was told")
            try:
                given.append(seen(statement, (yield move_of(statement, tools))))
            except CallFailed as failed:
                given.append(f"!{failed.outcome}")
        return given

    def decide(state: RunView) -> Any:
        slots = list(state._state.slots.values())
        given = []
        for statement in state.input:
            width = len(statement[1]) if statement[0] in ("all", "first") else 1
            if not slots:
                return Fail("as it was told") if statement[0] == "fail" else move_of(statement, tools)
            given.append(gave(statement, slots[:width]))
            slots = slots[width:]
        return Finish(given)

    def ask_model(state: RunView) -> tuple[Any, dict[str, Any]]:
        if count is not None:
            count(state.id)
        return decide(state), {"tokens": 10}

    decider = Agent(name=f"{prefix}-decide", version="1", tools=own, decide=decide)
    model = Agent(name=f"{prefix}-model", version="1", tools=own, decide=FunctionModel(ask_model))
    return by_flow, decider, model


def move_of(statement: Statement, tools: Mapping[str, Tool]) -> Any:
    match statement:
        case ["call", name]:
            return Call(tools[name])
        case ["sleep", seconds]:
            return Sleep(seconds)
        case ["wait", name, timeout]:
            return WaitFor(name, timeout)
        case ["ask", timeout]:
            return Ask(QUESTION, int, timeout=timeout)
        case ["spawn", program, driver]:
            return Spawn(driver, program)
        case ["all", together]:
            return [move_of(each, tools) for each in together]
        case ["first", together]:
            return First(*(move_of(each, tools) for each in together))
    raise AssertionError(f"no such statement: {statement}")


def seen(statement: Statement, value: Any) -> Any:
    """What a flow was given for it, as the result tells it."""
    match statement:
        case ["call", _]:
            return "acted"
        case ["all", together]:
            return [seen(each, one) for each, one in zip(together, value, strict=True)]
        case ["first", together]:
            return [value.which, seen(together[value.which], value.value)]
    return value


def gave(statement: Statement, slots: list[Slot]) -> Any:
    """The same from the slots, for who is given nothing."""
    by_time = sorted(slots, key=lambda slot: slot.obs_seq or 0)
    if statement[0] == "first":
        won = next((slot for slot in by_time if slot.outcome == "succeeded"), None)
        if won is None:
            return f"!{by_time[-1].outcome}"
        which = slots.index(won)
        return [which, seen(statement[1][which], won.result)]
    failed = next((slot for slot in slots if slot.outcome != "succeeded"), None)
    if failed is not None:
        return f"!{failed.outcome}"
    results = [slot.result for slot in slots]
    return seen(statement, results if statement[0] == "all" else results[0])
