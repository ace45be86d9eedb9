"""Crashes in memory: a worker dies at a point, a second one goes on; the matrix tells which point broke a promise."""

import itertools
from typing import Any

import pytest

from runs import testing
from runs.sdk import Agent, Call, Finish, RunView
from tests.testing.agents import EVERY, FAKES, desk, every_class, mail, modelled


def test_a_crash_after_the_effect_does_not_repeat_it() -> None:
    run = testing.run(desk, "o-1", tools=FAKES, crash_at="after-effect", n=2)
    assert run.crashed == "after-effect" and run.result["refunded"]
    run.assert_once("refund")
    assert "NOTE" in run.story, "the take-over is on record"


def test_a_crash_of_an_unkeyed_call_waits_for_a_person() -> None:
    run = testing.run(desk, "o-1", tools=FAKES, crash_at="after-effect", n=3)
    run.assert_status("needs_reconciliation")
    assert run.world.of("mail") and run.reconcile(happened=True).status == "done"


def test_a_point_that_is_never_passed_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match=r"never passed 'after-probe'.*before-effect"):
        testing.start(desk, "o-1", tools=FAKES).crash_at("after-probe")


def test_points_are_those_of_the_product() -> None:
    names = testing.points(desk, "o-1", tools=FAKES)
    assert {"before-claim", "before-intent", "after-commit", "before-effect", "after-effect", "after-done"} <= {*names}


@pytest.mark.slow
def test_every_class_survives_a_crash_everywhere() -> None:
    report = testing.crash_everywhere(every_class, tools=EVERY)
    assert len(report.points) > 50 and not report.broken


def test_a_models_answer_survives_too() -> None:
    assert not testing.crash_everywhere(modelled, tools={"charge": "c"}).broken


def test_an_agent_that_forgets_is_found_out() -> None:
    dice = itertools.count()

    def decide(state: RunView) -> Any:
        return Finish(state.last.result) if state.last else Call(mail, to=f"{next(dice)}@b.example")

    careless = Agent(name="careless", version="1", tools=[mail], decide=decide)
    with pytest.raises(testing.PromisesBroken, match=r"is decided otherwise.*recorded.*0@b.example") as caught:
        testing.crash_everywhere(careless, tools={"mail": "sent"})
    assert caught.value.report.broken[0].point
