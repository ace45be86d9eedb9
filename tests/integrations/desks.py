"""Agents as their authors wrote them: nothing in them knows of a journal, except that a test's ledger is kept."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, ModelResponse, ModelRetry, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from runs.calling import current_call

ACTED: list[tuple[str, str, dict[str, Any]]] = []  # key, tool, arguments
ASKED: list[list[Any]] = []  # the messages of each request


def act(tool: str, **args: Any) -> None:
    call = current_call(None)
    ACTED.append((call.key if call else "", tool, args))


class Report(BaseModel):
    refunded: bool
    why: str


def call(tool: str, id: str, /, **args: Any) -> ToolCallPart:
    return ToolCallPart(tool, args, id)


def scripted(*turns: list[Any]) -> FunctionModel:
    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        ASKED.append(messages)
        return ModelResponse(parts=turns[sum(isinstance(m, ModelResponse) for m in messages)])

    return FunctionModel(answer, model_name="scripted")


# A retry by the tool, a wrong argument and an unknown tool, three calls in a turn, an output that is refused.
TURNS = (
    [TextPart("Let me see."), call("lookup", "c1", order="1")],
    [call("lookup", "c2", order="o-1"), call("refund", "c3", order="o-1", cents="many"), call("nothing", "c4")],
    [call("lookup", "c5", order="o-2"), call("refund", "c6", order="o-1", cents=500), call("mail", "c7", to="ann")],
    [call("final_result", "c8", refunded=True, why="ok")],
    [call("final_result", "c9", refunded=True, why="because")],
)


def desk(model: Any, approval: bool = False) -> Agent[None, Report]:
    agent = Agent(model, output_type=Report, instructions="You refund orders.", retries=2)

    @agent.tool_plain
    async def lookup(order: str) -> dict[str, Any]:
        """What was ordered."""
        if not order.startswith("o-"):
            raise ModelRetry("orders look like o-1")
        act("lookup", order=order)
        return {"order": order, "cents": 500, "z": 1, "a": [1.5, None]}

    @agent.tool(requires_approval=approval)
    async def refund(ctx: RunContext[None], order: str, cents: int) -> str:
        act("refund", order=order, cents=cents)
        return f"refunded {cents}"

    @agent.tool_plain
    def mail(to: str) -> str:
        act("mail", to=to)
        return "sent"

    @agent.output_validator
    def short(report: Report) -> Report:
        if len(report.why) < 3:
            raise ModelRetry("say why")
        return report

    return agent
