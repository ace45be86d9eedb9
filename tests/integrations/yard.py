"""Agents of pydantic-ai in the test's own process: `HOLDFAST_AGENTS=tests.integrations.yard`."""

from __future__ import annotations

import threading
from uuid import UUID

from pydantic_ai import Agent, TextPart

from runs.integrations.pydantic_ai import journaled
from runs.run_view import RunView
from tests.integrations.desks import TURNS, act, call, desk, scripted

GO = threading.Event()
MADE: list[UUID] = []  # deps


def deps(run: RunView) -> None:
    MADE.append(run.id)


def two() -> Agent[None, str]:
    """Two calls side by side: one is lost at once, the other waits until it is let go."""
    agent = Agent(scripted([call("bad", "c1"), call("slow", "c2")], [TextPart("said")]))

    @agent.tool_plain
    async def bad() -> str:
        raise ConnectionError("the line is dead")

    @agent.tool_plain
    def slow() -> str:
        assert GO.wait(30)
        act("slow")
        return "slow done"

    return agent


pair = journaled(two(), name="pair", version="1", deps=deps)
yard = journaled(desk(scripted(*TURNS), approval=True), name="yard", version="1", effects={"lookup": "read"})
