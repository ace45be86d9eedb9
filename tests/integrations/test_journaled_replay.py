"""The journal of an agent of pydantic-ai, decided again: alike, otherwise, in words."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, RunContext, TextPart

from runs.integrations.pydantic_ai import journaled, messages_in
from runs.redeciding import redecide
from runs.run_view import RunView
from runs.testing import REAL, Trial
from tests.integrations.desks import ACTED, ASKED, TURNS, act, call, desk, scripted
from tests.integrations.test_journaled_approvals import told, trial_of

said = {"now": "be brief"}


def changing() -> Agent[None, str]:
    """Its instructions are made anew each time: a replay writes another request than the one that was answered."""
    agent = Agent(scripted([call("pay", "c1")], [TextPart("said")]))

    @agent.instructions
    def how() -> str:
        return said["now"]

    @agent.tool_plain(requires_approval=True)
    def pay() -> str:
        act("pay")
        return "paid"

    return agent


@pytest.fixture(autouse=True)
def brief() -> None:
    said["now"] = "be brief"


def test_other_instructions_diverge_before_anything_is_done() -> None:
    trial = trial_of(changing())
    assert trial.status == "awaiting_approval"
    said["now"] = "be long"
    trial.approve("pay")
    assert trial.status == "held"
    assert "diverged: entry 3: the code decides otherwise" in trial.reason
    assert not ACTED


def test_it_goes_on_once_the_code_is_as_it_was() -> None:
    trial = trial_of(changing())
    said["now"] = "be long"
    trial.approve("pay")
    said["now"] = "be brief"
    assert trial.resume().result == "said"
    assert len(ACTED) == 1


def test_a_replay_finds_nothing_otherwise() -> None:
    trial = trial_of(desk(scripted(*TURNS)))
    ASKED.clear()
    found = redecide(trial.agent, trial.journal)
    assert not found.diverged, found.divergences
    assert found.compared == found.of > 0
    assert not ASKED, "no model is asked"


def test_a_replay_tells_where_a_request_would_be_another() -> None:
    trial = trial_of(changing()).approve("pay")
    said["now"] = "be long"
    found = redecide(trial.agent, trial.journal)
    assert found.first is not None
    assert found.first.seq == 3
    assert "request" in str(found.first.recorded)


def test_a_replay_tells_where_a_call_is_missing() -> None:
    trial = trial_of(desk(scripted(*TURNS)))
    other: Agent[None, str] = Agent(scripted(*TURNS), instructions="You refund orders.", retries=2)
    other.tool_plain(lambda: "", name="mail")
    found = redecide(journaled(other, name="desk", version="2"), trial.journal)
    assert found.diverged


class Money(BaseModel):
    cents: int


class TestWhatGoesInAndOut:
    def test_deps_are_made_at_each_replay(self) -> None:
        made: list[Any] = []
        agent = Agent(scripted([call("pay", "c1")], [TextPart("said")]), deps_type=dict)

        @agent.tool(requires_approval=True)
        def pay(ctx: RunContext[dict[str, Any]]) -> str:
            return str(ctx.deps["customer"])

        def deps(run: RunView) -> dict[str, Any]:
            made.append(run.id)
            return {"customer": run.input["customer"]}

        desk = journaled(agent, name="desk", version="1", deps=deps)
        trial = Trial(desk, {"prompt": "go", "customer": "ann"}, tools=REAL).rest().approve("pay")
        assert trial.result == "said"
        assert told("c1") == ("success", "ann")
        assert len(made) == 2 and len(set(made)) == 1

    def test_a_message_history_goes_in(self) -> None:
        before = [ModelRequest.user_text_prompt("I am Ann"), ModelResponse(parts=[TextPart("Hello, Ann")])]
        history = ModelMessagesTypeAdapter.dump_python(before, mode="json")
        ASKED.clear()
        agent = Agent(scripted([], [TextPart("said")]))
        desk = journaled(agent, name="desk", version="1")
        trial = Trial(desk, {"prompt": "Who am I?", "message_history": history}).rest()
        assert trial.result == "said"
        assert [message.parts[0].content for message in ASKED[0]] == ["I am Ann", "Hello, Ann", "Who am I?"]

    def test_the_messages_come_out(self) -> None:
        trial = trial_of(desk(scripted(*TURNS)))
        messages = messages_in(trial.agent, trial.journal)
        assert [type(message) for message in messages[: len(ASKED[-1])]] == [type(message) for message in ASKED[-1]]
        assert [type(message) for message in messages].count(ModelResponse) == 5

    def test_an_output_of_a_type_is_json(self) -> None:
        agent = Agent(scripted([call("final_result", "c1", cents=5)]), output_type=Money)
        assert trial_of(agent).result == {"cents": 5}

    def test_what_the_agents_own_code_raises_ends_the_run(self) -> None:
        wrong = [[call("final_result", f"c{number}", cents="many")] for number in range(5)]
        agent = Agent(scripted(*wrong), output_type=Money, retries=1)
        trial = trial_of(agent)
        assert trial.status == "failed"
        assert "output retries" in trial.reason


class TestItsRelease:
    def content(self, **given: Any) -> Any:
        return journaled(desk(scripted(*TURNS)), name="desk", version="1", **given).content

    def test_says_what_the_model_is_told(self) -> None:
        content = self.content(effects={"lookup": "read"})
        assert content["driver"] == "model"
        assert content["model"]["prompt"] == "You refund orders."
        assert content["model"]["name"] == "function:scripted"
        assert content["model"]["output"]["properties"].keys() == {"refunded", "why"}
        lookup = next(tool for tool in content["tools"] if tool["name"] == "lookup")
        assert lookup["effect"] == "read" and lookup["doc"] == "What was ordered."
        assert lookup["parameters"]["required"] == ["order"]

    def test_is_the_same_each_time(self) -> None:
        assert self.content() == self.content()

    def test_counts_the_module_that_declares_it_as_its_code(self) -> None:
        assert len(journaled(desk(scripted(*TURNS)), name="desk", version="1").code_digest) == 64
