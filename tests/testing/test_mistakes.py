"""Mistakes of writers of agents: each sentence names the thing, its place and what to write instead."""

import re
from collections.abc import Callable, Generator
from typing import Any

import pytest

from runs import testing
from runs.agents import Agent
from runs.mistakes import cannot_keep, difference, unknown_tool
from runs.sdk import Call, CallFailed, Finish, RunView, Spawn, flow
from tests.testing.agents import charge, desk, look_up, refund

Moves = Generator[Any, Any, Any]
HERE = re.escape("(test_mistakes.py:")


async def waits() -> None: ...


def other() -> Moves:
    yield Call(charge, cents=1)


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        (lambda: charge, "not Tool: write Call(charge, …)"),
        (lambda: desk, "not Agent: write Spawn('desk', input)"),
        (lambda: waits(), "not coroutine: a flow does not await; make the coroutine a tool"),
        (lambda: other(), "not generator: run another generator with `yield from`"),
        (lambda: other, "not function: make it a tool, and write Call(other, …)"),
        (lambda: {"id": 1}, "not dict: a flow gives its result with `return`"),
        (lambda: None, "not None: return a move on every path"),
        (lambda: [Call(charge, cents=1), 7], "not int"),
    ],
)
def test_what_is_no_move_says_what_was_meant(given: Callable[[], Any], fix: str) -> None:
    @flow(name="odd", version="1", tools=[charge])
    def odd(run: RunView) -> Moves:
        yield given()

    run = testing.run(odd)
    run.assert_status("failed")
    assert fix in run.reason and re.search(HERE + r"\d+\)$", run.reason), run.reason


def test_a_flow_that_yields_no_moves_at_all_goes_on_at_once() -> None:
    @flow(name="none", version="1")
    def none(run: RunView) -> Moves:
        return (yield [Spawn("other", item) for item in run.input])

    run = testing.run(none, [])
    run.assert_status("done")
    assert (run.result, run.story) == ([], ["START", "DONE"])


def test_a_decide_that_forgets_to_return_is_told() -> None:
    run = testing.run(Agent("silent", "1", [charge], decide=lambda state: None))
    assert "not None: return a move on every path, Finish() at the end" in run.reason


def test_a_line_of_the_agents_own_is_named_when_it_raises() -> None:
    def decide(state: RunView) -> Any:
        return Finish(state.input["missing"])

    run = testing.run(Agent("raises", "1", [charge], decide=decide), {})
    assert re.search(r"KeyError: 'missing' " + HERE, run.reason), run.reason


def calls(*args: Any, **given: Any) -> str:
    """The reason that reaches the flow."""

    @flow(name="calls", version="1", tools=[charge, look_up, refund])
    def caller(run: RunView) -> Moves:
        try:
            yield Call(*args, **given)
        except CallFailed as failed:
            return failed.reason

    return str(testing.run(caller).result)


def test_an_unknown_tool_is_guessed_at() -> None:
    assert calls("chrage", cents=1) == (
        "calls has no tool 'chrage'; did you mean 'charge'? It has charge, look_up, refund: name it in tools=[…]"
    )
    assert unknown_tool("calls", "zzz", ["charge"]) == "calls has no tool 'zzz'; it has charge: name it in tools=[…]"


def test_wrong_arguments_are_named() -> None:
    assert calls(refund, order_id="o-1", cents="many").startswith("cents: ")
    assert "missing" not in calls(look_up) and calls(look_up) == "order_id: Field required"


def test_an_argument_that_cannot_be_journaled_is_named_with_its_type_and_the_fix() -> None:
    said = calls(look_up, order_id=[1, {"socket": object()}])
    assert said == (
        "look_up: the argument order_id[1].socket is of type object, which cannot be journaled: give JSON values, "
        "dates, Decimals, UUIDs, bytes, or the id of the thing"
    )
    loop: list[Any] = []
    loop.append(loop)
    assert "contains itself" in cannot_keep("x: ", {"loop": loop})[0]


def test_a_divergence_names_what_differs() -> None:
    turn = iter(["a@b.example", "c@d.example"])

    @flow(name="fickle", version="1", tools=[look_up, charge])
    def fickle(run: RunView) -> Moves:
        yield Call(look_up, order_id=next(turn))
        yield Call(charge, cents=1)

    run = testing.run(fickle, tools={"look_up": 1, "charge": 1}, crash_at="before-effect", n=2)
    run.assert_status("held")
    assert 'args.order_id is "a@b.example" as recorded, "c@d.example" as decided now' in run.reason


def test_differences_in_words() -> None:
    call = {"call": "mail", "args": {"to": "a"}}
    assert difference([call], [call, call]) == "1 move recorded, 2 moves decided"
    assert difference([call], [call | {"id": "x"}]) == "id is decided now, and not recorded"
    assert difference([call], [{"finish": 1}]) == "call is recorded, and not decided now"
    assert "as decided now" in difference([call], [call | {"call": "post"}])


def test_a_child_that_nobody_knows_is_told() -> None:
    @flow(name="lonely", version="1", tools=[])
    def lonely(run: RunView) -> Moves:
        yield Spawn("desc")

    assert "no agent 'desc'" in testing.run(lonely).reason
