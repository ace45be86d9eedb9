"""Whether an open run may go on under another release, with the reasons."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from runs import testing
from runs.compatibility import Judgement, judge
from runs.sdk import Agent, Call, RunView, Sleep, ToolContext, TransientError, WaitFor, flow, tool
from runs.sdk.models import FunctionModel

Moves = Generator[Any, Any, Any]


@tool(effect="read")
def look(ctx: ToolContext, order_id: str) -> int: ...


@tool(effect="keyed", approval=True)
def refund(ctx: ToolContext, cents: int) -> str: ...


@tool(effect="keyed")
def charge(ctx: ToolContext, cents: int) -> str: ...


@tool(effect="unkeyed")
def mail(ctx: ToolContext, to: str) -> str: ...


ALL = (look, refund, charge, mail)
FAKES: dict[str, Any] = {"look": 700, "refund": "r-1", "charge": "c-1", "mail": "sent"}


def waits(run: RunView) -> Moves:
    cents = yield Call(look, order_id="o-1")
    yield WaitFor("go")
    yield Call(charge, cents=cents)


def agent(version: str, code: Any, tools: Any = ALL, name: str = "desk") -> Agent:
    return flow(name=name, version=version, tools=tools)(code)


def parked(code: Any = waits, **more: Any) -> testing.Trial:
    return testing.start(agent("1", code), tools=FAKES | more).rest()


def told(found: Judgement) -> list[tuple[int | None, str, str]]:
    return [(each.seq, each.code, each.verdict) for each in found.reasons]


def test_a_run_whose_recorded_decisions_are_the_same_may_go_on() -> None:
    def longer(run: RunView) -> Moves:
        cents = yield Call(look, order_id="o-1")
        yield WaitFor("go")
        yield Call(mail, to="a@b.example")
        yield Call(charge, cents=cents)

    trial = parked()
    found = judge(agent("2", longer), trial.journal)
    assert (found.verdict, found.reasons, found.first_divergence, found.as_of_seq) == ("compatible", [], None, 6)


def test_another_recorded_decision_needs_a_fork_and_is_named() -> None:
    def other(run: RunView) -> Moves:
        yield Call(look, order_id="o-2")
        yield WaitFor("stop")

    found = judge(agent("2", other), parked().journal)
    assert found.verdict == "fork needed" and found.first_divergence is not None
    assert (found.first_divergence.seq, found.first_divergence.kind) == (3, "arguments")
    assert told(found) == [(3, "arguments", "fork needed"), (6, "decision", "fork needed")]


def test_what_has_changed_of_settled_calls_is_told_and_stops_nothing() -> None:
    @tool(effect="keyed", name="look")
    def stricter(ctx: ToolContext, order_id: str, why: str) -> int: ...

    found = judge(agent("2", waits, (stricter, charge)), parked().journal)
    assert found.verdict == "compatible" and told(found) == [(3, "refused arguments", "compatible")]

    def unnamed(run: RunView) -> Moves:
        cents = yield Call("look", order_id="o-1")
        yield WaitFor("go")
        yield Call(charge, cents=cents)

    gone = judge(agent("2", unnamed, (charge,)), parked().journal)
    assert gone.verdict == "compatible" and told(gone) == [(3, "missing tool", "compatible")]


def test_a_call_in_doubt_has_to_be_reconciled_first() -> None:
    def mails(run: RunView) -> Moves:
        yield Call(mail, to="a@b.example")

    trial = parked(mails, mail=testing.lost())
    assert trial.status == "needs_reconciliation"
    found = judge(agent("2", mails), trial.journal)
    assert found.verdict == "refused" and (3, "in doubt", "refused") in told(found)


def approves(run: RunView) -> Moves:
    yield Call(refund, cents=9)


def test_an_unsettled_call_has_to_be_callable_as_it_is_recorded() -> None:
    trial = parked(approves)
    assert trial.status == "awaiting_approval"
    assert judge(agent("1", approves), trial.journal).reasons == []

    def unnamed(run: RunView) -> Moves:
        yield Call("refund", cents=9)

    assert told(judge(agent("2", unnamed, (look,)), trial.journal)) == [(3, "missing tool", "refused")]

    @tool(effect="keyed", approval=True, name="refund")
    def stricter(ctx: ToolContext, cents: str) -> str: ...

    refused = judge(agent("2", approves, (stricter,)), trial.journal)
    assert refused.verdict == "refused" and told(refused) == [(3, "refused arguments", "refused")]


def test_an_approval_that_was_asked_under_another_contract_is_asked_anew() -> None:
    @tool(effect="keyed", approval=True, name="refund")
    def other(ctx: ToolContext, cents: int, why: str = "") -> str: ...

    found = judge(agent("2", approves, (other,)), parked(approves).journal)
    assert (found.verdict, told(found)) == ("compatible", [(3, "approval void", "compatible")])


def test_a_call_that_waits_without_approval_does_not_slip_past_a_new_policy() -> None:
    def charges(run: RunView) -> Moves:
        yield Call(charge, cents=9)

    trial = testing.start(agent("1", charges), tools=FAKES | {"charge": TransientError("busy", retry_after=9_000)})
    trial.crash_at("after-outcome")
    assert trial.calls[0].attempts and not trial.calls[0].in_doubt

    @tool(effect="keyed", approval=True, name="charge")
    def approved(ctx: ToolContext, cents: int) -> str: ...

    found = judge(agent("2", charges, (approved,)), trial.journal)
    assert found.verdict == "refused" and (3, "approval needed", "refused") in told(found)


def test_a_run_that_is_over_or_of_another_agent_or_unreadable_is_refused() -> None:
    trial = parked()
    assert told(judge(agent("2", waits, name="another"), trial.journal)) == [(1, "agent", "refused")]
    unreadable = [*trial.journal, replace(trial.journal[-1], seq=7, kind="LATER", body={"critical": True})]
    assert told(judge(agent("2", waits), unreadable)) == [(7, "unreadable", "refused")]
    trial.signal("go")
    assert told(judge(agent("2", waits), trial.journal)) == [(11, "over", "refused")]


def test_a_wait_that_is_open_is_no_obstacle() -> None:
    def sleeps(run: RunView) -> Moves:
        yield [Sleep(60), WaitFor("go")]

    assert judge(agent("2", sleeps), parked(sleeps).journal).verdict == "compatible"


def test_a_model_with_another_prompt_goes_on_from_what_was_said() -> None:
    def ask(state: RunView) -> tuple[Any, dict[str, Any]]:
        return WaitFor("go"), {"tokens": 1}

    def never(state: RunView) -> Any:
        raise AssertionError("a judgement asked the model")

    trial = testing.start(Agent("talks", "1", tools=[look], decide=FunctionModel(ask))).rest()
    assert judge(Agent("talks", "2", decide=FunctionModel(never, model="newer")), trial.journal).verdict == "compatible"
