"""Runs of model loops under other code: what was said stands; what a model would be asked otherwise is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from demo.providers.turns import call
from journal.entries import Entry
from runs import testing
from runs.agents import Agent
from runs.compatibility import judge
from runs.edits import edited
from runs.loops.conversation import turns_of
from runs.redeciding import Redecided, redecide
from runs.sdk import Call, Finish, RunView, ToolContext, flow, tool
from runs.sdk.models import FunctionModel, ModelLoop
from runs.shadow import ask_again
from runs.state import fold
from runs.testing import calls, fails, says
from tests.rig.providers import Providers, providers

__all__ = ["providers"]

SNAPSHOT = "anthropic:claude-haiku-4-5-20251001"
FAKES: dict[str, Any] = {"look": {"cents": 700}, "refund": {"id": "r-1"}}


@tool(effect="read")
def look(ctx: ToolContext, order_id: str) -> dict[str, Any]:
    """The order."""
    raise AssertionError("a replay called a tool")


@tool(effect="keyed", approval=lambda args: args["cents"] > 5_000)
def refund(ctx: ToolContext, order_id: str, cents: int) -> dict[str, Any]:
    """Pay money back."""
    raise AssertionError("a replay called a tool")


PAY = calls(refund, order_id="o-1", cents=700)
SCRIPT = [calls(look, order_id="o-1"), calls("pay"), [says("I pay."), PAY, calls(look, order_id="o-2")], "Done."]


def desk(version: str = "1", tools: Any = (look, refund), **given: Any) -> Agent:
    return Agent("desk", version, tools, ModelLoop(**{"model": SNAPSHOT, "prompt": "You refund."} | given))


@pytest.fixture(scope="module")
def recorded() -> list[Entry]:
    return testing.run(desk(), "o-1", tools=FAKES, model=SCRIPT).journal


def told(found: Redecided) -> list[tuple[int, str, bool]]:
    return [(each.seq, each.kind, each.effect) for each in found.divergences]


def test_what_it_said_stands_at_any_cut(recorded: list[Entry]) -> None:
    for at in (None, *range(1, len(recorded) + 1)):
        found = redecide(desk("2", prompt="Another."), recorded, at=at)
        assert told(found) == [] and found.compared == found.of, at


def test_another_prompt_is_told_and_is_no_effect(recorded: list[Entry]) -> None:
    releases = {desk().release_id: desk().content}
    found = redecide(desk("2", prompt="Be kind."), recorded, releases=releases)
    assert told(found) == [(2, "text", False)] and not found.diverged
    assert found.divergences[0].says == "The model would be asked otherwise from here on: prompt."
    assert told(redecide(desk("2", timeout=60.0), recorded, releases=releases)) == [], "the same requests"
    other = desk("2", (look, refund), model="openai:gpt-5.2-2026-01-01", output=int)
    assert redecide(other, recorded, releases=releases).divergences[0].says.endswith(": model, output.")


def test_tools_are_compared_as_ever(recorded: list[Entry]) -> None:
    @tool(effect="unkeyed", name="refund", approval=True)
    def other(ctx: ToolContext, order_id: str) -> dict[str, Any]:
        raise AssertionError("a replay called a tool")

    first = next(e.seq for e in recorded if e.kind == "TOOL_CALL" and e.body["tool"] == "refund")
    assert told(redecide(desk("2", (look,)), recorded)) == [(first, "missing_tool", True)]
    assert told(redecide(desk("2", (look, other)), recorded)) == [(first, "refused_arguments", True)]


def test_an_open_run_goes_on_under_another_prompt_or_model(recorded: list[Entry]) -> None:
    releases = {desk().release_id: desk().content}
    judged = judge(desk("2", prompt="Be kind.", model="openai:gpt-5.2-2026-01-01"), recorded[:9], releases=releases)
    assert judged.verdict == "compatible"
    assert [(reason.seq, reason.code) for reason in judged.reasons] == [(2, "asked otherwise")]


def test_it_does_not_go_on_as_something_else(recorded: list[Entry]) -> None:
    @flow(name="desk", version="2", tools=[look, refund])
    def by_code(run: RunView) -> Any:
        yield Call(look, order_id="o-1")

    assert judge(by_code, recorded[:9]).verdict == "fork needed"

    def asks(state: RunView) -> Any:
        return (Call(look, order_id="o-1") if state.last is None else Finish()), {"tokens": 1}

    function = Agent("desk", "1", [look, refund], FunctionModel(asks))
    assert judge(Agent("desk", "2", [look, refund], FunctionModel(asks)), recorded[:9]).verdict == "compatible"
    entries = testing.run(function, "o-1", tools=FAKES).journal[:-1]
    judged = judge(desk("2"), entries)
    assert judged.verdict == "fork needed"
    assert [reason.code for reason in judged.reasons] == ["no conversation"]
    assert "is a model loop, and what the model said here is not in the journal" in judged.reasons[0].says


def test_an_edit_of_what_it_was_told_changes_what_it_is_told(recorded: list[Entry]) -> None:
    obs = next(e.seq for e in recorded if e.kind == "OBS")
    changed = edited(recorded, [{"seq": 1, "value": "o-9"}, {"seq": obs, "value": {"cents": 1}}])
    turns = turns_of(fold(changed[0].run_id, changed))
    assert (turns[0].content, turns[2].content) == ("o-9", '{"cents": 1}')
    assert told(redecide(desk(), changed)) == []


def test_an_edit_of_its_moves_changes_what_it_said(recorded: list[Entry]) -> None:
    plan = next(e for e in recorded if e.kind == "PLAN" and len(e.body["moves"]) == 2)
    less = [plan.body["moves"][0] | {"args": {"order_id": "o-1", "cents": 7}}]
    changed = edited(recorded[: plan.seq], [{"seq": plan.seq, "value": less}])
    last = [turn for turn in turns_of(fold(changed[0].run_id, changed)) if turn.by == "model"][-1]
    said = [part for part in last.content["parts"] if part["part_kind"] == "tool-call"]
    assert [json.loads(part["args"]) for part in said] == [{"order_id": "o-1", "cents": 7}]
    assert fold(changed[0].run_id, changed).pending_moves == less


# -- asked again ------------------------------------------------------------------------------------------------------


def asked_of(providers: Providers, turns: Any, **given: Any) -> Agent:
    providers.script("m", turns)
    return desk("2", model="openai-chat:m", base_url=providers.openai_url, **given)


def test_each_decision_is_asked_again_with_what_was_said_before(recorded: list[Entry], providers: Providers) -> None:
    turns = [
        [call("look", order_id="o-1")], [call("refund", order_id="o-1", cents=9)],
        [call("refund", order_id="o-1", cents=700), call("look", order_id="o-2")], "It is done.",
    ]  # fmt: skip
    again = ask_again(asked_of(providers, turns), recorded)
    assert (again.requests, again.failed, again.usage["requests"]) == (4, 0, 4)
    plans = [entry.seq for entry in recorded if entry.kind == "PLAN"]
    assert [(each.seq, each.kind, each.effect) for each in again.divergences] == [
        (plans[1], "decision", True), (plans[3], "text", False),
    ]  # fmt: skip
    assert "nothing could be made" in again.divergences[0].says and "cents" in again.divergences[0].says
    assert again.divergences[1].says == "Asked again: The same end, in other words."
    asked = providers.asked("m")
    assert [len(json.loads(seen.body)["messages"]) for seen in asked] == [2, 4, 6, 9], "the conversation of then"


def test_requests_that_fail_are_counted(recorded: list[Entry], providers: Providers) -> None:
    agent = asked_of(providers, ["x"] * 9)
    providers.fault("server_error", model="m", times=2)
    again = ask_again(agent, recorded)
    assert (again.requests, again.failed) == (4, 2)
    assert "the model gave no answer" in again.divergences[0].says


def test_what_failed_then_is_not_asked_again(providers: Providers) -> None:
    entries = testing.run(desk(), "o-1", tools=FAKES, model=[fails(), "Done."]).journal
    assert ask_again(asked_of(providers, ["Done."]), entries).requests == 1
