"""The work of resuming a long run grows with its steps, and not faster."""

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from journal.encoding import decode, encode
from journal.entries import Entry
from runs.engine.drivers import driver_for
from runs.redeciding import redecide
from runs.sdk import Agent, Call, Finish, RunView, ToolContext, flow, tool
from runs.state import fold
from tests.rig.work import work_of

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@tool(effect="read")
def look(ctx: ToolContext, n: int) -> int:
    return n


@flow(name="long", version="1", tools=[look])
def long(run: RunView) -> Generator[Any, Any, Any]:
    for n in range(run.input):
        yield Call(look, n=n)


def next_look(state: RunView) -> Any:
    done = 0 if state.last is None else state.last.args["n"] + 1
    return Finish(done) if done == state.input else Call(look, n=done)


decides = Agent(name="long-decider", version="1", tools=[look], decide=next_look)


def journal_of(agent: Agent, steps: int) -> list[Entry]:
    """As a worker would have written it, up to the last observation."""
    start = {"agent": agent.name, "input": steps + 1, "release": "r", "code": "other code", "labels": {}}
    written: list[tuple[str, int | None, dict[str, Any]]] = [("START", None, start)]
    for n in range(steps):
        call = {"tool": "look", "args": {"n": n}, "key": f"k:{n}", "effect": "read", "digest": "0" * 64, "gate": None}
        written.append(("PLAN", None, {"seen": len(written)}))
        written.append(("TOOL_CALL", n + 1, call))
        written.append(("OBS", n + 1, {"outcome": "succeeded", "result": n, "source": "worker"}))
    return [
        Entry(UUID(int=1), seq, kind, 1, step, step if kind == "OBS" else None, 1, "worker",
              BEGAN + timedelta(seconds=seq), decode(encode(body)))
        for seq, (kind, step, body) in enumerate(written, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("agent", [long, decides], ids=["flow", "decide, under other code"])
def test_ten_times_the_steps_are_ten_times_the_work(agent: Agent) -> None:
    def resume(entries: list[Entry]) -> None:
        state = fold(entries[0].run_id, entries)
        driver = driver_for(agent, state)
        driver.check(state, entries)
        assert state.next_step == len(entries) // 3 + 1

    few, many = journal_of(agent, 200), journal_of(agent, 2_000)
    resume(journal_of(agent, 1))  # what is done once in a process is not counted
    assert 9 < work_of(lambda: resume(many)) / work_of(lambda: resume(few)) < 11


@pytest.mark.parametrize("agent", [long, decides], ids=["flow", "decide"])
def test_a_replay_of_ten_times_the_steps_is_ten_times_the_work(agent: Agent) -> None:
    def decide_again(entries: list[Entry]) -> None:
        found = redecide(agent, entries)
        assert found.divergences == [] and found.compared == found.of == len(entries) // 3

    few, many = journal_of(agent, 200), journal_of(agent, 2_000)
    decide_again(journal_of(agent, 1))
    assert 9 < work_of(lambda: decide_again(many)) / work_of(lambda: decide_again(few)) < 11
