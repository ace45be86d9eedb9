"""Golden journals: written once, compared from then on, and decided again by newer code."""

from pathlib import Path
from typing import Any

import pytest

from runs import testing
from runs.sdk import Agent, Call, Finish, RunView
from tests.testing.agents import FAKES, desk, look_up, scripted


def test_a_golden_journal_is_written_once_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "journals" / "desk.jsonl"
    testing.golden(testing.run(desk, "o-1", tools=FAKES), path)
    testing.golden(testing.run(desk, "o-1", tools=FAKES), path)
    assert len(path.read_text().splitlines()) == 11
    with pytest.raises(testing.GoldenDiffers, match="r-9"):
        testing.golden(testing.run(desk, "o-1", tools=FAKES | {"refund": {"id": "r-9"}}), path)
    testing.golden(testing.run(desk, "o-1", tools=FAKES | {"refund": {"id": "r-9"}}), path, write=True)
    assert "r-9" in path.read_text()


def test_a_stored_journal_is_decided_again_by_other_code(tmp_path: Path) -> None:
    path = tmp_path / "scripted.jsonl"
    testing.golden(testing.run(scripted, "o-1", tools={look_up: FAKES["look_up"]}), path)
    assert testing.replay(scripted, path) is None

    def decide(state: RunView) -> Any:
        return Finish(1) if state.last else Call(look_up, order_id="another")

    changed = Agent(name="scripted", version="1", tools=[look_up], decide=decide)
    said = testing.replay(changed, path)
    assert said is not None and "entry 3" in said and "another" in said
    with pytest.raises(ValueError, match="a journal of 'scripted'"):
        testing.replay(desk, path)
