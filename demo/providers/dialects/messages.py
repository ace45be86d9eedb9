"""Anthropic messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demo.providers.asked import Conversation, Item, named, plain
from demo.providers.dialects import strict
from demo.providers.dialects.dialect import Dialect, Event, Reply, halves, words
from demo.providers.turns import Block, Call, Search, Text, Thinking, arguments_or_text

FINISH = {
    "stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal",
    "refusal": "refusal",
}  # fmt: skip
# kind: status, type, message
SAID = {
    "rate_limit": (429, "rate_limit_error", "This request would exceed your rate limit."),
    "server_error": (500, "api_error", "Internal server error"),
    "unavailable": (503, "api_error", "Service unavailable"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "quota": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "not_found": (404, "not_found_error", "model: {model}"),
    "context_length": (400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
    "bad_request": (400, "invalid_request_error", "The request was rejected."),
}


def read(body: Mapping[str, Any]) -> Conversation:
    history = list(body.get("messages") or [])
    mine = [place for place, message in enumerate(history) if message.get("role") == "assistant"]
    items: list[Item] = []
    for message in history:
        items += _items(message)
    tools = [tool["name"] for tool in body.get("tools") or [] if "name" in tool]
    return Conversation(
        plain(body.get("system")), named(items), tuple(tools), len(mine), history, mine[-1] if mine else 0
    )


def _items(message: Mapping[str, Any]) -> list[Item]:
    content = message.get("content") or []
    items: list[Item] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match part.get("type"):
            case "text":
                items.append(Item("assistant" if message["role"] == "assistant" else "user", part["text"]))
            case "tool_use":
                items.append(Item("call", _json(part.get("input")), part.get("id", ""), part.get("name", "")))
            case "tool_result":
                text, error = plain(part.get("content")), bool(part.get("is_error"))
                items.append(Item("result", text, part.get("tool_use_id", ""), error=error))
    return items


def whole(reply: Reply) -> Mapping[str, Any]:
    content = [part.whole for part in _parts(reply)]
    return {**_head(reply), "content": content, "stop_reason": FINISH[reply.turn.finish], "usage": _usage(reply)}


def events(reply: Reply) -> list[Event]:
    begun = {**_head(reply), "content": [], "stop_reason": None, "usage": {**_usage(reply), "output_tokens": 1}}
    out: list[Mapping[str, Any]] = [{"type": "message_start", "message": begun}]
    for place, part in enumerate(_parts(reply)):
        out.append({"type": "content_block_start", "index": place, "content_block": {**part.whole, **part.empty}})
        if place == 0:
            out.append({"type": "ping"})
        out += [{"type": "content_block_delta", "index": place, "delta": delta} for delta in part.deltas]
        out.append({"type": "content_block_stop", "index": place})
    ended = {"stop_reason": FINISH[reply.turn.finish], "stop_sequence": None}
    out += [{"type": "message_delta", "delta": ended, "usage": _usage(reply)}, {"type": "message_stop"}]
    return [(str(event["type"]), event) for event in out]


def refusal(kind: str, model: str) -> tuple[int, Mapping[str, Any]]:
    status, category, message = SAID["rate_limit" if kind == "rate_limit_date" else kind]
    return status, {"type": "error", "error": {"type": category, "message": message.format(model=model)}}


def _head(reply: Reply) -> dict[str, Any]:
    head = {"id": reply.id("msg"), "type": "message", "role": "assistant", "model": reply.model}
    return {**head, "stop_sequence": None}


@dataclass(frozen=True, slots=True)
class _Part:
    """A content block; `empty`: the fields with which its stream begins, `deltas`: what makes it whole."""

    whole: Mapping[str, Any]
    empty: Mapping[str, Any]
    deltas: list[Mapping[str, Any]]


def _parts(reply: Reply) -> list[_Part]:
    return [part for place, block in enumerate(reply.turn.blocks) for part in _parts_of(reply, place, block)]


def _parts_of(reply: Reply, place: int, block: Block) -> list[_Part]:
    deltas: list[Mapping[str, Any]]
    match block:
        case Text(text):
            deltas = [{"type": "text_delta", "text": word} for word in words(text)]
            return [_Part({"type": "text", "text": text}, {"text": ""}, deltas)]
        case Thinking(text):
            seal = reply.id("signature", place)
            deltas = [{"type": "thinking_delta", "thinking": word} for word in words(text)]
            deltas.append({"type": "signature_delta", "signature": seal})
            thinking = {"type": "thinking", "thinking": text, "signature": seal}
            return [_Part(thinking, {"thinking": "", "signature": ""}, deltas)]
        case Call():
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *halves(block.arguments))]
            head = {"type": "tool_use", **reply.call_id("id", "toolu", block, place), "name": block.tool}
            return [_Part({**head, "input": arguments_or_text(block.arguments)}, {"input": {}}, deltas)]
        case Search():
            return _search(reply, place, block)


def _search(reply: Reply, place: int, search: Search) -> list[_Part]:
    """The call and what came of it, both in the one answer."""
    asked = {"query": search.query}
    call_id = reply.id("srvtoolu", place)
    call = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": asked}
    found = [
        {"type": "web_search_result", "url": url, "title": title, "encrypted_content": "c2VhbGVk", "page_age": None}
        for url, title in search.found
    ]
    result = {"type": "web_search_tool_result", "tool_use_id": call_id, "content": found}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(asked)}
    return [_Part(call, {"input": {}}, [delta]), _Part(result, {}, [])]


def _usage(reply: Reply) -> Mapping[str, Any]:
    """Anthropic counts what was read from and written to the cache beside the input, not in it."""
    usage = reply.usage
    return {
        "input_tokens": usage.input - usage.cache_read - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


BROKEN = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
DIALECT = Dialect("messages", "request-id", read, whole, events, refusal, ("error", BROKEN), strict.of_messages)
