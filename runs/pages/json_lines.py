"""A value as lines of JSON that a page can fold and mark. Text is inert; what JSON has no word for says its type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runs.values import NODES, Node, label, leaf

LOOKS = {"text": "s", "number": "n", "word": "b"}
BRACKETS = {"{": "}", "[": "]"}


@dataclass(slots=True)
class Line:
    """`edge`: open, close, or empty for a value without parts. `look`: s, n, b as in the style sheet, or t."""

    edge: str = ""
    name: str | None = None
    text: str = ""
    look: str = "t"
    type: str = ""
    comma: str = ""
    marked: bool = False


def json_lines(value: Any, marks: frozenset[str] = frozenset()) -> list[Line]:
    """`marks`: paths (`key`, `args.amount`) of values that stand out."""
    found: list[Line] = []
    for line in _lines(value, None, "", marks):
        if len(found) >= NODES:
            opened = sum(line.edge == "open" for line in found) - sum(line.edge == "close" for line in found)
            found.append(Line(text="The rest is not drawn. Read it through the API or the export."))
            return [*found, *(Line("close") for _ in range(opened))]
        found.append(line)
    return found


def _lines(value: Any, name: str | None, path: str, marks: frozenset[str]) -> Iterator[Line]:
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        yield _leaf(leaf(value), name, path in marks)
        return
    is_map = isinstance(value, Mapping)
    bracket = "{" if is_map else "["
    type_name = "" if isinstance(value, Mapping | list) else type(value).__name__
    if not value:
        yield Line(name=name, text=bracket + BRACKETS[bracket], look="p", type=type_name)
        return
    yield Line("open", name, bracket, "p", type_name)
    parts = [(key, item) for key, item in value.items()] if isinstance(value, Mapping) else [(None, i) for i in value]
    for n, (key, item) in enumerate(parts):
        called = quoted(key) if is_map else None
        inner = f"{path}.{key}" if path else str(key)
        last: Line | None = None
        for last in _lines(item, called, inner if is_map else path, marks):
            yield last
        if last is not None and n < len(parts) - 1:
            last.comma = ","
    yield Line("close", text=BRACKETS[bracket], look="p")


def _leaf(node: Node, name: str | None, marked: bool) -> Line:
    look = LOOKS.get(node.kind, "t")
    text = f'"{node.text}"' if node.kind == "text" else node.text
    if node.kind == "pointer":
        pointer = node.value
        text = f"payload of {pointer.size} bytes, sha256 {pointer.sha256}"
    return Line("", name, text, look, node.type, marked=marked)


def quoted(key: Any) -> str:
    return f'"{label(key)}"' if isinstance(key, str) else label(key)


def pretty(value: Any) -> str:
    """For a clipboard: the same JSON that the API answers."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str)
