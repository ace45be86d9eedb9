"""Budgets: a run that spends too much is held for a person, who gives it its budget once more."""

from typing import Any

import pytest

from runs import testing
from runs.commands import resume_run
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from runs.sdk import Agent, Budget, Call, Finish, RunView, ToolContext, tool
from runs.sdk.models import FunctionModel
from runs.totals import COST, TOKENS
from tests.rig.crew import Crew, journal, start, state
from tests.runs import limited


@pytest.fixture
def crew(crew: Crew, settings: Any) -> Crew:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited",)
    agents.cache_clear()
    announce()
    return crew


def brake(run: Run) -> dict[str, Any]:
    entry = next(e for e in reversed(entries_of(run.id)) if e.kind == "CONTROL")
    assert (run.status, entry.actor, entry.body["verb"]) == ("held", "system", "brake")
    assert run.reason == f"brake: {entry.body['reason']}"
    return entry.body


def test_a_budget_that_is_just_enough_never_brakes(crew: Crew) -> None:
    assert crew.drive(start("spends", 3)).status == "done"


def test_the_step_over_the_budget_is_not_made(crew: Crew) -> None:
    run = crew.drive(start("spends", 5))
    assert brake(run)["reason"] == "its budget of 3 steps is spent"
    assert (brake(run)["limit"], brake(run)["used"]) == (3, 4)
    assert len(state(run.id).slots) == 3 and state(run.id).braked is not None
    assert journal(run.id)[-2:] == ["OBS:3", "CONTROL"]


def test_resume_gives_the_budget_once_more_from_there(crew: Crew) -> None:
    run = crew.drive(start("spends", 8))
    for steps in (6, 8):
        resume_run(run_id=run.id, reason="it may go on", actor="olga")
        run = crew.drive(run.id)
        assert len(state(run.id).slots) == steps
    assert run.status == "done"


def test_identical_calls_in_a_row_are_counted(crew: Crew) -> None:
    run = crew.drive(start("repeats", 5))
    assert brake(run)["reason"] == "it called look with the same arguments 3 times in a row"
    assert len(state(run.id).slots) == 2
    resume_run(run_id=run.id, reason="it polls", actor="olga")
    assert len(state(crew.drive(run.id).id).slots) == 4


def test_tokens_are_added_up_before_the_model_is_asked_again(crew: Crew) -> None:
    run = crew.drive(start("tokens", {"calls": 9}))
    assert (brake(run)["reason"], brake(run)["used"]) == ("its budget of 100 tokens is spent", 120)
    assert crew.drive(start("tokens", {"calls": 1})).status == "done"


def test_wall_time_is_looked_at_when_the_run_decides(crew: Crew) -> None:
    run = crew.drive(start("hurries"))
    assert brake(run)["reason"] == "its budget of 0.2 seconds is spent"
    assert [slot.outcome for slot in state(run.id).slots.values()] == ["succeeded", "succeeded"]


def test_a_budget_is_of_the_release_and_says_what_is_wrong_with_it() -> None:
    with pytest.raises(ValueError, match=r"Budget\(steps=\) is a number above zero"):
        Budget(steps=0)
    assert Budget(steps=2).content == {"steps": 2, "identical_calls": 5}
    assert limited.spends.content["budget"] == {"steps": 3}


@tool(effect="read")
def glance(ctx: ToolContext, n: int) -> int:
    return n


def asks(usage: dict[str, float], budget: Budget) -> testing.Trial:
    """A run that asks its model twice; each answer is reported so."""

    def answer(state: RunView) -> Any:
        return (Finish() if state.last else Call(glance, n=1)), usage

    return testing.run(Agent("asks", "1", [glance], FunctionModel(answer), budget=budget), tools={"glance": 1})


def test_cached_tokens_and_reasoning_are_not_counted_twice() -> None:
    usage = {"input_tokens": 90, "cache_read_tokens": 80, "output_tokens": 10, "reasoning_tokens": 9}
    assert asks(usage, Budget(tokens=199)).state.tokens == 200
    assert asks(usage, Budget(tokens=99)).reason == "brake: its budget of 99 tokens is spent"


def test_a_request_of_an_unknown_price_holds_a_run_that_has_a_budget_of_cost() -> None:
    free = {"requests": 1, "input_tokens": 5, "output_tokens": 5}
    run = asks(free, Budget(cost=2))
    assert run.reason == "brake: what a request to the model cost is not known, and its budget is 2 cost"
    assert run.calls == [] and run.resume().status == "done", "its answer is kept; a run may always end"
    assert asks(free | {"cost": 0.5}, Budget(cost=2)).status == "done"
    assert asks(free, Budget(tokens=100)).status == "done"
    assert asks({"tokens": 5}, Budget(cost=2)).status == "done", "a function that says nothing of a cost has none"


def test_a_turn_of_more_calls_than_the_budget_is_made_whole_once_somebody_says_so() -> None:
    at_once = Agent(
        "at-once", "1", [limited.look], decide=lambda run: wants(run), budget=Budget(steps=3, identical_calls=2)
    )
    trial = testing.run(at_once, None, tools={"look": 1})
    assert (trial.status, len(trial.calls)) == ("held", 0)
    trial.resume()
    assert trial.status == "held" and len(trial.calls) == 5  # the next turn is over it again
    trial.resume()
    assert trial.result == 10


def wants(run: RunView) -> Any:
    return [Call("look") for _ in range(5)] if len(run.calls) < 10 else Finish(len(run.calls))


def test_an_answer_that_came_after_a_cancel_was_paid_for_and_counts(crew: Crew) -> None:
    run = crew.drive(start("cancelled"))
    assert run.status == "cancelled"
    assert (run.tokens, run.cost) == (40, 0.25)
    counted = crew.workers[-1].session.totals.snapshot()
    assert (counted[TOKENS], counted[COST]) == (40, 0.25)
