"""A worker drives runs to their end, in this process, on the real database."""

from collections.abc import Generator
from typing import Any

import pytest

from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents
from runs.sdk import Call, RunView, ToolContext, tool
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger


@pytest.mark.parametrize("agent", ["read", "keyed", "keyed-probe", "probed", "unkeyed"])
def test_a_flow_of_one_call_ends_with_its_result(crew: Crew, ledger: Ledger, agent: str) -> None:
    run_id = start(agent, {})
    run = crew.drive(run_id)
    assert run.status == "done", [e.body for e in entries_of(run_id)]
    assert journal(run_id) == ["START", "PLAN", "TOOL_CALL:1", "OBS:1", "DONE"]
    assert state(run_id).slots[1].key == f"{run_id}:1"


@tool(effect="read")
def changes_its_arguments(ctx: ToolContext, items: list[int]) -> int:
    items.append(99)
    return len(items)


def calls_twice(run: RunView) -> Generator[Any, Any, Any]:
    items = [1, 2]
    first = yield Call(changes_its_arguments, items=items)
    second = yield Call(changes_its_arguments, items=items)
    return [first, second, items]


def test_a_tool_that_changes_its_arguments_changes_nothing_else(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = start("read", {})
    agent = agents()[Run.objects.get(id=run_id).release_id]
    monkeypatch.setattr(agent, "flow", calls_twice)
    monkeypatch.setitem(agent.toolbox, "changes_its_arguments", changes_its_arguments)
    assert crew.drive(run_id).status == "done", Run.objects.get(id=run_id).reason
    assert entries_of(run_id)[-1].body == {"result": [3, 3, [1, 2]]}
