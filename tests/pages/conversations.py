"""Conversations with a model as the engine writes them, without one."""

from __future__ import annotations

from typing import Any

from journal.entries import Kind
from runs.loops.declared import ModelLoop
from runs.models import Release
from tests.pages.journals import Story

MODEL = "anthropic:claude-haiku-4-5-20251001"
FALLBACK = "openai:gpt-5.2-2026-06-01"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000100000001008020000009091683600000017494441542818636460f8cf40126022"
    "4df9a8866150c3000066890110a8b1f0460000000049454e44ae426082"
)
PROMPT = "You help customers of a shop.\nNever refund twice."


def loop_release(**more: Any) -> Release:
    content = {
        "agent": "support", "version": "3", "driver": "model",
        "model": ModelLoop(MODEL, PROMPT, settings={"max_tokens": 2048}, fallback=(FALLBACK,)).content,
        "tools": [
            {"name": "lookup_order", "effect": "read", "doc": "Finds an order.", "probe": False, "parameters": {
                "type": "object", "properties": {"order": {"type": "string", "description": "Its number"}},
                "required": ["order"]}},
            {"name": "refund", "effect": "keyed", "doc": "Pays money back.", "probe": True, "approval": True,
             "parameters": {"type": "object", "properties": {"amount_cents": {"type": "integer"}}}},
        ],
    }  # fmt: skip
    return Release.objects.get_or_create(id="51f3" * 16, agent="support", version="3", content=content | more)[0]


class Conversation(Story):
    """A story in which a model is asked: each verb appends what the engine would."""

    @property
    def pin(self) -> Release:
        return loop_release()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked = 0
        self.failures = 0

    def asks(self, model: str = MODEL, **more: Any) -> int:
        """The seq of the ATTEMPT."""
        body = {"attempt": self.failures + 1, "source": "model", "model": model, "digest": "d1" * 32, "size": 4_096,
                "client": "pydantic-ai-slim 2.68.0, anthropic 2.14.0"}  # fmt: skip
        self.asked = self.write(Kind.ATTEMPT, body | more)
        return self.asked

    def fails(self, says: str, **more: Any) -> int:
        self.failures += 1
        return self.write(Kind.ERROR, {"error": says, "due": 4_000_000_000.0, "model": MODEL} | more)

    def answers(self, *parts: dict[str, Any], cost: str | None = "0.0123", **more: Any) -> int:
        """The seq of the PLAN; asked for first, if it was not."""
        if not self.asked:
            self.asks()
        usage: dict[str, Any] = {"requests": 1, "input_tokens": 1_234, "output_tokens": 210, "cache_read_tokens": 900}
        usage |= {"cost": float(cost)} if cost is not None else {}
        calls = [one for one in parts if one["part_kind"] == "tool-call"]
        body = {
            "seen": self.asked, "asked": self.asked, "usage": usage, "model": MODEL.partition(":")[2],
            "moves": [{"call": c["tool_name"], "args": c["args"], "id": c["tool_call_id"]} for c in calls],
            "provider": "anthropic", "finish": "stop", "cost": cost, "prices": "genai-prices 0.2.3", "latency": 2.1,
            "request_id": "req_011", "response": {"parts": list(parts), "kind": "response"},
        }  # fmt: skip
        self.asked, self.failures = 0, 0
        return self.write(Kind.PLAN, body | more, actor="model")


def text(content: str) -> dict[str, Any]:
    return {"content": content, "part_kind": "text"}


def thinking(content: str) -> dict[str, Any]:
    return {"content": content, "signature": "s1g", "part_kind": "thinking"}


def called(tool: str, number: str = "toolu_01", **args: Any) -> dict[str, Any]:
    return {"tool_name": tool, "args": args, "tool_call_id": number, "part_kind": "tool-call"}


def support() -> Conversation:
    """A whole one: a look-up, refused arguments, a model that is overloaded, a rejected and an approved refund."""
    story = Conversation(input="Where is my order o-1? I want my money back.")
    story.answers(thinking("The customer names **o-1**."), text("Let me look."), called("lookup_order", order="o-1"))
    story.call("lookup_order", order="o-1")
    story.result({"order": "o-1", "total_cents": 24_000, "state": "lost"})
    reply = {"id": "toolu_02", "tool": "refund", "outcome": "retried", "cause": "arguments", "attempt": 1,
             "content": "amount_cents: Input should be a valid integer"}  # fmt: skip
    story.answers(called("refund", "toolu_02", amount_cents="all of it"), moves=[], replies=[reply])
    story.asks()
    story.fails("the provider is overloaded", code="overloaded", status=529, request_id="req_012")
    story.asks(FALLBACK)
    story.answers(
        text('I ask for the refund:\n\n```json\n{"amount_cents": 24000}\n```\n'), called("refund", "toolu_03")
    )
    story.call("refund", gate="approval", order="o-1", amount_cents=24_000)
    story.write(Kind.APPROVAL, {"verdict": "denied", "digest": "x", "note": "too much"}, step=story.step, actor="ada")
    story.result(None, "denied", error="too much, offer half")
    story.write(Kind.SIGNAL, {"name": "message", "payload": "Half is fine <b>too</b>"}, actor="olga")
    lost = {"seq": story.asks(), "input_tokens": 4_000, "output_tokens": 2_048, "cost": "0.0421"}
    story.asks(lost=lost)
    story.write(Kind.PLAN, {"seen": story.last, "compaction": {"before": 3, "level": "results", "left_out": 12}})
    story.asks()
    return story
