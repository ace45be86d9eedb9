"""A replay tells of no secret, whatever is decided otherwise with it."""

from __future__ import annotations

import io
from collections.abc import Generator
from typing import Any

import pytest
from django.test import override_settings

from recovery.models import Purpose
from recovery.redecided import decided_again
from recovery.replay_work import carry_out
from recovery.replays import order, wait_for
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents
from runs.sdk import Call, Fail, RunView
from tests.rig.crew import Crew, start
from tests.runs import secretive
from tests.runs.secretive import CARD, SECRET
from tests.runs.test_secret import crew as crew
from tests.runs.test_secret import everywhere
from tests.runs.test_secret import log as log

OTHER = "sk-live-other-tell-nobody"


@pytest.mark.parametrize("agent", ["charges", "charges-much", "decides-secretly", "models-secretly", "spawns"])
@override_settings(HOLDFAST_REDACT=r"4000\d{12}")
def test_what_is_sealed_compares_and_is_never_told(crew: Crew, log: io.StringIO, agent: str) -> None:
    run = crew.drive(start(agent, {}))
    replay = order(run, run.release, Purpose.REPLAY, actor="olga")
    carry_out(crew.workers[0], replay.pk)
    found = wait_for(replay, 0)
    assert (found.verdict, found.error) == ("same", "")
    assert everywhere(crew, log, SECRET, CARD) == []


def raises(run: RunView) -> Generator[Any, Any, Any]:
    raise ValueError(f"card {CARD}")
    yield


def other_secret(run: RunView) -> Generator[Any, Any, Any]:
    yield Call(secretive.charge, api_key=OTHER, thought=CARD)


def fails(run: RunView) -> Generator[Any, Any, Any]:
    yield Fail(f"card {CARD}")


def wrong_type(run: RunView) -> Generator[Any, Any, Any]:
    yield Call(secretive.charge, api_key=[OTHER], amount="x")


@pytest.mark.parametrize("code", [raises, other_secret, fails, wrong_type])
@override_settings(HOLDFAST_REDACT=r"4000\d{12}")
def test_what_is_decided_otherwise_tells_no_secret_either(
    crew: Crew, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, code: Any
) -> None:
    run = crew.drive(start("charges", {}))
    monkeypatch.setattr(agents()[run.release_id], "flow", code)
    replay = order(run, run.release, Purpose.REPLAY, actor="olga")
    carry_out(crew.workers[0], replay.pk)
    found = wait_for(replay, 0)
    assert (found.verdict, found.error) == ("diverged", "")
    assert everywhere(crew, io.StringIO(), SECRET, OTHER, CARD) == []
    told = str(found.result)
    assert not any(word in told for word in (SECRET, OTHER, CARD))


def test_a_process_with_another_key_takes_what_it_cannot_open_for_the_same(crew: Crew) -> None:
    run = crew.drive(start("charges", {}))
    entries = entries_of(Run.objects.get(id=run.id).id)
    with override_settings(SECRET_KEY="a pipeline's own, which is no secret"):
        assert decided_again(agents()[run.release_id], entries)["divergences"] == []
