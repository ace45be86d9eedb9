"""Agents of pydantic-ai whose models and tools are asked over HTTP: `HOLDFAST_AGENTS=tests.integrations.shop`.

The models are named by text, so that each run finds its provider's address in the environment.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext

from runs.integrations.pydantic_ai import journaled
from runs.sdk import Absent, Found, Retry, ToolContext, Undecided, current_call
from tests.rig import wire

SETTINGS: dict[str, Any] = {"timeout": 10, "max_in_flight": 0.3, "retry": Retry(attempts=5, backoff=0.05)}


class Report(BaseModel):
    refunded: bool
    why: str


def find_refund(ctx: ToolContext, order: str, cents: int) -> Found | Absent | Undecided:
    """What the tool would have returned."""
    found = wire.find_by_key(ctx)
    return Found(f"refunded {cents}") if isinstance(found, Found) else found


def desk(model: str, approval: bool = False) -> Agent[None, Report]:
    agent = Agent(
        model, output_type=Report, instructions="You refund orders.", retries=2, defer_model_check=True,
        model_settings={"max_tokens": 900},
    )  # fmt: skip

    @agent.tool_plain
    async def lookup(order: str) -> Any:
        """What was ordered."""
        if not order.startswith("o-"):
            raise ModelRetry("orders look like o-1")
        return wire.send("GET", f"/orders/{order}", **{"X-Reference": current_call().key})

    @agent.tool(requires_approval=approval)
    async def refund(ctx: RunContext[None], order: str, cents: int) -> str:
        wire.act(current_call(), "refund", order_id=order, amount_cents=cents)
        return f"refunded {cents}"

    @agent.tool_plain
    def mail(to: str) -> str:
        wire.act_unkeyed(current_call(), "mail", to=to, subject="Your refund", body="")
        return "sent"

    @agent.output_validator
    def short(report: Report) -> Report:
        if len(report.why) < 3:
            raise ModelRetry("say why")
        return report

    return agent


def journaled_desk(name: str, model: str, approval: bool = False, stream: bool = True) -> Any:
    return journaled(
        desk(model, approval), name=name, version="1", stream=stream,
        effects={"lookup": "read", "refund": "keyed"},
        probes={"refund": find_refund},
        tools={"lookup": SETTINGS, "refund": SETTINGS, "mail": SETTINGS},
    )  # fmt: skip


anthropic = journaled_desk("anthropic", "anthropic:desk")
anthropic_plain = journaled_desk("anthropic-plain", "anthropic:desk", stream=False)
gated = journaled_desk("gated", "anthropic:desk", approval=True)
chat = journaled_desk("chat", "openai-chat:desk")
responses = journaled_desk("responses", "openai-responses:desk")
