"""Calls of an agent of pydantic-ai that somebody has to approve, and calls that are done elsewhere."""

from typing import Any

from pydantic_ai import Agent, ApprovalRequired, CallDeferred, RunContext, TextPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from runs.integrations.pydantic_ai import journaled
from runs.policies import Policy
from runs.testing import REAL, Trial
from tests.integrations.desks import ACTED, ASKED, TURNS, act, call, desk, scripted


def trial_of(agent: Any, **given: Any) -> Trial:
    ACTED.clear()
    ASKED.clear()
    return Trial(journaled(agent, name="desk", version="1", **given), "Refund o-1", tools=REAL).rest()


def told(id: str) -> tuple[str, Any]:
    """What the model was told of a call: outcome and content."""
    parts = [part for message in ASKED[-1] for part in message.parts]
    part = next(p for p in parts if getattr(p, "tool_call_id", None) == id and p.part_kind == "tool-return")
    return part.outcome, part.content


def keyed() -> list[str]:
    return [tool for _, tool, _ in ACTED]


class TestRequiredByTheTool:
    def trial(self, **given: Any) -> Trial:
        return trial_of(desk(scripted(*TURNS), approval=True), effects={"lookup": "read"}, **given)

    def test_its_siblings_are_done_while_it_waits(self) -> None:
        trial = self.trial()
        assert trial.status == "awaiting_approval"
        assert keyed() == ["lookup", "lookup", "mail"]

    def test_a_grant_sends_it(self) -> None:
        trial = self.trial().approve("refund")
        assert trial.result == {"refunded": True, "why": "because"}
        assert keyed() == ["lookup", "lookup", "mail", "refund"]
        assert told("c6") == ("success", "refunded 500")

    def test_the_model_is_told_why_it_was_denied(self) -> None:
        trial = self.trial().deny("refund", "too much")
        assert trial.status == "done"
        assert told("c6") == ("denied", "too much")
        assert "refund" not in keyed()

    def test_a_persons_arguments_are_sent(self) -> None:
        self.trial().edit({"order": "o-1", "cents": 100}, "refund").approve("refund")
        assert told("c6") == ("success", "refunded 100")
        assert ACTED[-1][2] == {"order": "o-1", "cents": 100}

    def test_a_policy_of_ours_stands_for_it(self) -> None:
        trial = self.trial(approval={"refund": Policy(quorum=2)}).approve("refund", by="ada")
        assert trial.status == "awaiting_approval"
        assert trial.approve("refund", by="max").status == "done"


class TestAskedForWhileItRuns:
    def agent(self) -> Agent[None, str]:
        agent = Agent(scripted([call("pay", "c1", cents=9_000), call("note", "c2", id="n")], [TextPart("paid")]))

        @agent.tool
        def pay(ctx: RunContext[None], cents: int) -> str:
            if cents > 100 and not ctx.tool_call_approved:
                raise ApprovalRequired(metadata={"why": "it is a lot"})
            act("pay", cents=cents)
            return f"paid {cents}"

        @agent.tool_plain
        def note(id: str) -> str:
            act("note", id=id)
            return "noted"

        return agent

    def test_it_comes_to_the_inbox_under_its_own_key(self) -> None:
        trial = trial_of(self.agent())
        assert trial.status == "awaiting_approval"
        assert "it is a lot" in trial.reason
        trial.approve("pay")
        assert trial.result == "paid"
        assert [key for key, tool, _ in ACTED if tool == "pay"] == [trial.calls[0].key]
        assert [slot.tool for slot in trial.calls] == ["pay", "note"]

    def test_the_model_is_told_why_it_was_denied(self) -> None:
        trial_of(self.agent()).deny("pay", "no money")
        assert told("c1") == ("denied", "no money")

    def test_a_persons_arguments_are_sent(self) -> None:
        trial_of(self.agent()).edit({"cents": 50}, "pay").approve("pay")
        assert told("c1") == ("success", "paid 50")

    def test_its_siblings_are_done_while_it_waits(self) -> None:
        assert trial_of(self.agent()).approve("pay").status == "done"
        assert keyed() == ["note", "pay"]


class TestAskedForByAToolset:
    def agent(self) -> Agent[None, str]:
        toolset = FunctionToolset(id="bank")

        @toolset.tool_plain
        def pay(cents: int) -> str:
            act("pay", cents=cents)
            return f"paid {cents}"

        careful = toolset.approval_required(lambda ctx, tool, args: args["cents"] > 100)
        return Agent(scripted([call("pay", "c1", cents=9_000)], [TextPart("paid")]), toolsets=[careful])

    def test_it_comes_to_the_inbox(self) -> None:
        trial = trial_of(self.agent())
        assert trial.status == "awaiting_approval"
        assert trial.approve("pay").result == "paid"
        assert keyed() == ["pay"]

    def test_the_model_is_told_why_it_was_denied(self) -> None:
        trial_of(self.agent()).deny("pay", "no money")
        assert told("c1") == ("failed", "no money")


class TestDoneElsewhere:
    def test_an_external_tool_waits_for_a_signal_with_the_calls_id(self) -> None:
        browser = ToolDefinition(name="open_page", parameters_json_schema={"type": "object", "properties": {}})
        model = scripted([call("open_page", "c1")], [TextPart("seen")])
        trial = trial_of(Agent(model, toolsets=[ExternalToolset([browser], id="browser")]))
        assert trial.status == "waiting"
        assert "c1" in trial.reason
        trial.signal("c1", {"title": "Hello"})
        assert trial.result == "seen"
        assert told("c1") == ("success", {"title": "Hello"})

    def test_a_tool_that_defers_its_call_is_made_once(self) -> None:
        agent = Agent(scripted([call("job", "c1")], [TextPart("through")]))

        @agent.tool_plain
        def job() -> str:
            act("job")
            raise CallDeferred

        trial = trial_of(agent)
        assert trial.status == "waiting"
        trial.signal("c1", "finished")
        assert trial.result == "through"
        assert told("c1") == ("success", "finished")
        assert keyed() == ["job"]
