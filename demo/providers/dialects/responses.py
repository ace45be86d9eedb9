"""OpenAI responses."""

from collections.abc import Mapping
from typing import Any

from demo.providers.asked import Conversation, Item, named, plain
from demo.providers.dialects import strict
from demo.providers.dialects.dialect import Dialect, Event, Reply, halves, words
from demo.providers.dialects.openai_refusals import refusal
from demo.providers.turns import BadScript, Block, Call, Search, Text, Thinking

MINE = ("reasoning", "function_call", "web_search_call")
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def read(body: Mapping[str, Any]) -> Conversation:
    if kept := [name for name in ("previous_response_id", "conversation", "background") if body.get(name)]:
        raise BadScript(f"No conversation is kept here: {', '.join(kept)}.")
    given = body.get("input") or []
    history = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    items: list[Item] = []
    begun: list[int] = []  # an answer is several entries in a row
    speaking = False
    for place, entry in enumerate(history):
        mine = entry.get("role") == "assistant" or entry.get("type") in MINE
        if mine and not speaking:
            begun.append(place)
        speaking = mine
        items += _items(entry)
    system = [str(body.get("instructions") or "")]
    system += [plain(entry.get("content")) for entry in history if entry.get("role") in ("system", "developer")]
    tools = [tool["name"] for tool in body.get("tools") or [] if "name" in tool]
    return Conversation(
        "\n".join(text for text in system if text),
        named(items),
        tuple(tools),
        len(begun),
        history,
        begun[-1] if begun else 0,
    )


def _items(entry: Mapping[str, Any]) -> list[Item]:
    match entry:
        case {"type": "function_call", "call_id": str(call_id), "name": str(name), "arguments": str(arguments)}:
            return [Item("call", arguments, call_id, name)]
        case {"type": "function_call_output", "call_id": str(call_id)}:
            return [Item("result", plain(entry.get("output")), call_id)]
        case {"role": "user"}:
            return [Item("user", plain(entry.get("content")))]
        case {"role": "assistant"}:
            return [Item("assistant", plain(entry.get("content")))]
    return []


def whole(reply: Reply) -> Mapping[str, Any]:
    output = [_entry(reply, place, block) for place, block in enumerate(reply.turn.blocks)]
    reason = INCOMPLETE.get(reply.turn.finish)
    return {
        **_head(reply),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "usage": _usage(reply),
    }


def events(reply: Reply) -> list[Event]:
    begun = {**_head(reply), "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    out: list[Mapping[str, Any]] = [{"type": "response.created", "response": begun}]
    out.append({"type": "response.in_progress", "response": begun})
    for place, block in enumerate(reply.turn.blocks):
        entry = _entry(reply, place, block)
        out.append({"type": "response.output_item.added", "output_index": place, "item": {**entry, **_empty(block)}})
        at = {"output_index": place, "item_id": entry["id"]}
        out += [{**event, **at} for event in _inner(reply, block, entry)]
        out.append({"type": "response.output_item.done", "output_index": place, "item": entry})
    last = whole(reply)
    out.append({"type": f"response.{last['status']}", "response": last})
    return [(event["type"], {**event, "sequence_number": number}) for number, event in enumerate(out)]


def _inner(reply: Reply, block: Block, entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The events between an entry's beginning and end, without their place."""
    match block:
        case Thinking(text):
            part = {"type": "summary_text", "text": text}
            return _part("reasoning_summary", {"summary_index": 0}, part, {"text": text}, words(text))
        case Text(text):
            part = entry["content"][0]
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            done = {"refusal": text} if kind == "refusal" else {"text": text, "logprobs": []}
            return _part(kind, {"content_index": 0}, part, done, words(text))
        case Call():
            kind = "response.function_call_arguments"
            deltas: list[Mapping[str, Any]] = [
                {"type": f"{kind}.delta", "delta": piece} for piece in halves(block.arguments)
            ]
            return [*deltas, {"type": f"{kind}.done", "arguments": block.arguments, "name": block.tool}]
        case Search():
            return [{"type": f"response.web_search_call.{word}"} for word in ("in_progress", "searching", "completed")]


def _part(
    kind: str, at: Mapping[str, int], part: Mapping[str, Any], done: Mapping[str, Any], pieces: list[str]
) -> list[Mapping[str, Any]]:
    text = f"response.{kind}_text" if kind == "reasoning_summary" else f"response.{kind}"
    frame = "response.reasoning_summary_part" if kind == "reasoning_summary" else "response.content_part"
    extra: Mapping[str, Any] = {"logprobs": []} if kind == "output_text" else {}
    field = "refusal" if kind == "refusal" else "text"
    return [
        {"type": f"{frame}.added", **at, "part": {**part, field: ""}},
        *({"type": f"{text}.delta", **at, "delta": piece, **extra} for piece in pieces),
        {"type": f"{text}.done", **at, **done},
        {"type": f"{frame}.done", **at, "part": part},
    ]


def _head(reply: Reply) -> dict[str, Any]:
    asked = reply.options
    return {
        "id": reply.id("resp"),
        "object": "response",
        "created_at": reply.created,
        "model": reply.model,
        "error": None,
        "instructions": asked.get("instructions"),
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "store": asked.get("store", True),
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools") or [],
        "metadata": {},
    }


def _entry(reply: Reply, place: int, block: Block) -> dict[str, Any]:
    match block:
        case Thinking(text):
            # What the model thought leaves the provider only sealed, and only for those who ask for it.
            sealed = "reasoning.encrypted_content" in (reply.options.get("include") or ())
            entry = {
                "type": "reasoning",
                "id": reply.id("rs", place),
                "summary": [{"type": "summary_text", "text": text}],
            }
            return {**entry, **({"encrypted_content": reply.id("sealed", place)} if sealed else {})}
        case Text(text):
            said: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            if reply.turn.finish == "refusal":
                said = {"type": "refusal", "refusal": text}
            message = {"type": "message", "id": reply.id("msg", place), "role": "assistant", "status": "completed"}
            return {**message, "content": [said]}
        case Call():
            call_id = reply.call_id("call_id", "call", block, place)
            entry = {"type": "function_call", "id": reply.id("fc", place), **call_id, "name": block.tool}
            return {**entry, "arguments": block.arguments, "status": "completed"}
        case Search(query, found):
            sources = [{"type": "url", "url": url} for url, _title in found]
            action = {"type": "search", "query": query, "queries": [query], "sources": sources}
            return {"type": "web_search_call", "id": reply.id("ws", place), "status": "completed", "action": action}


def _empty(block: Block) -> Mapping[str, Any]:
    match block:
        case Thinking():
            return {"summary": []}
        case Text():
            return {"content": [], "status": "in_progress"}
        case Search():
            return {"status": "in_progress"}
        case Call():
            return {"arguments": "", "status": "in_progress"}


def _usage(reply: Reply) -> Mapping[str, Any]:
    usage = reply.usage
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


BROKEN = {
    "type": "error", "code": "server_is_overloaded", "message": "The model is overloaded.", "param": None,
    "sequence_number": 99,
}  # fmt: skip
DIALECT = Dialect("responses", "x-request-id", read, whole, events, refusal, ("error", BROKEN), strict.of_responses)
