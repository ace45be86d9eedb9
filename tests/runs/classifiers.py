"""Agents without a journal: they only read. What they wait for is steered by the tests."""

import threading
from collections.abc import Generator
from typing import Any

from runs.sdk import Agent, Ask, Call, Finish, Limit, RunView, Spawn, ToolContext, TransientError, flow, tool
from runs.sdk.models import FunctionModel

Moves = Generator[Any, Any, Any]
FAILURES: list[Exception] = []
GO = threading.Event()
ENTERED = threading.Event()


@tool(effect="read")
def look(ctx: ToolContext, word: str) -> str:
    if FAILURES:
        raise FAILURES.pop()
    return word.upper()


@tool(effect="read", timeout=60)
def waits(ctx: ToolContext) -> str:
    ENTERED.set()
    GO.wait(60)
    return "at last"


@tool(effect="read", limit=Limit(1))
def in_turn(ctx: ToolContext) -> int:
    return 1


@flow(name="classify", version="1", tools=[look], durability="stateless")
def classify(run: RunView) -> Moves:
    first = yield Call(look, word=run.input["word"])
    both = yield [Call(look, word="b"), Call(look, word="c")]
    return [first, *both]


@flow(name="slow-classify", version="1", tools=[waits], durability="stateless")
def slow(run: RunView) -> Moves:
    return (yield Call(waits))


@flow(name="asking-classify", version="1", tools=[look], durability="stateless")
def asking(run: RunView) -> Moves:
    yield Ask("Which?")


@flow(name="limited-classify", version="1", tools=[in_turn], durability="stateless")
def limited(run: RunView) -> Moves:
    return (yield [Call(in_turn), Call(in_turn)])


@flow(name="classify-parent", version="1", tools=[])
def parent(run: RunView) -> Moves:
    return (yield Spawn("classify", {"word": "child"}))


def ask_model(state: RunView) -> tuple[Any, dict[str, Any]]:
    if state.last is None:
        return Call(look, word="model"), {"tokens": 1}
    return Finish(state.last.result), {"tokens": 1}


modelled = Agent(
    name="model-classify", version="1", tools=[look], decide=FunctionModel(ask_model), durability="stateless"
)


@flow(name="journaled-classify", version="1", tools=[look])
def journaled(run: RunView) -> Moves:
    first = yield Call(look, word=run.input["word"])
    both = yield [Call(look, word="b"), Call(look, word="c")]
    return [first, *both]


def busy(word: str) -> TransientError:
    return TransientError(word, retry_after=0.1)
