"""Whole runs in memory: the real engine, the real clients, a scripted provider over HTTP."""

from typing import Any

import pytest
from pydantic import BaseModel

from demo.providers.turns import Call, call, think, turn
from journal.entries import Kind
from runs import testing
from runs.loops.exact import exact_of
from runs.sdk import Agent, Budget, ToolContext, tool
from runs.sdk.models import ModelLoop
from tests.loops.journals import PROTOCOLS
from tests.rig.providers import Providers


class Verdict(BaseModel):
    refunded: bool
    why: str


@tool(effect="read")
def lookup(ctx: ToolContext, order: str) -> Any:
    """Look up an order."""
    return {"order": order, "total": 4200}


@tool(effect="keyed", approval=lambda args: args["cents"] > 1_000)
def refund(ctx: ToolContext, order: str, cents: int) -> Any:
    """Pay back."""
    return {"refunded": cents}


@pytest.fixture(autouse=True)
def environment(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)


def desk(*models: str, **given: Any) -> Agent:
    bounds = {"budget": given.pop("budget")} if "budget" in given else {}
    first, *others = models
    loop = ModelLoop(first, prompt="You refund.", fallback=others, **given)
    return Agent("desk", "1", [lookup, refund], decide=loop, **bounds)


def run(agent: Agent, **given: Any) -> testing.Trial:
    real = {"lookup": testing.REAL, "refund": testing.REAL}
    return testing.run(agent, "Refund o-1", tools=real, model=testing.REAL, **given)


def kinds(trial: testing.Trial, kind: str) -> list[dict[str, Any]]:
    return [entry.body for entry in trial.journal if entry.kind == kind]


@pytest.mark.parametrize("model", PROTOCOLS)
def test_a_run_is_decided_by_a_model_to_its_end(providers: Providers, model: str) -> None:
    plan = call("update_plan", done=[], next=["look"], decided=[])
    providers.script(
        "m",
        [
            turn(think("Look first."), plan, call("lookup", order="o-1"), call("lookup", order="o-2")),
            turn(Call("refund", '{"order": "o-1"'), call("no_such_tool")),
            turn(call("refund", order="o-1", cents=500)),
            turn(call("final_result", refunded="maybe")),
            turn(call("final_result", refunded=True, why="broken")),
        ],
    )
    trial = run(desk(f"{model}:m", output=Verdict))
    assert trial.result == {"refunded": True, "why": "broken"}
    assert [slot.tool for slot in trial.calls] == ["lookup", "lookup", "refund"]
    assert trial.state.plan == [{"next": "look"}]
    assert trial.state.usage["requests"] == 5
    attempts = [entry for entry in trial.journal if entry.kind == Kind.ATTEMPT and entry.step is None]
    sent = [seen.digest for seen in providers.requests]
    assert [entry.body["digest"] for entry in attempts] == sent
    assert [exact_of(trial.agent.content, trial.journal, entry.seq).digest for entry in attempts] == sent


def test_what_a_person_denied_the_model_is_told_with_the_reason(providers: Providers) -> None:
    providers.script("m", [turn(call("refund", order="o-1", cents=5_000), call("lookup", order="o-1")), "All right."])
    trial = run(desk("anthropic:m"))
    assert trial.status == "awaiting_approval"
    assert len(providers.requests) == 1
    trial.deny(note="too much")
    assert trial.result == "All right."
    assert "A person refused this call. Reason: too much" in providers.requests[1].body
    assert providers.requests[1].body.index("too much") < providers.requests[1].body.index("4200")


def test_a_failure_goes_to_the_fallback_and_each_attempt_is_journaled(providers: Providers) -> None:
    providers.script("m", ["First."])
    providers.script("n", ["Second."])
    providers.fault("overloaded", model="m")
    trial = run(desk("anthropic:m", "openai:n"))
    assert trial.result == "Second."
    assert [body["model"] for body in kinds(trial, Kind.ATTEMPT)] == ["anthropic:m", "openai:n"]
    [error] = kinds(trial, Kind.ERROR)
    assert (error["code"], error["model"], error["status"]) == ("overloaded", "anthropic:m", 529)
    assert kinds(trial, Kind.PLAN)[0]["model"] == "n"


def test_a_model_that_is_gone_for_good_is_not_asked_in_later_turns_before_somebody_resumes(
    providers: Providers,
) -> None:
    providers.script("m", ["First."])
    providers.script("n", [turn(call("refund", order="o-1", cents=5_000)), "Second."])
    providers.fault("quota", model="m")
    trial = run(desk("openai:m", "anthropic:n"))
    trial.approve()
    assert trial.result == "Second."
    assert len(providers.asked("m")) == 1


def test_a_model_whose_key_this_worker_lacks_is_passed_over_for_the_fallback(providers: Providers) -> None:
    providers.script("n", ["Second."])
    agent = desk("anthropic:m", "openai:n", api_key={"anthropic": "$A_KEY_THAT_NOBODY_SET"})
    trial = run(agent)
    assert trial.result == "Second."
    [attempt] = kinds(trial, Kind.ATTEMPT)
    assert attempt["model"] == "openai:n"
    assert "A_KEY_THAT_NOBODY_SET" in attempt["passed_over"]["anthropic:m"]
    alone = run(desk("anthropic:m", api_key="$A_KEY_THAT_NOBODY_SET"))
    assert alone.status == "held" and "A_KEY_THAT_NOBODY_SET" in alone.reason


def test_the_texts_that_a_model_gives_for_numbers_are_numbers_to_the_predicate_and_the_approver(
    providers: Providers,
) -> None:
    providers.script("m", [turn(Call("refund", '{"order": "o-1", "cents": "5000"}')), "All right."])
    trial = run(desk("anthropic:m"))
    assert trial.status == "awaiting_approval"
    assert trial.calls[0].args == {"order": "o-1", "cents": 5000}


def test_a_refusal_goes_to_the_fallback_and_costs_what_it_cost(providers: Providers) -> None:
    providers.script("m", ["First."])
    providers.script("n", ["Second."])
    providers.fault("content_filter", model="m")
    trial = run(desk("openai-chat:m", "anthropic:n"))
    assert trial.result == "Second."
    assert [body["finish"] for body in kinds(trial, Kind.PLAN)] == ["content_filter", "stop"]
    assert trial.state.usage["requests"] == 2
    assert "First." not in providers.asked("n")[0].body


def test_a_model_that_is_not_answering_is_asked_again_after_a_time(providers: Providers) -> None:
    providers.script("m", ["Done."])
    providers.fault("rate_limit", model="m", times=2, retry_after=30)
    trial = run(desk("anthropic:m"))
    assert trial.result == "Done."
    assert [body["code"] for body in kinds(trial, Kind.ERROR)] == ["rate_limited"] * 2


def test_no_quota_waits_for_a_person(providers: Providers) -> None:
    providers.script("m", ["Done."])
    providers.fault("quota", model="m")
    trial = run(desk("openai:m"))
    assert trial.status == "held"
    assert "openai:m" in trial.reason
    trial.resume()
    assert trial.result == "Done."


def test_too_long_a_conversation_is_shown_shorter(providers: Providers) -> None:
    answers = [turn(call("lookup", order=f"o-{n}" * 200)) for n in range(6)]
    providers.script("m", [*answers, "Done."])
    providers.fault("context_length", model="m", turn=6)
    trial = run(desk("anthropic:m", compact_at=None))
    assert trial.result == "Done."
    assert [body["compaction"]["level"] for body in kinds(trial, Kind.PLAN) if "compaction" in body] == ["results"]
    assert "left out to save room" in providers.requests[-1].body


def test_a_message_that_came_in_between_is_heard_before_the_end(providers: Providers) -> None:
    providers.script("m", [turn(call("refund", order="o-1", cents=5_000)), "Paid.", "Also o-2? No."])
    trial = run(desk("anthropic:m"))
    trial.signal("message", "And o-2!")
    trial.approve()
    assert trial.result == "Paid."
    assert providers.requests[1].body.count("And o-2!") == 1


def test_a_budget_of_tokens_holds_it(providers: Providers) -> None:
    providers.script("m", [turn(call("lookup", order=f"o-{n}")) for n in range(9)])
    trial = run(desk("anthropic:m", budget=Budget(tokens=1_000)))
    assert trial.status == "held"
    assert "tokens" in trial.reason


def test_the_same_call_again_and_again_brakes_it(providers: Providers) -> None:
    providers.script("m", lambda asked: call("lookup", order="o-1"))
    trial = run(desk("anthropic:m", budget=Budget(identical_calls=3)))
    assert trial.status == "held"
    assert "same arguments" in trial.reason


def test_the_context_is_made_once(providers: Providers) -> None:
    made: list[Any] = []

    def context(view: Any) -> str:
        made.append(view.input)
        return f"Asked {len(made)} times."

    providers.script("m", [turn(call("lookup", order="o-1")), "Done."])
    trial = run(desk("anthropic:m", context=context))
    assert trial.result == "Done."
    assert made == ["Refund o-1"]
    assert kinds(trial, Kind.ATTEMPT)[0]["context"] == "Asked 1 times."
    assert all("Asked 1 times." in seen.body for seen in providers.requests)


def test_a_model_that_only_writes_its_plan_waits_for_a_person(providers: Providers) -> None:
    providers.script("m", [turn(call("update_plan", done=[], next=["look"], decided=[]))] * 5 + ["Done."])
    trial = run(desk("anthropic:m", attempts=4))
    assert trial.status == "held" and "5 times in a row" in trial.reason
    trial.resume()
    assert trial.result == "Done."


def test_a_fallback_without_a_key_leaves_the_first_model_its_turns(providers: Providers) -> None:
    providers.script("m", ["Done."])
    providers.fault("rate_limit", model="m", retry_after=30)
    keys = {"openai": "$A_KEY_THAT_NOBODY_SET"}
    trial = run(desk("anthropic:m", "openai:n", api_key=keys))
    assert trial.result == "Done."


@pytest.mark.parametrize("stream", [True, False])
def test_however_a_timeout_comes_out_it_is_told_alike(providers: Providers, stream: bool) -> None:
    providers.script("m", ["Done."])
    providers.fault("hold", model="m", times=1)
    trial = run(desk("anthropic:m", timeout=0.5, attempts=1, stream=stream))
    assert trial.status == "held"
    assert "anthropic:m: no answer within 0.5 s" in trial.reason


def test_a_context_that_raises_ends_its_run_and_names_the_line(providers: Providers) -> None:
    def broken(view: object) -> str:
        raise LookupError("no such customer")

    trial = run(desk("anthropic:m", context=broken))
    assert trial.status == "failed" and "no such customer" in trial.reason
    assert providers.requests == []
