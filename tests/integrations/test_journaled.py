"""An agent of pydantic-ai, unchanged, on the journal: in memory, with its worker lost at every point."""

from typing import Any

import pytest

from runs.integrations.pydantic_ai import journaled
from runs.testing import REAL, Trial, crash_everywhere
from tests.integrations.desks import ACTED, ASKED, TURNS, call, desk, scripted

FAKES = {
    "lookup": {"order": "o-1", "cents": 500, "z": 1, "a": [1.5, None]},
    "refund": "refunded 500",
    "mail": "sent",
}


def agent_of(*turns: Any, **given: Any) -> Any:
    ACTED.clear()
    ASKED.clear()
    return journaled(desk(scripted(*(turns or TURNS)), **given), name="desk", version="1", effects={"lookup": "read"})


def test_it_runs_to_its_end() -> None:
    trial = Trial(agent_of(), "Refund o-1", tools=REAL)
    trial.finish()
    assert trial.status == "done", (trial.status, trial.reason, trial.story)
    assert trial.result == {"refunded": True, "why": "because"}
    assert [tool for _, tool, _ in ACTED] == ["lookup", "lookup", "refund", "mail"]
    assert len(ASKED) == 5


@pytest.mark.slow
def test_its_worker_may_be_lost_at_every_point() -> None:
    agent = agent_of()
    report = crash_everywhere(agent, "Refund o-1", tools=FAKES)
    assert len(report.points) > 50


@pytest.mark.slow
def test_its_worker_may_be_lost_at_every_point_around_an_approval() -> None:
    turns = [call("refund", "c1", order="o-1", cents=5)], [call("final_result", "c2", refunded=True, why="because")]
    report = crash_everywhere(agent_of(*turns, approval=True), "Refund o-1", tools=FAKES, approve=True)
    assert "after-approval" in report.points
