"""Waits, questions, signals and children in memory, and a crash at every point of them."""

import re
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
    assert testing.run(waits, tools=CHARGE, signals={"paid": {"cents": 1}}, answers=lambda asked: "red").result[0] == 1


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


@flow(name="endless", version="1", tools=[])
def endless(run: RunView) -> Moves:
    return (yield Spawn("endless", run.input + 1))


@flow(name="sole", version="1", tools=[], unique="order")
def sole(run: RunView) -> Moves:
    return (yield WaitFor("go"))


@flow(name="twins", version="1", tools=[])
def twins(run: RunView) -> Moves:
    yield [Spawn("sole", labels={"order": "o-1"}), Spawn("sole", labels={"order": run.input})]


@flow(name="odd-child", version="1", tools=[])
def odd_child(run: RunView) -> Moves:
    yield Spawn("leaf", {"f": len})


def test_a_tree_has_a_bottom_in_memory_too() -> None:
    run = testing.run(endless, 0)
    run.assert_status("failed")
    assert run.reason.startswith("endless failed: a tree has at most 32 levels") and len(run.memory.runs) == 33


def test_a_child_that_cannot_be_is_refused_in_memory_too() -> None:
    twice = testing.run(twins, "o-1", agents=[sole])
    assert "order:o-1 belongs to its sibling" in twice.rest().cancel().state.slots[2].error
    assert testing.run(twins, "o-2", agents=[sole]).status == "waiting"
    assert "cannot be journaled" in testing.run(odd_child, agents=[leaf]).reason


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"answers": True}, "answers= takes values by the question, or a function of the question, not True"),
        ({"signals": ["paid"]}, "signals= takes payloads by the signal's name, not ['paid']"),
        ({"approve": "yes"}, "approve= takes True, False, or a function of the call, not 'yes'"),
        ({"tools": ["charge"]}, "tools= takes fakes by the tool's name, or testing.REAL, not ['charge']"),
    ],
)
def test_what_a_test_gives_is_looked_at(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        testing.run(waits, **given)


def test_an_answer_that_a_person_could_not_give_is_none_in_a_test() -> None:
    paid = {"tools": CHARGE, "signals": {"paid": {"cents": 5}}}
    with pytest.raises(AssertionError, match=r"'green' is no answer to 'Which colour\?': It is one of \"red\""):
        testing.run(waits, **paid, answers={"Which colour?": "green"})
    with pytest.raises(AssertionError, match="7 is no answer"):
        testing.run(waits, **paid).answer(7)
