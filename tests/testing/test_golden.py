"""Golden journals: written once, compared from then on, and decided again by newer code."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from runs import testing
from runs.sdk import Agent, Call, Finish, RunView, flow
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


@pytest.mark.parametrize("driver", ["flow", "decide"])
def test_a_changed_end_is_a_divergence_too(driver: str, tmp_path: Path) -> None:
    def ends_with(value: int) -> Agent:
        def answers(run: RunView) -> Generator[Any, Any, Any]:
            yield Call(look_up, order_id="o-1")
            return [value, run.now.isoformat()]

        def decides(state: RunView) -> Any:
            return Finish([value, state.now.isoformat()]) if state.last else Call(look_up, order_id="o-1")

        if driver == "flow":
            return flow(name="ends", version="1", tools=[look_up])(answers)
        return Agent("ends", "1", tools=[look_up], decide=decides)

    path = tmp_path / "ends.jsonl"
    testing.golden(testing.run(ends_with(1), tools={look_up: FAKES["look_up"]}), path)
    assert testing.replay(ends_with(1), path) is None
    told = testing.replay(ends_with(2), path)
    assert told is not None and "[{'finish': [1, " in told and "[{'finish': [2, " in told


@pytest.mark.parametrize("text", ["good day", "{}", "[1]", "5", '{"kind": "START"}', "\n\nnull"])
def test_a_file_that_is_no_journal_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"notes\.txt, line \d, is no entry of a journal"):
        testing.replay(desk, path)


def test_nothing_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(ValueError, match="its first entry is no START"):
        testing.replay(desk, tmp_path / "empty")
