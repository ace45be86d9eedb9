"""Waits, questions, signals and children in memory, and a crash at every point of them."""

from collections.abc import Generator
from typing import Any

import pytest

from runs import testing
from runs.moves import Ask, First, Spawn, WaitFor, Won
from runs.sdk import Call, CallFailed, RunView, Sleep, flow
from tests.testing.agents import charge, mail

Moves = Generator[Any, Any, Any]


@flow(name="leaf", version="1", tools=[charge])
def leaf(run: RunView) -> Moves:
    done = yield Call(charge, cents=run.input)
    return done


@flow(name="waits", version="1", tools=[charge, mail])
def waits(run: RunView) -> Moves:
    paid = yield WaitFor("paid", timeout=3_600)
    colour = yield Ask("Which colour?", options=["red", "blue"])
    yield Call(charge, cents=paid["cents"])
    return [paid["cents"], colour]


@flow(name="tree", version="1", tools=[])
def tree(run: RunView) -> Moves:
    both = yield [Spawn("leaf", 1), Spawn("leaf", 2)]
    won = yield First(Spawn("leaf", 3), Sleep(10_000))
    return [*both, won.value]


@flow(name="patient", version="1", tools=[])
def patient(run: RunView) -> Moves:
    try:
        yield WaitFor("paid", timeout=60)
    except CallFailed as expired:
        won = yield First(WaitFor("late"), Sleep(30))
        return [expired.outcome, won]


CHARGE = {"charge": lambda cents: f"c-{cents}"}


def test_signals_and_answers_come_when_the_test_says() -> None:
    run = testing.run(waits, tools=CHARGE)
    run.assert_status("waiting")
    run.signal("paid", {"cents": 5}, id="s-1").signal("paid", {"cents": 6}, id="s-1")
    assert "Which colour?" in run.reason
    assert run.answer("blue").result == [5, "blue"]
    assert len(run.state.signals) == 1, "the same id is the same signal"


def test_signals_and_answers_can_be_given_beforehand() -> None:
    given = {"signals": {"paid": {"cents": 5}}, "answers": {"Which colour?": "red"}}
    assert testing.run(waits, tools=CHARGE, **given).result == [5, "red"]
    assert testing.run(waits, tools=CHARGE, signals={"paid": {"cents": 1}}, answers=str.upper).result[0] == 1


def test_waits_expire_when_their_time_has_come() -> None:
    run = testing.run(patient)
    assert run.advance(seconds=59).status == "waiting"
    assert run.advance(seconds=60).result == ["expired", Won(1, None)]


def test_children_run_in_the_same_memory() -> None:
    run = testing.run(tree, agents=[leaf], tools=CHARGE)
    assert run.result == ["c-1", "c-2", "c-3"]
    assert [effect.args["cents"] for effect in run.world.of("charge")] == [1, 2, 3]


def test_a_child_that_is_not_there_fails_its_call() -> None:
    run = testing.run(tree)
    assert run.status == "failed" and "no agent 'leaf' is in this memory" in run.reason


@pytest.mark.slow
def test_waits_survive_a_crash_everywhere() -> None:
    given = {"signals": {"paid": {"cents": 5}}, "answers": {"Which colour?": "red"}}
    assert testing.crash_everywhere(waits, tools=CHARGE, **given).points


@pytest.mark.slow
def test_a_tree_survives_a_crash_everywhere() -> None:
    assert testing.crash_everywhere(tree, agents=[leaf], tools=CHARGE).points


def test_cancelling_a_parent_cancels_its_children() -> None:
    @flow(name="keeper", version="1", tools=[])
    def keeper(run: RunView) -> Moves:
        yield Spawn("patient")

    run = testing.run(keeper, agents=[patient]).cancel("enough")
    assert {each.status for each in run.memory.runs.values()} == {"cancelled"}
