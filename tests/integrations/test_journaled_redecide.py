"""Journaled agents under other code: decided again by it, told where it goes another way; no model is asked."""

from __future__ import annotations

from typing import Any

import pytest

from runs.compatibility import judge
from runs.edits import CannotEdit, edited
from runs.integrations.pydantic_ai import journaled
from runs.redeciding import redecide
from runs.shadow import ask_again
from runs.testing import Trial
from tests.integrations.desks import ASKED, TURNS, desk, scripted
from tests.integrations.test_journaled import FAKES, agent_of


def other(version: str = "2", instructions: str | None = None) -> Any:
    library = desk(scripted(*TURNS))
    if instructions is not None:
        library.instructions(lambda: instructions)
    return journaled(library, name="desk", version=version, effects={"lookup": "read"})


@pytest.fixture
def trial() -> Trial:
    trial = Trial(agent_of(), "Refund o-1", tools=FAKES)
    trial.finish()
    assert trial.status == "done"
    return trial


def test_the_same_code_decides_the_same_and_asks_nobody(trial: Trial) -> None:
    before = len(ASKED)
    found = redecide(other(), trial.journal)
    assert found.divergences == [] and found.compared == found.of, (found, trial.story)
    assert len(ASKED) == before
    for at in range(2, len(trial.journal)):
        assert redecide(other(), trial.journal, at=at).divergences == [], (at, trial.story)


def test_other_instructions_are_another_request(trial: Trial) -> None:
    found = redecide(other(instructions="Be kind."), trial.journal)
    assert found.first is not None and found.first.kind == "decision" and found.stopped_at == found.first.seq
    plan = next(entry.seq for entry in trial.journal if entry.kind == "PLAN")
    assert found.first.seq == plan and "something else" in found.first.says
    judged = judge(other(instructions="Be kind."), trial.journal[:-1])
    assert judged.verdict == "fork needed"
    assert judge(other(), trial.journal[:-1]).verdict == "compatible"


def test_its_answers_are_not_edited_and_not_asked_for_again(trial: Trial) -> None:
    plan = next(entry.seq for entry in trial.journal if entry.kind == "PLAN")
    with pytest.raises(CannotEdit, match="another library's agent"):
        edited(trial.journal, [{"seq": plan, "value": [{"finish": 1}]}])
    assert ask_again(other(), trial.journal).requests == 0
