"""An agent runs in memory with fake tools, to its end or to where only a person can move it."""

import time

import pytest

from runs import testing
from runs.sdk import PermanentError, TransientError
from tests.testing.agents import EVERY, FAKES, ORDER, desk, every_class, modelled, scripted


def test_a_flow_runs_to_its_end_with_fakes() -> None:
    run = testing.run(desk, "o-1", tools=FAKES)
    assert (run.status, run.result) == ("done", {"refunded": True, "refund": "r-1"})
    run.assert_calls(["look_up", ("refund", {"cents": 700}), ("mail", {"to": "a@b.example"})])
    run.assert_once("refund")
    assert run.story[:4] == ["START", "PLAN", "TOOL_CALL:1", "OBS:1"] and run.story[-1] == "DONE"


def test_decide_and_a_model_run_too() -> None:
    assert testing.run(scripted, "o-1", tools={"look_up": ORDER}).result == 700
    run = testing.run(modelled, None, tools={"charge": lambda cents: f"c-{cents}"})
    assert run.result == "c-7" and run.state.usage == {"tokens": 15}


def test_a_tool_without_a_fake_refuses_and_says_how_to_give_one() -> None:
    with pytest.raises(testing.NotFaked, match=r"called mail\(to='a@b.example'\).*tools=\{'mail': "):
        testing.run(desk, "o-1", tools={k: v for k, v in FAKES.items() if k != "mail"})


def test_a_fake_for_a_tool_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"'refnd'.*did you mean 'refund'"):
        testing.run(desk, "o-1", tools={"refnd": 1})


def test_the_real_tool_acts_only_when_the_test_says_so() -> None:
    with pytest.raises(AssertionError, match="touched the world"):
        testing.run(desk, "o-1", tools=FAKES | {"mail": testing.REAL})


def test_a_failure_reaches_the_flow() -> None:
    run = testing.run(desk, "o-1", tools=FAKES | {"refund": PermanentError("closed")})
    assert run.result == {"refunded": False, "why": "closed"}


def test_backoffs_pass_by_themselves() -> None:
    run = testing.run(desk, "o-1", tools=FAKES | {"refund": testing.each(TransientError("busy", 60), {"id": "r-2"})})
    assert run.result["refund"] == "r-2" and "ERROR:2" in run.story
    assert (run.now - run.journal[0].recorded_at).total_seconds() >= 60


def test_a_lost_answer_of_a_keyed_tool_is_sent_again_and_acts_once() -> None:
    run = testing.run(desk, "o-1", tools=FAKES | {"refund": testing.lost({"id": "r-3"})})
    assert run.result["refund"] == "r-3"
    run.assert_once("refund")


def test_an_unkeyed_call_in_doubt_waits_for_a_person() -> None:
    run = testing.run(desk, "o-1", tools=FAKES | {"mail": testing.lost("sent")})
    run.assert_status("needs_reconciliation")
    assert run.reconcile("mail", happened=True, result="sent").status == "done"


def test_approvals_are_decided_by_the_test() -> None:
    dear = FAKES | {"look_up": ORDER | {"cents": 9_000}}
    run = testing.run(desk, "o-1", tools=dear)
    run.assert_status("awaiting_approval")
    assert run.approve("refund").status == "done"
    assert testing.run(desk, "o-1", tools=dear).deny(note="too dear").result["why"] == "too dear"
    assert testing.run(desk, "o-1", tools=dear, approve=True).status == "done"
    assert testing.run(desk, "o-1", tools=dear, approve=lambda call: call.args["cents"] < 1).result["refunded"] is False


def test_time_passes_when_told() -> None:
    run = testing.run(every_class, tools=EVERY)
    run.assert_status("waiting")
    assert run.advance(minutes=59).status == "waiting"
    assert run.advance(minutes=2).result == ["t-1", "c-1"]
    assert testing.run(every_class, tools=EVERY).finish().status == "done"


def test_a_run_is_cancelled_and_held() -> None:
    assert testing.run(every_class, tools=EVERY).cancel().status == "cancelled"
    run = testing.run(every_class, tools=EVERY).hold("wait")
    run.assert_status("held")
    assert run.resume().finish().status == "done"


def test_the_state_of_any_moment_can_be_looked_at() -> None:
    run = testing.run(desk, "o-1", tools=FAKES)
    assert run.state_at(3).slots[1].in_doubt and not run.state_at(4).slots[1].in_doubt


def test_asserts_say_what_was_instead() -> None:
    run = testing.run(desk, "o-1", tools=FAKES)
    with pytest.raises(AssertionError, match=r"the run called .*, expected"):
        run.assert_calls(["look_up"])
    with pytest.raises(AssertionError, match=r"is done .* not failed"):
        run.assert_status("failed")
    with pytest.raises(AssertionError, match="never called transfer"):
        run.assert_once("transfer")


@pytest.mark.slow
def test_a_thousand_runs_take_seconds() -> None:
    began = time.monotonic()
    for _ in range(300):
        testing.run(desk, "o-1", tools=FAKES)
    assert time.monotonic() - began < 30
