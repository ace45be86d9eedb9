"""A model loop in memory: its model answers what the test says, all else is the real loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from runs import testing
from runs.sdk import Agent, Budget, Finish, RunView, ToolContext, tool
from runs.sdk.models import FunctionModel, ModelLoop
from runs.testing import answer, calls, fails, says
from tests.rig.ledger import ROOT

SNAPSHOT = "anthropic:claude-haiku-4-5-20251001"


@tool(effect="read")
def look(ctx: ToolContext, order_id: str) -> dict[str, Any]:
    """The order."""
    raise AssertionError("a test of an agent touched the world")


@tool(effect="keyed", approval=lambda args: args["cents"] > 5_000)
def refund(ctx: ToolContext, order_id: str, cents: int) -> dict[str, Any]:
    """Pay money back."""
    raise AssertionError("a test of an agent touched the world")


class Verdict(BaseModel):
    refunded: bool


FAKES: dict[str, Any] = {"look": {"cents": 700}, "refund": {"id": "r-1"}}
LOOK = calls(look, order_id="o-1")
PAY = calls("refund", order_id="o-1", cents=700)


def desk(budget: Budget | None = None, **given: Any) -> Agent:
    loop = ModelLoop(**{"model": SNAPSHOT, "prompt": "You refund orders."} | given)
    return Agent("desk", "1", [look, refund], loop, budget=budget)


def run(*answers: Any, agent: Agent | None = None, **given: Any) -> testing.Trial:
    return testing.run(agent or desk(), "Refund o-1.", tools=FAKES, model=list(answers), **given)


def told(trial: testing.Trial) -> list[tuple[str, str, str]]:
    return [(turn.by, turn.content, turn.outcome) for turn in trial.conversation if turn.by != "model"]


def test_it_calls_and_says() -> None:
    trial = run(LOOK, [says("I refund it."), PAY], "Done.")
    assert trial.result == "Done."
    trial.assert_calls([("look", {"order_id": "o-1"}), ("refund", {"cents": 700})])
    trial.assert_once(refund)
    said = [("person", "Refund o-1."), ("tool", '{"cents": 700}'), ("tool", '{"id": "r-1"}')]
    assert told(trial) == [(by, content, "success") for by, content in said]
    assert trial.state.tokens == 60 and trial.agent.release_id == desk().release_id


def test_no_crash_anywhere_asks_again_for_what_was_said() -> None:
    report = testing.crash_everywhere(desk(), "Refund o-1.", tools=FAKES, model=[LOOK, [PAY, LOOK], "Done."])
    assert {"before-model", "after-model"} <= set(report.points)


def test_what_cannot_be_made_goes_back_to_the_model() -> None:
    trial = run(calls(refund, order_id="o-1", cents="much"), calls("pay"), calls(look, "{no json"), "I gave up.",
                agent=desk(retries=3))  # fmt: skip
    assert trial.result == "I gave up." and trial.calls == []
    faults = [content for by, content, outcome in told(trial) if outcome == "retried"]
    assert "cents" in faults[0] and "There is no tool 'pay'" in faults[1] and "not valid JSON" in faults[2]
    held = run(*[calls("pay")] * 3, agent=desk(retries=1))
    assert held.status == "held" and "2 times in a row" in held.reason


def test_a_person_decides_and_the_model_hears_why() -> None:
    trial = run(calls(refund, order_id="o-1", cents=9_000), "I may not.")
    assert trial.status == "awaiting_approval"
    assert trial.deny(note="too much").result == "I may not."
    assert told(trial)[-1] == ("tool", "A person refused this call. Reason: too much", "denied")


def test_a_message_is_read_before_the_run_ends() -> None:
    trial = run(calls(refund, order_id="o-1", cents=9_000), "Noted.")
    trial.signal("message", "Hurry!")
    assert trial.deny().result == "Noted." and ("person", "Hurry!", "success") in told(trial)


def test_failed_requests_are_waited_out_and_others_asked() -> None:
    trial = run(fails("overloaded", retry_after=30), "Done.")
    assert trial.result == "Done." and (trial.now - trial.journal[0].recorded_at).total_seconds() > 30
    other = run(fails("server_error"), "Done.", agent=desk(fallback=("openai:gpt-5.2-2026-01-01",)))
    asked = [entry.body["model"] for entry in other.journal if entry.kind == "ATTEMPT"]
    assert other.result == "Done." and asked == [SNAPSHOT, "openai:gpt-5.2-2026-01-01"]
    assert run(fails("authentication", "no such key")).status == "held"


def test_a_result_of_a_type() -> None:
    agent = desk(output=Verdict)
    trial = run(says({"refunded": "perhaps"}), says({"refunded": True}), agent=agent)
    assert trial.result == {"refunded": True}
    numbers = desk(output=list[int])
    assert run(says([1, 2]), agent=numbers).result == [1, 2]


def test_what_it_costs_is_braked() -> None:
    trial = run(answer(LOOK, cost="0.40"), answer(LOOK, cost="0.40"), "Done.", agent=desk(Budget(cost=0.5)))
    assert trial.reason == "brake: its budget of 0.5 cost is spent" and len(trial.calls) == 1
    assert trial.resume().result == "Done."
    unknown = run(answer(LOOK, cost=None), "Done.", agent=desk(Budget(cost=0.5)))
    assert "what a request to the model cost is not known" in unknown.reason
    again = run(*[LOOK] * 9, agent=desk(Budget(identical_calls=3)))
    assert again.reason == "brake: it called look with the same arguments 4 times in a row"


def test_a_cut_answer_and_a_refusal() -> None:
    trial = run(answer("I was about to", finish="length"), "Short.")
    assert trial.result == "Short." and told(trial)[-1][1].startswith("Your answer was cut off")
    assert run(answer(finish="content_filter")).status == "held"


def test_a_function_answers_what_it_sees() -> None:
    def model(state: RunView) -> Any:
        return LOOK if state.last is None else f"It comes to {state.last.result['cents']}."

    assert testing.run(desk(), "o-1", tools=FAKES, model=model).result == "It comes to 700."


def test_nothing_is_asked_that_the_test_does_not_answer() -> None:
    with pytest.raises(AssertionError, match=r"for which the test gives no answers: model=\[…\]"):
        testing.run(desk(), "o-1", tools=FAKES)
    with pytest.raises(AssertionError, match=r"more than the test gives answers \(1 answer\).*\{\"cents\": 700\}"):
        run(LOOK)
    with pytest.raises(TypeError, match="answers in order"):
        testing.run(desk(), "o-1", tools=FAKES, model="Done.")
    with pytest.raises(TypeError, match=r"testing\.calls"):
        run(Finish())
    plain = Agent("asks", "1", [], FunctionModel(lambda state: (Finish(), {})))
    with pytest.raises(ValueError, match="has no ModelLoop"):
        testing.run(plain, model=["Done."])


def test_its_journal_is_golden_and_is_decided_again(tmp_path: Path) -> None:
    for _ in range(2):
        testing.golden(run(LOOK, PAY, "Done."), tmp_path / "desk.jsonl")
    assert testing.replay(desk(), tmp_path / "desk.jsonl") is None
    without = Agent("desk", "2", [look], desk().decide)
    assert "refund" in (testing.replay(without, tmp_path / "desk.jsonl") or "")


def test_what_it_writes_is_what_the_wire_side_reads() -> None:
    from runs.loops.messages import messages_of

    trial = run(LOOK, [says("I refund it."), PAY], "Done.", agent=desk(output=str))
    kinds = [[part.part_kind for part in message.parts] for message in messages_of(trial.agent.content, trial.state)]
    assert kinds[:5] == [["user-prompt"], ["tool-call"], ["tool-return"], ["text", "tool-call"], ["tool-return"]]


@pytest.mark.slow
def test_no_providers_client_is_loaded() -> None:
    code = (
        "import sys; from runs import testing; from tests.testing.test_models import desk, FAKES, LOOK;"
        "assert testing.run(desk(), 'x', tools=FAKES, model=[LOOK, 'Done.']).result == 'Done.';"
        "print({name.partition('.')[0] for name in sys.modules} & {'pydantic_ai', 'openai', 'anthropic', 'django.db'})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
