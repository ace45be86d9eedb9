"""What is taken out of an answer before it is written: secrets in calls, whether they were made or not. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pydantic_core

from runs.secrets import SHORTEST_STRUCK, STRUCK, redacted, seals_in, struck

if TYPE_CHECKING:
    from runs.tools import Tool

HIDDEN = {"INVALID_JSON": STRUCK}  # the name under which the library sends on what it cannot read


def strike_arguments(call: dict[str, Any], sealed: dict[str, Any]) -> None:
    """In the words of the model: as text, where they came as text."""
    _put(call, _struck_seals(sealed))


def hide_untaken(call: dict[str, Any], toolbox: Mapping[str, Tool]) -> set[str]:
    """Nobody knows what stands where in the arguments of a call that was not taken: of a tool that has secrets, and of
    one that there is not beside such tools, no value is kept. The words that must not be read elsewhere."""
    args, tool = call.get("args"), toolbox.get(call["tool_name"])
    if not args or not any(each.has_secrets for each in toolbox.values()) or (tool and not tool.has_secrets):
        return set()
    found = _read(args)
    if not isinstance(found, dict):
        _put(call, HIDDEN)
        return _words(found)
    whole = not isinstance(args, str) or _is_object(args)
    _put(call, dict.fromkeys(found, STRUCK) if whole else HIDDEN)
    harmless = _harmless(tool)
    return _words({name: value for name, value in found.items() if name not in harmless})


def strike_in_text(call: dict[str, Any], words: Iterable[str]) -> None:
    """Arguments that came as text hold a word otherwise spelled. Half a text may hold half a word."""
    args = call.get("args")
    if not isinstance(args, str) or not args or not (words or redacted()):
        return
    if not _is_object(args):
        call["args"] = json.dumps(HIDDEN) if words else args
        return
    found = pydantic_core.from_json(args)
    if (clean := struck(found, tuple(words))) != found:
        _put(call, clean)


def spelled(words: Iterable[str]) -> set[str]:
    """As they are, and as they stand within the text of JSON, or of a message about them."""
    ways = (str, json.dumps, lambda word: json.dumps(word, ensure_ascii=False), repr)
    return {way(word) if way is str else way(word)[1:-1] for word in words for way in ways}


def _put(call: dict[str, Any], args: dict[str, Any]) -> None:
    call["args"] = json.dumps(args, ensure_ascii=False) if isinstance(call.get("args"), str) else args


def _read(args: Any) -> Any:
    """As far as it can be read."""
    if not isinstance(args, str):
        return args
    try:
        return pydantic_core.from_json(args, allow_partial="trailing-strings")
    except ValueError:
        return None


def _is_object(text: str) -> bool:
    try:
        return isinstance(pydantic_core.from_json(text), dict)
    except ValueError:
        return False


def _harmless(tool: Tool | None) -> set[str]:
    """The parameters in which there is no secret, so that what is given for them may be read elsewhere."""
    known = {} if tool is None else tool.contract["parameters"].get("properties", {})
    texts = {name: json.dumps(told) for name, told in known.items()}
    return {name for name, text in texts.items() if '"writeOnly"' not in text and '"$ref"' not in text}


def _words(value: Any) -> set[str]:
    return {word for word in _leaves(value) if len(word) >= SHORTEST_STRUCK and word != STRUCK}


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield str(value)


def _struck_seals(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _struck_seals(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_struck_seals(item) for item in value]
    return STRUCK if any(True for _ in seals_in(value)) else value
