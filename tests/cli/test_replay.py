"""`manage.py replay`: decided in this process where it has the code, else by a worker; and as a pipeline's step."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from recovery.models import Replay
from recovery.replay_batch import finished_runs
from runs import registry
from runs.agents import Agent
from runs.models import AuditRecord, Run
from runs.sdk import Call, RunView
from runs.short_ids import short_id
from tests.api.agents import refund
from tests.api.conftest import Desk
from tests.api.test_replay import deciding
from tests.cli.manage import AtTerminal, manage, refused

Moves = Generator[Any, Any, Any]


def done(desk: Desk, cents: int = 700) -> str:
    run_id = manage("start", "desk", "--input", json.dumps({"amount_cents": cents})).last
    desk.work()
    return run_id


def other(run: RunView) -> Moves:
    return (yield Call(refund, amount_cents=100))


def own_agent() -> Agent:
    return next(agent for agent in registry.agents().values() if agent.name == "desk")


def test_the_same_decisions_are_exit_0_and_nothing_is_written(desk: Desk) -> None:
    run_id = done(desk)
    said = manage("replay", run_id)
    assert (said.code, said.out, said.err) == (0, "", "")
    assert not Replay.objects.exists() and not AuditRecord.objects.filter(act="run.replay").exists()


def test_another_decision_is_exit_1_and_both_moves_are_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = done(desk)
    monkeypatch.setattr(own_agent(), "flow", other)
    said = manage("replay", short_id(Run.objects.get().id), "--release", "desk@1")
    assert said.code == 1
    assert said.rows[0] == [
        run_id, "3", "arguments", "A call of refund: args.amount_cents is 700 as recorded, 100 as decided now.",
        '[{"call": "refund", "args": {"amount_cents": 700}}]', '[{"call": "refund", "args": {"amount_cents": 100}}]',
    ]  # fmt: skip
    document = json.loads(manage("replay", run_id, "--json").out)
    assert document["run_id"] == run_id and document["result"]["verdict"] == "diverged"


def test_a_terminal_shows_it_for_a_person(desk: Desk, at_terminal: AtTerminal) -> None:
    run_id = done(desk)
    ended = at_terminal("replay", run_id, HOLDFAST_AGENTS="tests.api.agents").end()
    assert ended.code == 0 and "same" in ended.out and "2 of 2 decisions compared" in ended.out


def test_all_finished_runs_are_a_pipeline_s_step(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [done(desk, cents) for cents in (100, 700, 100)]
    words = ("replay", "--all", "--since", "7d", "--release", "desk@1")
    said = manage(*words)
    assert (said.code, said.out) == (0, "") and "desk@1: 3 runs: 3 decided the same, 0 otherwise" in said.err
    monkeypatch.setattr(own_agent(), "flow", other)
    said = manage(*words)
    assert said.code == 1 and {row[0] for row in said.rows} == {runs[1]}
    assert "2 decided the same, 1 otherwise" in said.err
    lines = [json.loads(line) for line in manage(*words, "--json").out.splitlines()]
    assert [(line["run_id"], line["result"]["verdict"]) for line in lines] == [
        (runs[0], "same"), (runs[1], "diverged"), (runs[2], "same"),
    ]  # fmt: skip
    Run.objects.filter(id=runs[1]).update(ended_at=timezone.now() - timedelta(days=8))
    assert manage(*words).code == 0
    assert manage(*words[:2], "--since", "9d", *words[4:]).code == 1


def test_what_cannot_be_decided_is_exit_2(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, let_go = done(desk), threading.Event()

    def hangs(run: RunView) -> Moves:
        let_go.wait(120)
        yield Call(refund, amount_cents=100)

    monkeypatch.setattr(own_agent(), "flow", hangs)
    monkeypatch.setattr("recovery.replay_batch.DECISION_LIMIT", 0.2)
    try:
        said = manage("replay", run_id)
        assert said.code == 2 and "did not decide within 0.2 s" in said.err and said.out == ""
    finally:
        let_go.set()


def test_a_release_that_this_process_does_not_have_is_left_to_a_worker(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = done(desk)
    own = dict(registry.agents())
    own.pop(Run.objects.get().release_id)
    with monkeypatch.context() as patched, deciding(desk):
        patched.setattr("recovery.replay_batch.agents", lambda: own)
        assert manage("replay", run_id).code == 0
        said = manage("replay", "--all", "--release", "desk@1")
    assert said.code == 0 and "1 decided the same" in said.err
    assert Replay.objects.count() == 2


def test_wrong_words_are_refused(desk: Desk) -> None:
    run_id = done(desk)
    assert "Name a run, or say --all" in refused(manage("replay"))
    assert "--all needs --release" in refused(manage("replay", "--all"))
    assert "leave RUN and --at out" in refused(manage("replay", run_id, "--all"))
    assert "desk has 1, not 9" in refused(manage("replay", run_id, "--release", "9"))
    assert "how long ago" in refused(manage("replay", "--all", "--release", "desk@1", "--since", "soon"))
    assert "asks no model" in refused(manage("replay", run_id, "--ask-model"))
    assert "no entry 99" in manage("replay", run_id, "--at", 99).err


def test_finished_runs_come_by_keyset_each_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [done(desk) for _ in range(5)]
    monkeypatch.setattr("recovery.replay_batch.BATCH", 2)
    at = timezone.now()
    Run.objects.update(ended_at=at)
    found = [str(run_id) for run_id in finished_runs("desk", at - timedelta(seconds=1))]
    assert found == sorted(runs)
