"""Agents for tests: `HOLDFAST_AGENTS=tests.rig.agents`.

One flow an effect class, named after it, makes a single call; the others show one thing each, told by their input.
"""

from collections.abc import Callable, Generator
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict

from pydantic import Field

from runs.sdk import Agent, Call, CallFailed, Finish, RunView, Sleep, Tool, flow
from runs.sdk.models import FunctionModel
from tests.rig import tools, wire
from tests.rig.script import scripted
from tests.rig.values import VALUES
from tests.rig.waits import (
    asks,
    asks_typed,
    decides_children,
    decides_waits,
    endless,
    fails,
    first_child,
    only,
    parent,
    race,
    signals,
    spawns_only,
    twins,
)

Moves = Generator[Any, Any, Any]


class Order(TypedDict):
    order_id: Annotated[str, Field(pattern="^o-")]
    amount_cents: NotRequired[int]
    due: NotRequired[datetime]


def calls_once(tool: Tool) -> Callable[[RunView], Moves]:
    """The input is the call's arguments, its result the run's."""

    def one_call(run: RunView) -> Moves:
        return (yield Call(tool, **(run.input or {})))

    return one_call


read = flow(name="read", version="1", tools=[tools.look])(calls_once(tools.look))
keyed = flow(name="keyed", version="1", tools=[tools.charge])(calls_once(tools.charge))
keyed_probe = flow(name="keyed-probe", version="1", tools=[tools.refund])(calls_once(tools.refund))
probed = flow(name="probed", version="1", tools=[tools.transfer])(calls_once(tools.transfer))
unkeyed = flow(name="unkeyed", version="1", tools=[tools.letter])(calls_once(tools.letter))

retried = flow(name="retry", version="1", tools=[tools.retried])(calls_once(tools.retried))
slow = flow(name="slow", version="1", tools=[tools.slow])(calls_once(tools.slow))
slow_letter = flow(name="slow-unkeyed", version="1", tools=[tools.slow_letter])(calls_once(tools.slow_letter))
hesitant = flow(name="hesitant-unkeyed", version="1", tools=[tools.hesitant_letter])(calls_once(tools.hesitant_letter))
hasty = flow(name="hasty", version="1", tools=[tools.hasty])(calls_once(tools.hasty))
hasty_letter = flow(name="hasty-unkeyed", version="1", tools=[tools.hasty_letter])(calls_once(tools.hasty_letter))
deadly = flow(name="deadly", version="1", tools=[tools.deadly])(calls_once(tools.deadly))
act_and_die = flow(name="act-and-die", version="1", tools=[tools.act_and_die])(calls_once(tools.act_and_die))
refuse = flow(name="refuse", version="1", tools=[tools.refuse])(calls_once(tools.refuse))


@flow(name="approval", version="1", tools=tools.GATED.values())
def approval(run: RunView) -> Moves:
    """Input: `effect`, and `amount_cents`. A denial is the result, not a failure."""
    try:
        done = yield Call(tools.GATED[run.input["effect"]], amount_cents=run.input.get("amount_cents", 1))
    except CallFailed as refused:
        return {"outcome": refused.outcome, "why": refused.reason}
    return done


@flow(name="siblings", version="1", tools=tools.BY_EFFECT.values())
def siblings(run: RunView) -> Moves:
    """Input: `effects`, one call each, side by side; amounts 1, 2, …"""
    calls = [Call(tools.BY_EFFECT[effect], amount_cents=at) for at, effect in enumerate(run.input["effects"], 1)]
    return (yield calls)


@flow(name="mixed", version="1", tools=[tools.letter, *tools.GATED.values()])
def mixed(run: RunView) -> Moves:
    """Side by side: a letter that is sent at once, and a refund that waits for a person."""
    return (yield [Call(tools.letter), Call(tools.GATED["keyed-probe"])])


@flow(name="chain", version="1", tools=tools.BY_EFFECT.values())
def chain(run: RunView) -> Moves:
    """Input: `steps`, `effect`. So many calls one after the other; the result is their number."""
    for step in range(1, run.input["steps"] + 1):
        yield Call(tools.BY_EFFECT[run.input["effect"]], amount_cents=step)
    return run.input["steps"]


@flow(name="sleep", version="1", tools=[tools.refund])
def sleeper(run: RunView) -> Moves:
    """Input: `seconds`. Answers how long it was, by the journal's times."""
    began = run.now
    yield Sleep(run.input["seconds"])
    woke = run.now
    yield Call(tools.refund)
    return (woke - began).total_seconds()


@flow(name="value", version="1", tools=[tools.value])
def value(run: RunView) -> Moves:
    """Input: `name`. The tool returns that value; the result is its type, as the flow sees it."""
    given = yield Call(tools.value, name=run.input["name"])
    return type(given).__name__


@flow(name="argument", version="1", tools=[tools.echo])
def argument(run: RunView) -> Moves:
    """Input: `name`. The tool takes that value."""
    return (yield Call(tools.echo, value=VALUES[run.input["name"]]()))


def look_then_act(state: RunView) -> Any:
    """Input: `effect`. A read, then one call of that class, then the end."""
    if state.last is None:
        return Call(tools.look, id="look")
    if state.call("act") is None:
        return Call(tools.BY_EFFECT[state.input["effect"]], id="act", amount_cents=2)
    return Finish(state.last.result)


decider = Agent(name="decide", version="1", tools=tuple(tools.BY_EFFECT.values()), decide=look_then_act)


def plays_the_model(state: RunView) -> tuple[Any, dict[str, Any]]:
    """As `look_then_act`; `Ledger.counted("model <run id>")` tells how often it was asked."""
    wire.count(f"model {state.id}")
    return look_then_act(state), {"tokens": 10}


model = Agent(name="model", version="1", tools=tuple(tools.BY_EFFECT.values()), decide=FunctionModel(plays_the_model))

# of tests.rig.waits
waiting = (
    asks,
    asks_typed,
    decides_children,
    decides_waits,
    endless,
    fails,
    first_child,
    only,
    parent,
    race,
    signals,
    spawns_only,
    twins,
)

by_name = tools.BY_EFFECT | {"gated": tools.GATED["keyed-probe"], "limited": tools.limited}
script, script_decide, script_model = scripted(by_name, count=lambda run_id: wire.count(f"model {run_id}"))


@flow(name="typed", version="1", input=Order)
def typed(run: RunView) -> Moves:
    """Gives its input back, as it came."""
    if False:
        yield
    return {"input": run.input}
