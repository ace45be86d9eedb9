"""What else agents of pydantic-ai have: toolsets made at run time, sub-agents, prefixes, models of arguments."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, TextPart
from pydantic_ai.capabilities import AbstractCapability, durable_operation
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import DynamicToolset, FunctionToolset

from tests.integrations.desks import ACTED, act, call, scripted
from tests.integrations.test_journaled_approvals import told, trial_of


class Payment(BaseModel):
    cents: int
    to: str = "ann"


def test_a_toolset_that_is_made_at_run_time_is_looked_up_once_a_request_and_journaled() -> None:
    made: list[int] = []

    def bank(ctx: RunContext[None]) -> FunctionToolset[None]:
        made.append(1)
        toolset: FunctionToolset[None] = FunctionToolset()

        @toolset.tool_plain
        def pay(cents: int) -> str:
            act("pay", cents=cents)
            return f"paid {cents}"

        return toolset

    model = scripted([call("pay", "c1", cents=5)], [TextPart("said")])
    agent = Agent(model, toolsets=[DynamicToolset(bank, id="bank")])
    trial = trial_of(agent, effects={"bank:pay": "keyed"}, approval={"bank:pay": True})
    assert trial.status == "awaiting_approval"
    trial.edit({"cents": 7}, "bank:pay").approve("bank:pay")
    assert trial.result == "said"
    assert told("c1") == ("success", "paid 7")
    assert [slot.tool for slot in trial.calls] == ["look_up", "bank:pay", "look_up"]


def test_an_agent_within_a_tool_is_part_of_the_call() -> None:
    inner = Agent(TestModel(custom_output_text="inner words"))
    agent = Agent(scripted([call("ask", "c1")], [TextPart("said")]))

    @agent.tool_plain
    async def ask() -> str:
        act("ask")
        return (await inner.run("hi")).output

    trial = trial_of(agent)
    assert trial.result == "said"
    assert told("c1") == ("success", "inner words")
    assert trial.story.count("PLAN") == 2


class Audit(AbstractCapability[None]):
    id = "audit"

    @durable_operation(name="note")
    async def note(self, ctx: RunContext[None], text: str) -> str:
        act("note", text=text)
        return text.upper()

    async def before_run(self, ctx: RunContext[None]) -> None:
        act("heard", text=await self.note(ctx, "begun"))


def test_what_a_capability_does_is_a_call_of_its_own() -> None:
    agent = Agent(scripted([call("pay", "c1")], [TextPart("said")]), capabilities=[Audit()])

    @agent.tool_plain(requires_approval=True)
    def pay() -> str:
        return "paid"

    trial = trial_of(agent, effects={"audit.note": "keyed"}).approve("pay")
    assert trial.result == "said"
    assert [(slot.tool, slot.effect, slot.args) for slot in trial.calls] == [
        ("audit.note", "keyed", {"text": "begun"}), ("pay", "unkeyed", {}),
    ]  # fmt: skip
    assert [tool for _, tool, _ in ACTED] == ["note", "heard", "heard"], "its hook runs again, what it did does not"


def test_a_prefix_changes_what_the_model_calls_and_not_what_people_see() -> None:
    toolset: FunctionToolset[None] = FunctionToolset(id="bank")

    @toolset.tool_plain
    def pay(cents: int) -> str:
        act("pay", cents=cents)
        return "paid"

    model = scripted([call("bank_pay", "c1", cents=5)], [TextPart("said")])
    trial = trial_of(Agent(model, toolsets=[toolset.prefixed("bank")]), approval={"pay": True}).approve("pay")
    assert trial.result == "said"
    assert trial.calls[0].args == {"cents": 5}


def test_a_tool_that_takes_one_model_of_arguments() -> None:
    agent = Agent(scripted([call("pay", "c1", cents=5)], [TextPart("said")]))

    @agent.tool_plain(requires_approval=True)
    def pay(payment: Payment) -> dict[str, Any]:
        act("pay", **payment.model_dump())
        return payment.model_dump()

    trial = trial_of(agent)
    assert trial.calls[0].args == {"cents": 5}
    trial.edit({"cents": 9, "to": "bob"}, "pay").approve("pay")
    assert told("c1") == ("success", {"cents": 9, "to": "bob"})
