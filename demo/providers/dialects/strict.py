"""What the real APIs do not take, each in words like its own: the first fault of a request, or None."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ID = re.compile("[a-zA-Z0-9_-]+")
NAME_64, NAME_128 = re.compile("[a-zA-Z0-9_-]{1,64}"), re.compile("[a-zA-Z0-9_-]{1,128}")
MOST_MARKS = 4
LONGEST_CHAT_ID, LONGEST_CALL_ID = 40, 64


def of_messages(body: Mapping[str, Any]) -> str | None:
    return next(_messages(body), None)


def of_chat(body: Mapping[str, Any]) -> str | None:
    return next(_chat(body), None)


def of_responses(body: Mapping[str, Any]) -> str | None:
    return next(_responses(body), None)


# -- Anthropic --------------------------------------------------------------------------------------------------------


def _messages(body: Mapping[str, Any]) -> Iterator[str]:
    history = [(message["role"], _blocks(message["content"])) for message in body.get("messages") or []]
    if history and history[0][0] != "user":
        yield 'messages: first message must use the "user" role'
    for block in _blocks(body.get("system") or []):
        if not str(block.get("text", "")).strip():
            yield "system: text content blocks must be non-empty"
    for place, (role, blocks) in enumerate(history):
        at = f"messages.{place}"
        if role == "assistant" and place < len(history) - 1 and (not blocks or blocks[-1]["type"] == "thinking"):
            yield f"{at}: The final block in an assistant message cannot be `thinking`."
        for block in blocks:
            yield from _block(at, block)
    yield from _pairs(history)
    for tool in body.get("tools") or []:
        if not NAME_128.fullmatch(tool.get("name", "")):
            yield "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
    if (marks := _marks(body)) > MOST_MARKS:
        yield f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {marks}."


def _block(at: str, block: Mapping[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"]:
            yield "messages: text content blocks must be non-empty"
        case "text" if not block["text"].strip():
            yield "messages: text content blocks must contain non-whitespace text"
        case "tool_use":
            if not ID.fullmatch(block["id"]):
                yield f"{at}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            if not NAME_128.fullmatch(block["name"]):
                yield f"{at}.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            if not isinstance(block["input"], dict):
                yield f"{at}.content.0.tool_use.input: Input should be a valid dictionary"
        case "tool_result":
            for inner in _blocks(block.get("content") or []):
                yield from _block(at, inner)


def _pairs(history: Sequence[tuple[str, list[Any]]]) -> Iterator[str]:
    """Messages of one role in a row are one message."""
    turns: list[tuple[str, list[Any]]] = []
    for role, blocks in history:
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, list(blocks)))
    seen: set[str] = set()
    open_: list[str] = []
    for _, blocks in turns:
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if missing := [id for id in open_ if id not in results]:
            yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}."
        if any(id not in open_ for id in results):
            yield "unexpected `tool_use_id` found in `tool_result` blocks: each must have a corresponding `tool_use`."
        open_ = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(open_)) < len(open_) or seen & set(open_):
            yield "`tool_use` ids must be unique"
        seen.update(open_)
    if open_:
        yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(open_)}."


def _marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(_marks(item) for name, item in value.items() if name != "input")
    return sum(map(_marks, value)) if isinstance(value, list) else 0


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


# -- OpenAI -----------------------------------------------------------------------------------------------------------


def _chat(body: Mapping[str, Any]) -> Iterator[str]:
    open_: list[str] = []
    for place, message in enumerate(body.get("messages") or []):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_:
                yield "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            open_ = [id for id in open_ if id != message["tool_call_id"]]
            continue
        if open_:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
                f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_)}"
            )
        calls = message.get("tool_calls") or []
        if message.get("content") is None and not calls and not message.get("refusal"):
            yield f"Invalid value for 'content': expected a string, got null. (messages[{place}])"
        for call in calls:
            yield from _call(f"messages[{place}].tool_calls[0]", call["id"], LONGEST_CHAT_ID, call["function"])
        open_ = [call["id"] for call in calls]
    if open_:
        yield f"The following tool_call_ids did not have response messages: {', '.join(open_)}"
    yield from _tool_names([tool.get("function", {}) for tool in body.get("tools") or []])


def _responses(body: Mapping[str, Any]) -> Iterator[str]:
    given = body.get("input") or []
    entries = [] if isinstance(given, str) else given
    called: list[str] = []
    answered: list[str] = []
    for place, entry in enumerate(entries):
        kind = entry.get("type")
        if kind == "function_call":
            yield from _call(f"input[{place}]", entry["call_id"], LONGEST_CALL_ID, entry)
            called.append(entry["call_id"])
        elif kind == "function_call_output":
            if entry["call_id"] not in called:
                yield f"No tool call found for function call output with call_id {entry['call_id']}."
            answered.append(entry["call_id"])
        elif kind == "reasoning":
            after = entries[place + 1] if place + 1 < len(entries) else {}
            follows = str(after.get("type", "")).endswith("_call") or after.get("type") in ("reasoning", "message")
            if after.get("role") != "assistant" and not follows:
                yield f"Item '{entry['id']}' of type 'reasoning' was provided without its required following item."
    if missing := [id for id in called if id not in answered]:
        yield f"No tool output found for function call {missing[0]}."
    yield from _tool_names([tool for tool in body.get("tools") or [] if tool.get("type") == "function"])


def _call(at: str, id: str, longest: int, function: Mapping[str, Any]) -> Iterator[str]:
    if len(id) > longest:
        yield (
            f"Invalid '{at}.id': string too long. Expected a string with maximum length {longest}, but got a string"
            f" with length {len(id)} instead."
        )
    if not NAME_64.fullmatch(function["name"]):
        yield f"Invalid '{at}.name': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'."
    if not isinstance(function["arguments"], str):
        yield f"Invalid type for '{at}.arguments': expected a string."


def _tool_names(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for place, tool in enumerate(tools):
        if not NAME_64.fullmatch(tool.get("name", "")):
            yield f"Invalid 'tools[{place}].name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
