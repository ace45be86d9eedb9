"""Drivers: what is recorded is decided again and compared; what the model said is not asked for again."""

from collections.abc import Generator
from typing import Any

import pytest
from django.db import connection

from journal import crash
from journal.read import read_entries
from runs.agents import Agent
from runs.commands import cancel_run, resume_run
from runs.engine.drivers import DecideDriver, Diverged, FlowDriver
from runs.models import Run
from runs.moves import NAMED, Call, Finish
from runs.queries import entries_of, state_of
from runs.registry import agents
from runs.run_view import RunView
from tests.rig import tools
from tests.rig.crew import CrashHere, Crew, journal, start
from tests.rig.ledger import Ledger


def other_flow(run: RunView) -> Generator[Any, Any, Any]:
    yield Call(tools.BY_EFFECT["keyed"], amount_cents=1)
    yield Call(tools.BY_EFFECT["keyed"], amount_cents=99)


def shorter_flow(run: RunView) -> Generator[Any, Any, Any]:
    yield Call(tools.BY_EFFECT["keyed"], amount_cents=1)


@pytest.mark.parametrize("code", [other_flow, shorter_flow])
def test_a_flow_that_yields_otherwise_than_recorded_has_diverged(crew: Crew, ledger: Ledger, code: Any) -> None:
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    crew.drive(run_id)
    state = state_of(run_id)
    agent = Agent("chain", "1", tuple(tools.BY_EFFECT.values()), flow=code)
    with pytest.raises(Diverged) as diverged:
        FlowDriver(agent, state).check(state, entries_of(run_id))
    assert diverged.value.seq == state.slots[2].seq
    assert diverged.value.recorded == [{"call": "charge", "args": {"amount_cents": 2}}]


def test_a_decision_under_other_code_is_compared_with_each_recorded_one(crew: Crew, ledger: Ledger) -> None:
    run_id = start("decide", {"effect": "keyed"})
    crew.drive(run_id)
    state, entries = state_of(run_id), entries_of(run_id)
    same = agents()[state.release_id]
    state.code = "an older digest"
    DecideDriver(same).check(state, entries)

    def decides_otherwise(view: RunView) -> Any:
        return Call(tools.look, id="look") if view.last is None else Finish()

    other = Agent("decide", "1", tuple(tools.BY_EFFECT.values()), decide=decides_otherwise)
    with pytest.raises(Diverged) as diverged:
        DecideDriver(other).check(state, entries)
    assert diverged.value.attempted == [{"finish": None}]


def test_a_run_whose_code_changed_under_its_release_is_held_before_any_effect(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.fault("charge", "rate_limit", times=1, retry_after=0)
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    crew.hire().advance(run_id, Run.objects.get(id=run_id).release_id)
    agent = agents()[Run.objects.get(id=run_id).release_id]
    with monkeypatch.context() as patched:
        patched.setattr(agent, "flow", lambda run: iter_of(Call(tools.BY_EFFECT["keyed"], amount_cents=7)))
        run = crew.drive(run_id)
        assert run.status == "held" and run.reason.startswith("diverged: entry 3:")
        resume_run(run_id=run_id, reason="try again", actor="olga")
        assert crew.drive(run_id).status == "held", "it diverges again, and is not tried for ever"
    (first, second) = [
        e.body for e in read_entries(connection, run_id, kinds=["CONTROL"]) if e.body["verb"] == "diverged"
    ]
    assert first["seq"] == 3 and first["recorded"] == [{"call": "charge", "args": {"amount_cents": 1}}]
    assert first["attempted"] == [{"call": "charge", "args": {"amount_cents": 7}}] == second["attempted"]
    assert ledger.acted(f"{run_id}:1") == 0
    resume_run(run_id=run_id, reason="the old code is back", actor="olga")
    assert crew.drive(run_id).status == "done"


def test_a_run_that_diverged_is_cancelled_without_being_decided_again(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.fault("charge", "rate_limit", times=1, retry_after=0)
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    crew.hire().advance(run_id, Run.objects.get(id=run_id).release_id)
    agent = agents()[Run.objects.get(id=run_id).release_id]
    monkeypatch.setattr(agent, "flow", lambda run: iter_of(Call(tools.BY_EFFECT["keyed"], amount_cents=7)))
    assert crew.drive(run_id).status == "held"
    cancel_run(run_id=run_id, reason="nobody needs it", actor="olga")
    assert crew.drive(run_id).status == "cancelled" and ledger.acted(f"{run_id}:1") == 0
    assert journal(run_id)[-2:] == ["OBS:1", "DONE"]


def iter_of(move: Any) -> Generator[Any, Any, Any]:
    yield move


def test_the_model_is_asked_once_for_each_answer_and_its_usage_adds_up(crew: Crew, ledger: Ledger) -> None:
    run_id = start("model", {"effect": "keyed"})
    assert crew.drive(run_id).status == "done"
    assert ledger.model_requests(run_id) == 3
    kinds = [
        "ATTEMPT",
        "PLAN",
        "TOOL_CALL:1",
        "OBS:1",
        "ATTEMPT",
        "PLAN",
        "TOOL_CALL:2",
        "OBS:2",
        "ATTEMPT",
        "PLAN",
        "DONE",
    ]
    assert journal(run_id) == ["START", *kinds]
    assert state_of(run_id).usage == {"tokens": 30}


def test_a_sleep_waits_without_a_worker_and_shows_in_the_flows_own_clock(crew: Crew, ledger: Ledger) -> None:
    run_id = start("sleep", {"seconds": 0.6})
    worker = crew.hire()
    park = worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    assert park is not None and park.status == "waiting" and park.wake > 0
    assert Run.objects.get(id=run_id).session_id is None
    assert crew.drive(run_id, worker).status == "done"
    slept = entries_of(run_id)[-1].body["result"]
    assert 0.4 <= slept <= 5


def raising_flow(run: RunView) -> Generator[Any, Any, Any]:
    order = yield Call(tools.look)
    yield Call(tools.look, amount_cents=order["no such key"])


def yields_nonsense(run: RunView) -> Generator[Any, Any, Any]:
    yield 5


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (raising_flow, "the agent's code raised KeyError: 'no such key' (test_drivers.py:"),
        (yields_nonsense, f"the agent's code raised TypeError: an agent decides {NAMED}, not int: a flow gives"),
    ],
)
def test_a_flow_that_raises_ends_as_failed_live_and_on_resume(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, code: Any, why: str
) -> None:
    release = Run.objects.get(id=start("read", {})).release_id
    monkeypatch.setattr(agents()[release], "flow", code)
    live = crew.drive(start("read", {}))
    assert live.status == "failed" and live.reason.startswith(why)

    def dies_before_done(point: str) -> None:
        crash_if(point == "before-done")

    resumed, worker = start("read", {}), crew.hire()
    crash.hook = dies_before_done
    with pytest.raises(CrashHere):
        worker.advance(resumed, release)
    crash.hook = None
    crew.lose(worker)
    run = crew.drive(resumed)
    assert (run.status, run.reason, run.epoch) == ("failed", live.reason, 2)


def crash_if(now: bool) -> None:
    if now:
        raise CrashHere
