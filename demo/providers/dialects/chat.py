"""OpenAI chat completions."""

from collections.abc import Mapping
from typing import Any

from demo.providers.asked import Conversation, Item, named, plain
from demo.providers.dialects import strict
from demo.providers.dialects.dialect import Dialect, Event, Reply, halves, words
from demo.providers.dialects.openai_refusals import refusal
from demo.providers.turns import spoken

FINISH = {"refusal": "stop"}  # a refusal is a field of the message, not a reason to stop


def read(body: Mapping[str, Any]) -> Conversation:
    history = list(body.get("messages") or [])
    mine = [place for place, message in enumerate(history) if message.get("role") == "assistant"]
    items: list[Item] = []
    for message in history:
        items += _items(message)
    system = [plain(message.get("content")) for message in history if message.get("role") in ("system", "developer")]
    tools = [tool["function"]["name"] for tool in body.get("tools") or [] if "function" in tool]
    return Conversation("\n".join(system), named(items), tuple(tools), len(mine), history, mine[-1] if mine else 0)


def _items(message: Mapping[str, Any]) -> list[Item]:
    text = plain(message.get("content"))
    match message.get("role"):
        case "user":
            return [Item("user", text)]
        case "tool":
            return [Item("result", text, message.get("tool_call_id", ""))]
        case "assistant":
            calls = message.get("tool_calls") or []
            asked = [Item("call", c["function"]["arguments"], c.get("id", ""), c["function"]["name"]) for c in calls]
            return [Item("assistant", text), *asked]
    return []


def whole(reply: Reply) -> Mapping[str, Any]:
    text, refused = spoken(reply.turn.blocks), reply.turn.finish == "refusal"
    calls = _calls(reply)
    message = {
        "role": "assistant", "content": None if refused else text or None, "refusal": text if refused else None,
        "annotations": [], **({"tool_calls": calls} if calls else {}),
    }  # fmt: skip
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def events(reply: Reply) -> list[Event]:
    field = "refusal" if reply.turn.finish == "refusal" else "content"
    deltas: list[Mapping[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{field: word} for word in words(spoken(reply.turn.blocks))]
    for place, call in enumerate(_calls(reply)):
        function = call["function"]
        deltas.append({"tool_calls": [{"index": place, **call, "function": {**function, "arguments": ""}}]})
        for piece in halves(function["arguments"]):
            deltas.append({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    out = [_chunk(reply, delta, None) for delta in deltas]
    out.append(_chunk(reply, {}, _finish(reply)))
    if (reply.options.get("stream_options") or {}).get("include_usage"):
        out.append((None, {**_head(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)}))
    return [*out, (None, "[DONE]")]


def _chunk(reply: Reply, delta: Mapping[str, Any], finish: str | None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return None, {**_head(reply, "chat.completion.chunk"), "choices": [choice], "usage": None}


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    head = {"id": reply.id("chatcmpl"), "object": kind, "created": reply.created, "model": reply.model}
    return {**head, "service_tier": "default", "system_fingerprint": None}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            **reply.call_id("id", "call", call, place),
            "type": "function",
            "function": {"name": call.tool, "arguments": call.arguments},
        }
        for place, call in enumerate(reply.turn.calls)
    ]


def _finish(reply: Reply) -> str:
    return FINISH.get(reply.turn.finish, reply.turn.finish)


def _usage(reply: Reply) -> Mapping[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }


BROKEN = {"message": "The model is overloaded.", "type": "server_error", "param": None, "code": "server_is_overloaded"}
DIALECT = Dialect("chat", "x-request-id", read, whole, events, refusal, (None, {"error": BROKEN}), strict.of_chat)
