"""Declarations that `manage.py check` has something to say about."""

import datetime as dt
import itertools
import random
import time
import uuid
from collections.abc import Generator
from datetime import datetime
from typing import Any

from runs.sdk import Absent, Agent, Call, Finish, RunView, ToolContext, flow, tool

Moves = Generator[Any, Any, Any]
DICE = itertools.count()
SOCKET = object()


def asks(ctx: ToolContext, **args: Any) -> Absent:
    return Absent()


@tool(effect="read")
def untyped(ctx: ToolContext, order, most: int = 3) -> int:  # type: ignore[no-untyped-def]
    return most


@tool(effect="keyed", max_in_flight=100_000)
def forgotten(ctx: ToolContext, by: Any = SOCKET) -> None: ...


@tool(effect="probed", probe=asks, timeout=90, max_in_flight=30)
def narrow(ctx: ToolContext) -> None: ...


def stamp() -> str:
    return f"{datetime.now()} {dt.datetime.now()} {time.time()}"


@flow(name="impure", version="1", tools=[untyped, forgotten, narrow])
def impure(run: RunView) -> Moves:
    yield Call(untyped, order=str(uuid.uuid4()))
    if random.random() > 0.5:
        stamp()
    return (yield Call(narrow))


@flow(name="pure", version="1", tools=[narrow])
def pure(run: RunView) -> Moves:
    if run.random("coin") > 0.5 and run.now.timestamp() > 1:
        yield Call(narrow)


def decide(state: RunView) -> Any:
    return Finish() if state.last else Call(untyped, order=str(next(DICE)))


fickle = Agent(name="fickle", version="1", tools=[untyped], decide=decide)
