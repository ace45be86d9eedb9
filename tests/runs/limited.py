"""Agents with limits, rates, budgets and priorities, for the tests beside it: `HOLDFAST_AGENTS=tests.runs.limited`."""

import time
from collections.abc import Generator
from typing import Any

from django.db import connection

from runs.commands import cancel_run
from runs.sdk import Agent, Budget, Call, CallFailed, Finish, Limit, Rate, RunView, Sleep, ToolContext, flow, tool
from runs.sdk.models import FunctionModel
from tests.rig import wire
from tests.rig.tools import ORDER, SOON

Moves = Generator[Any, Any, Any]


@tool(effect="keyed", timeout=60, retry=SOON, limit="customer_id")
def refund_customer(ctx: ToolContext, customer_id: str = "c-1", seconds: float = 0.0) -> Any:
    wire.begin(ctx)
    done = wire.act(ctx, "refund", order_id=ORDER, amount_cents=1)
    time.sleep(seconds)
    return done


@tool(effect="keyed", timeout=60, retry=SOON, limit=2, summary=lambda args: f"Charge {args['amount_cents']} cents")
def charge_two(ctx: ToolContext, amount_cents: int = 1, seconds: float = 0.0) -> Any:
    wire.begin(ctx)
    done = wire.act(ctx, "charge", order_id=ORDER, amount_cents=amount_cents)
    time.sleep(seconds)
    return done


@tool(effect="unkeyed", timeout=60, retry=SOON, limit=1)
def letter_one(ctx: ToolContext) -> Any:
    wire.begin(ctx)
    return wire.act_unkeyed(ctx, "mail", to="a@b.example", subject="one", body="")


@tool(effect="keyed", timeout=60, retry=SOON, limit=1, approval=True)
def approved_one(ctx: ToolContext) -> Any:
    wire.begin(ctx)
    return wire.act(ctx, "charge", order_id=ORDER, amount_cents=1)


@tool(effect="read", timeout=60, retry=SOON, rate=Rate(3, per=1.5))
def look_rated(ctx: ToolContext) -> float:
    return time.time()


@tool(effect="read", timeout=60, rate=Rate(1, per=600, key="city"), limit=Limit(5, "city"))
def look_seldom(ctx: ToolContext, city: str) -> str:
    return city


@tool(effect="read")
def look(ctx: ToolContext, n: int = 0, seconds: float = 0.0) -> int:
    time.sleep(seconds)
    return n


def calls(tool: Any) -> Any:
    """Input: the arguments of one call."""

    def one(run: RunView) -> Moves:
        return (yield Call(tool, **(run.input or {})))

    return one


by_customer = flow(name="by-customer", version="1", tools=[refund_customer])(calls(refund_customer))
two = flow(name="two", version="1", tools=[charge_two])(calls(charge_two))
one_letter = flow(name="one-letter", version="1", tools=[letter_one])(calls(letter_one))
one_approved = flow(name="one-approved", version="1", tools=[approved_one])(calls(approved_one))
rated = flow(name="rated", version="1", tools=[look_rated])(calls(look_rated))
seldom = flow(name="seldom", version="1", tools=[look_seldom])(calls(look_seldom))


@flow(name="several", version="1", tools=[charge_two, look, letter_one])
def several(run: RunView) -> Moves:
    """Input: `charges`. So many calls of one tool side by side, with a look that nothing limits."""
    done = yield [Call(look), *(Call(charge_two, amount_cents=n) for n in range(1, run.input["charges"] + 1))]
    return len(done)


@flow(name="in-flight", version="1", tools=[charge_two, look], limit=2)
def in_flight(run: RunView) -> Moves:
    """Input: `sleep`. Sleeps in the middle, which holds no place."""
    yield Call(look)
    yield Sleep((run.input or {}).get("sleep", 0))
    yield Call(look, n=1, seconds=0.1)
    return "done"


@flow(name="spends", version="1", tools=[look], budget=Budget(steps=3, identical_calls=None))
def spends(run: RunView) -> Moves:
    """Input: how many looks."""
    for _ in range(run.input):
        yield Call(look)
    return run.input


@flow(name="repeats", version="1", tools=[look], budget=Budget(identical_calls=2))
def repeats(run: RunView) -> Moves:
    for _ in range(run.input):
        yield Call(look, n=7)
    return run.input


@flow(name="hurries", version="1", tools=[look], budget=Budget(seconds=0.2))
def hurries(run: RunView) -> Moves:
    yield Call(look)
    yield Sleep(0.3)
    yield Call(look, n=1)
    return "late"


def asks(state: RunView) -> tuple[Any, dict[str, Any]]:
    if len(state.calls) == state.input["calls"]:
        return Finish(len(state.calls)), {"input_tokens": 30, "output_tokens": 10, "cost": 0.25}
    return Call(look, n=len(state.calls)), {"input_tokens": 30, "output_tokens": 10, "cost": 0.25}


tokens = Agent(
    name="tokens", version="1", tools=[look], decide=FunctionModel(asks), budget=Budget(tokens=100, cost=10, steps=50)
)


def cancels(state: RunView) -> tuple[Any, dict[str, Any]]:
    """Somebody cancels the run while it is asked."""
    cancel_run(run_id=state.id, reason="not needed", actor="olga")
    connection.close()
    return Call(look), {"input_tokens": 30, "output_tokens": 10, "cost": 0.25}


cancelled = Agent(name="cancelled", version="1", tools=[look], decide=FunctionModel(cancels))


@flow(name="two-tools", version="1", tools=[look, charge_two, letter_one])
def two_tools(run: RunView) -> Moves:
    """A charge and a letter, side by side; the outcome of each."""
    try:
        yield [Call(charge_two), Call(letter_one)]
    except CallFailed as failed:
        return failed.outcome
    return "both"


@flow(name="late", version="1", tools=[look], deadline=0.3)
def late(run: RunView) -> Moves:
    yield Sleep(3600)
    return "never"


@flow(name="unique", version="1", tools=[look], unique="order")
def unique(run: RunView) -> Moves:
    yield Sleep(3600)
    return "done"
