"""A stored answer as any provider takes it again. What a model says, its own provider may refuse to read. Pure.

The journal keeps it as it was said; here it is changed for the request alone, always to the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic_core

LONGEST_ID = 40  # OpenAI's chat completions; its responses take 64
LONGEST_NAME = 64  # OpenAI; Anthropic takes 128
PLAIN = re.compile("[a-zA-Z0-9_-]+")
ODD = re.compile("[^a-zA-Z0-9_-]")
MARK = 16  # characters of a digest: what keeps ids apart once they are cut
DEEPEST = 100  # levels; clients and providers give up at some hundreds
NOT_KEPT = "[nested too deeply]"
CALLS = ("tool-call", "builtin-tool-call")
THOUGHT = "thinking"


def is_sendable_name(name: str) -> bool:
    """Whether each provider takes a tool of this name."""
    return len(name) <= LONGEST_NAME and PLAIN.fullmatch(name) is not None


def name_of_tool(name: str) -> str:
    """Of a tool that there is, the name; of one that a model made up, something like it."""
    return name if is_sendable_name(name) else ODD.sub("_", name)[:LONGEST_NAME] or "nameless"


def id_of_call(id: str) -> str:
    """As it is where a provider takes it, else one that only this id leads to."""
    if len(id) <= LONGEST_ID and PLAIN.fullmatch(id):
        return id
    mark = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:MARK]
    return f"{ODD.sub('_', id)[: LONGEST_ID - MARK - 1]}-{mark}"


def sendable(stored: Mapping[str, Any], own: bool = True) -> dict[str, Any]:
    """A stored response. `own`: whether it is told to the model that gave it; signed thoughts are nobody else's."""
    parts = [sendable_part(part) for part in stored["parts"] if _says_something(part)]
    if not own:
        parts = without_thoughts(parts)
    if stored.get("state") != "suspended":  # a paused answer goes on from its thought
        while parts and parts[-1].get("part_kind") == THOUGHT:  # one that led to nothing is refused
            parts = parts[:-1]
    return dict(stored) | {"parts": parts}


def without_thoughts(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """And without the ids under which a provider would miss the thought before them."""
    if all(part.get("part_kind") != THOUGHT for part in parts):
        return list(map(dict, parts))
    kept = (part for part in parts if part.get("part_kind") != THOUGHT)
    gone = ("id", "provider_details")
    return [
        dict(part) | {name: None for name in gone if name in part and part.get("part_kind") in ("text", "tool-call")}
        for part in kept
    ]


def _says_something(part: Mapping[str, Any]) -> bool:
    return part.get("part_kind") != "text" or bool(str(part.get("content", "")).strip())


def sendable_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A call with a name, an id and arguments that each provider takes; any other part as it is."""
    kind = part.get("part_kind")
    if kind not in CALLS:
        return dict(part)
    changed: dict[str, Any] = {}
    if kind == "tool-call":
        changed = {"tool_name": name_of_tool(part["tool_name"]), "tool_call_id": id_of_call(part["tool_call_id"])}
    if part.get("args"):
        changed["args"] = _arguments(part["args"])
    return dict(part) | changed


def _arguments(args: Any) -> Any:
    """Text that no one can read is sent on as such by the library."""
    found = args
    if isinstance(args, str):
        try:
            found = pydantic_core.from_json(args)
        except ValueError:
            return args
    if _is_too_deep(found):
        return {"INVALID_JSON": NOT_KEPT}
    if _is_plain(found):
        return args
    plain = _plain(found)
    return json.dumps(plain, ensure_ascii=False) if isinstance(args, str) else plain


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for each in level if isinstance(each, (dict, list))
            for item in (each.values() if isinstance(each, dict) else each)
        ]  # fmt: skip
        if not level:
            return False
    return True


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or (math.isfinite(value) if isinstance(value, float) else isinstance(value, (str, int)))


def _plain(value: Any) -> Any:
    """JSON has no word for some numbers: they are told as texts. What the journal did not keep cannot be told."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if _is_plain(value) else str(value) if isinstance(value, float) else NOT_KEPT
