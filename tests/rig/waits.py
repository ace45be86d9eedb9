"""Agents that wait: for signals, answers, time and children. Imported by tests.rig.agents."""

from collections.abc import Generator
from datetime import datetime
from decimal import Decimal
from typing import Any

from runs.sdk import Agent, Ask, Call, CallFailed, Fail, Finish, First, RunView, Sleep, Spawn, WaitFor, flow
from tests.rig import tools

Moves = Generator[Any, Any, Any]


@flow(name="signals", version="1", tools=[tools.charge])
def signals(run: RunView) -> Moves:
    """Input: `names`, and a `timeout`. Waits for each in turn; the results in order, "expired" where none came."""
    got = []
    for name in run.input["names"]:
        try:
            got.append((yield WaitFor(name, run.input.get("timeout"))))
        except CallFailed as failed:
            got.append(failed.outcome)
    yield Call(tools.charge)
    return got


@flow(name="asks", version="1", tools=[tools.charge])
def asks(run: RunView) -> Moves:
    """Input: `options` or none, a `timeout`. The answer is the amount that is charged."""
    try:
        amount = yield Ask("How much?", int, run.input.get("options"), run.input.get("timeout"))
    except CallFailed as failed:
        return f"{failed.tool} {failed.outcome}"
    yield Call(tools.charge, amount_cents=amount)
    return amount


@flow(name="asks-typed", version="1")
def asks_typed(run: RunView) -> Moves:
    """The types of what comes back: a date, an amount, a choice of the first that is answered."""
    when = yield Ask("When?", datetime)
    amount = yield Ask("How much?", Decimal)
    nothing = yield []
    return [type(when).__name__, type(amount).__name__, nothing]


@flow(name="race", version="1", tools=[tools.charge])
def race(run: RunView) -> Moves:
    """Input: `seconds`. A signal or the deadline, whichever comes first."""
    won = yield First(WaitFor("go"), Sleep(run.input["seconds"]))
    yield Call(tools.charge)
    return [won.which, won.value]


@flow(name="parent", version="1", tools=[tools.charge])
def parent(run: RunView) -> Moves:
    """Input: `children`, each {agent, input}. Their results; a failure is the result of its own."""
    given = [Spawn(child["agent"], child["input"]) for child in run.input["children"]]
    try:
        results = yield given
    except CallFailed as failed:
        results = [failed.tool, failed.outcome, failed.reason]
    yield Call(tools.charge)
    return {"results": results, "outcomes": [child.outcome for child in run.children]}


@flow(name="first-child", version="1")
def first_child(run: RunView) -> Moves:
    """Input: `children`. The first that succeeds."""
    won = yield First(*(Spawn(child["agent"], child["input"]) for child in run.input["children"]))
    return [won.which, won.value]


@flow(name="only", version="1", unique="order")
def only(run: RunView) -> Moves:
    """One open run an order; it waits for a signal."""
    return (yield WaitFor("go"))


@flow(name="spawns-only", version="1", tools=[tools.charge])
def spawns_only(run: RunView) -> Moves:
    """Acts, then spawns the only run of its order."""
    yield Call(tools.charge)
    try:
        return (yield Spawn("only", labels={"order": run.input}))
    except CallFailed as failed:
        return failed.reason


@flow(name="twins", version="1")
def twins(run: RunView) -> Moves:
    """Two children at once that may not both be."""
    try:
        yield [Spawn("only", labels={"order": run.input}), Spawn("only", labels={"order": run.input})]
    except CallFailed as failed:
        return [failed.step, failed.reason]


@flow(name="fails", version="1")
def fails(run: RunView) -> Moves:
    """Sleeps for the input's seconds, then fails."""
    yield Sleep((run.input or {}).get("seconds", 0))
    yield Fail("as it was told")


@flow(name="endless", version="1")
def endless(run: RunView) -> Moves:
    """Starts itself; the result is how many levels came of it."""
    try:
        below = yield Spawn("endless")
    except CallFailed:
        return 0
    return below + 1


def waits_once(state: RunView) -> Any:
    """A wait, then what came of it."""
    return Finish([wait.outcome for wait in state.waits]) if state.waits else WaitFor("go", timeout=0)


decides_waits = Agent(name="decides-waits", version="1", decide=waits_once)


def spawns_twice(state: RunView) -> Any:
    """Two children one after the other, then their results."""
    if len(state.children) < 2:
        return Spawn("keyed", {"amount_cents": len(state.children) + 1})
    return Finish([child.result["amount_cents"] for child in state.children])


decides_children = Agent(name="decides-children", version="1", decide=spawns_twice)
