"""Approvals in memory: a quorum, four eyes, changed arguments, questions, and time that passes."""

from collections.abc import Generator
from typing import Any

import pytest

from runs import testing
from runs.sdk import Call, CallFailed, Policy, RunView, ToolContext, flow, tool

Moves = Generator[Any, Any, Any]


def under(policy: Policy) -> Any:
    """An agent that pays once under this policy."""

    @tool(effect="keyed", approval=policy)
    def pay(ctx: ToolContext, cents: int) -> int:
        raise AssertionError("a test of an agent touched the world")

    @flow(name="payer", version="1", tools=[pay])
    def payer(run: RunView) -> Moves:
        try:
            paid = yield Call(pay, cents=run.input)
        except CallFailed as refused:
            return [refused.outcome, refused.edited]
        edited = run.calls[0].edited
        return [paid, edited.by if edited else None]

    return payer


def run(policy: Policy, **given: Any) -> testing.Trial:
    return testing.run(under(policy), 5, tools={"pay": lambda cents: cents}, **given)


def test_a_quorum_needs_as_many_people() -> None:
    trial = run(Policy(quorum=2)).approve(by="ada")
    assert trial.status == "awaiting_approval"
    with pytest.raises(AssertionError, match="ada: granted"):
        trial.approve(by="ada")
    assert trial.approve(by="max").result == [5, None]
    trial.assert_once("pay")


def test_who_started_it_does_not_approve_under_four_eyes() -> None:
    with pytest.raises(AssertionError, match="test started this run"):
        run(Policy()).approve(by="test")
    assert run(Policy(four_eyes=False)).approve(by="test").result == [5, None]


def test_changed_arguments_wait_anew_and_are_what_the_tool_gets() -> None:
    trial = run(Policy()).edit({"cents": 3}, by="ada")
    assert trial.status == "awaiting_approval" and trial.world.effects == []
    with pytest.raises(AssertionError, match="ada changed the arguments"):
        trial.approve(by="ada")
    assert trial.approve(by="max").result == [3, "ada"]
    assert testing.replay(trial.agent, trial.journal) is None


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(AssertionError, match=r"args\.cents"):
        run(Policy()).edit({"cents": "three"})


def test_a_question_has_to_be_answered_first() -> None:
    trial = run(Policy()).ask("For whom?", by="ada")
    with pytest.raises(AssertionError, match="For whom"):
        trial.approve(by="max")
    assert trial.answer_question("For Lena").approve(by="max").result == [5, None]


@pytest.mark.parametrize("how", ["expire", "advance", "finish"])
def test_what_nobody_decides_expires(how: str) -> None:
    trial = run(Policy(ttl=3_600, on_expiry="deny"))
    began = trial.now
    assert trial.status == "awaiting_approval"
    trial = {"expire": trial.expire, "advance": lambda: trial.advance(hours=2), "finish": trial.finish}[how]()
    assert trial.result == ["expired", None]
    assert (trial.now - began).total_seconds() >= 3_600 - 1


def test_what_expired_is_asked_for_anew_by_a_retry() -> None:
    trial = run(Policy(ttl=60)).expire()
    assert trial.status == "awaiting_approval" and "expired at" in trial.reason
    with pytest.raises(AssertionError, match="expired before it was decided"):
        trial.approve()
    assert trial.retry().approve().result == [5, None]


def test_reminders_pass_with_time_and_end_nothing() -> None:
    trial = run(Policy(remind_every=60)).finish()
    assert trial.status == "awaiting_approval" and trial.story.count("NOTE:1") == 0
    trial.advance(minutes=2, seconds=30)
    assert [entry.body["reminder"] for entry in trial.journal if entry.kind == "NOTE"] == [1, 2]
    assert trial.approve().result == [5, None]


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        (Policy(quorum=3), {"approve": True}),
        (Policy(ttl=60, on_expiry="deny", remind_every=20), {}),
        (Policy(four_eyes=True), {"approve": False}),
    ],
    ids=["quorum", "expiry", "denied"],
)
def test_wherever_the_worker_dies_it_ends_the_same(policy: Policy, given: dict[str, Any]) -> None:
    report = testing.crash_everywhere(under(policy), 5, tools={"pay": lambda cents: cents}, **given)
    assert len(report.points) > 5
