"""Agents of a deploy: the code of before and the new code serve this very file, so the release is the same."""

import os
import time
from pathlib import Path

from runs.sdk import Agent, Ask, Call, Finish, Spawn, ToolContext, WaitFor, flow, tool
from runs.sdk.models import FunctionModel

BOOKS = Path(os.environ.get("ROLLED_BOOKS", "."))


def rest(seconds: float) -> None:
    """A run must last until it is taken over, however slow the machine; then it may hurry."""
    if not (BOOKS / "hurry").exists():
        time.sleep(seconds)


@tool(effect="keyed", timeout=30)
def book(ctx: ToolContext, number: int) -> dict:
    """One line for each call, one file for each effect: the other side keeps to the key."""
    with (BOOKS / "calls").open("a") as calls:
        calls.write(f"{ctx.key}\n")
    rest(0.1)
    name = BOOKS / ctx.key.replace(":", "-")
    name.touch()
    return {"number": number, "key": ctx.key}


@tool(effect="read", timeout=30)
def look(ctx: ToolContext, number: int) -> int:
    rest(0.05)
    return number * 2


@tool(effect="keyed", timeout=30, approval=True)
def sign(ctx: ToolContext, number: int) -> str:
    (BOOKS / ctx.key.replace(":", "-")).touch()
    return f"signed {number}"


@flow(name="steps", version="1", tools=[book, look])
def steps(run):
    total = 0
    for number in range(run.input["steps"]):
        done = yield Call(book, number=number)
        total += done["number"]
        left, right = yield [Call(look, number=number), Call(look, number=number + 1)]
        total += left + right
    return total


@flow(name="waits", version="1", tools=[book, sign])
def waits(run):
    yield Call(book, number=1)
    said = yield WaitFor("go")
    child = yield Spawn("steps", {"steps": 2})
    answer = yield Ask("How many?", type=int)
    signed = yield Call(sign, number=answer)
    return [said, child, answer, signed]


def decide(state):
    if len(state.calls) < state.input["steps"]:
        return Call(book, number=len(state.calls), id=f"b{len(state.calls)}")
    return Finish(sum(call.result["number"] for call in state.calls))


decides = Agent(name="decides", version="1", tools=[book], decide=decide)


def answer(state):
    """A model's answers: each is asked for once, whatever is deployed meanwhile."""
    rest(0.1)
    with (BOOKS / "asked").open("a") as asked:
        asked.write(f"{state.id} {len(state.calls)}\n")
    return decide(state), {"tokens": 10}


thinks = Agent(name="thinks", version="1", tools=[book], decide=FunctionModel(answer, model="thinker-2026-05-01"))
