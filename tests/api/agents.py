"""Agents of the API's tests. `CALLS` is the world: the keys under which effects happened in this process."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

from runs.sdk import (
    Ask,
    Budget,
    Call,
    CallFailed,
    Retry,
    RunView,
    Sleep,
    Spawn,
    ToolContext,
    TransientError,
    Undecided,
    UnknownOutcome,
    WaitFor,
    flow,
    tool,
)

CALLS: list[str] = []
Moves = Generator[Any, Any, Any]


@tool(effect="keyed", approval=lambda args: args["amount_cents"] > 5_000)
def refund(ctx: ToolContext, amount_cents: int) -> Any:
    CALLS.append(ctx.key)
    return {"refunded": amount_cents}


@tool(effect="unkeyed", probe=lambda ctx, **args: Undecided("ask later"), max_in_flight=0)
def letter(ctx: ToolContext) -> Any:
    CALLS.append(ctx.key)
    if ctx.attempt == 1:
        raise UnknownOutcome("the line was cut")
    return "sent"


@tool(effect="unkeyed")
def parcel(ctx: ToolContext) -> Any:
    CALLS.append(ctx.key)
    raise UnknownOutcome("the line was cut")


LATE = threading.Event()


@tool(effect="read")
def look(ctx: ToolContext) -> Any:
    """Answers when the test says so."""
    LATE.wait(60)
    return {"nan": float("nan"), "bytes": b"\0\xff", "text": "<b>\0</b>"}


@flow(name="desk", version="1", tools=[refund])
def desk(run: RunView) -> Moves:
    try:
        done = yield Call(refund, amount_cents=run.input["amount_cents"])
    except CallFailed as refused:
        return {"outcome": refused.outcome, "why": refused.reason}
    return done


@flow(name="post", version="1", tools=[letter])
def post(run: RunView) -> Moves:
    return (yield Call(letter))


@flow(name="parcels", version="1", tools=[parcel])
def parcels(run: RunView) -> Moves:
    return (yield Call(parcel))


@flow(name="looker", version="1", tools=[look])
def looker(run: RunView) -> Moves:
    return (yield Call(look))


@flow(name="verbose", version="1", tools=[look])
def verbose(run: RunView) -> Moves:
    """Answers with as many characters as it was told."""
    yield Call(look)
    return "x" * run.input["characters"]


@flow(name="sleeper", version="1")
def sleeper(run: RunView) -> Moves:
    yield Sleep(run.input)
    return "rested"


@flow(name="fails", version="1")
def fails(run: RunView) -> Moves:
    yield Sleep(0)
    raise RuntimeError("no luck")


@flow(name="asker", version="1")
def asker(run: RunView) -> Moves:
    """Asks for a size and a colour, one after the other."""
    size = yield Ask("Which size?", type=int, timeout=3600)
    colour = yield Ask("Which colour?", options=["red", "blue"])
    return {"size": size, "colour": colour}


@flow(name="hasty", version="1")
def hasty(run: RunView) -> Moves:
    try:
        return (yield Ask("Now?", timeout=0.05))
    except CallFailed as refused:
        return refused.outcome


@flow(name="waiter", version="1")
def waiter(run: RunView) -> Moves:
    first = yield WaitFor("paid")
    second = yield WaitFor("paid", timeout=3600)
    return [first, second]


@flow(name="parent", version="1")
def parent(run: RunView) -> Moves:
    """Each child waits for approval."""
    return (yield [Spawn("desk", {"amount_cents": 9_000}) for _ in range(run.input)])


@tool(effect="keyed", retry=Retry(attempts=3, backoff=3600))
def flaky(ctx: ToolContext) -> Any:
    CALLS.append(ctx.key)
    if ctx.attempt == 1:
        raise TransientError("busy")
    return "done"


@flow(name="patient", version="1", tools=[flaky], budget=Budget(steps=5, seconds=3600), deadline=86_400, unique="order")
def patient(run: RunView) -> Moves:
    return (yield Call(flaky))


@flow(name="classify", version="1", tools=[look], durability="stateless")
def classify(run: RunView) -> Moves:
    if run.input is None:
        raise RuntimeError("nothing to classify")
    yield Call(look)
    return {"class": "spam"}


@flow(name="typed", version="1", input=list[int])
def typed(run: RunView) -> Moves:
    yield Sleep(0)
    return sum(run.input)
