"""Values as the console shows them: trees whose text is inert. What the browser could act on or hide is written out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from journal.encoding import Pointer, Unencodable

NODES = 20_000  # a body is at most a few dozen KiB; this only bounds a page made of one-byte values
DEPTH = 60  # templates recurse

# Control characters but tab and newline, lone surrogates, invisible and direction-changing characters.
AWKWARD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


@dataclass(slots=True)
class Node:
    """A value, or the beginning or end of one that has parts (`edge`).

    `kind` picks the partial of a value: text, number, word (true, false, null), typed, pointer, empty, more.
    """

    kind: str
    text: str
    name: str | None = None
    type: str = ""
    edge: str = ""
    value: Any = None

    @property
    def template(self) -> str:
        return f"runs/value/{self.kind}.html"


def readable(text: str) -> str:
    """The same text with awkward characters written as escapes, so that they can be seen and do nothing."""
    return AWKWARD.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text)


def nodes(value: Any, name: str | None = None) -> list[Node]:
    """The tree in reading order: flat, since templates that recurse meet Python's limit before the journal's."""
    found: list[Node] = []
    _walk(value, name, found)
    return found


def _walk(value: Any, name: str | None, found: list[Node]) -> None:
    if len(found) >= NODES:
        if found[-1].kind != "more":
            found.append(Node("more", "The rest is not drawn. Read it through the API or the export."))
        return
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        node = leaf(value)
        node.name = name
        found.append(node)
        return
    pairs: Iterable[tuple[str, Any]]
    if isinstance(value, Mapping):
        pairs = [(label(key), item) for key, item in value.items()]
        node = Node("open", f"{len(value)} {'field' if len(value) == 1 else 'fields'}", name, edge="open")
    else:
        pairs = [(str(i), item) for i, item in enumerate(value)]
        kind = "" if isinstance(value, list) else type(value).__name__
        node = Node("open", f"{len(value)} {'item' if len(value) == 1 else 'items'}", name, kind, edge="open")
    if not value:
        node.kind, node.edge = "empty", ""
    found.append(node)
    for key, item in pairs:
        _walk(item, key, found)
    if value:
        found.append(Node("close", "", edge="close"))


def label(key: Any) -> str:
    return readable(key) if isinstance(key, str) else readable(f"{leaf(key).text} ({type(key).__name__})")


def line(value: Any, limit: int = 160) -> str:
    """The value in one line, cut at about `limit` characters: for reading along, never for signing."""
    text = " ".join("".join(_pieces(value, [limit])).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _pieces(value: Any, left: list[int]) -> Iterator[str]:
    """`left` counts characters still wanted, across the recursion."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        yield "{" if isinstance(value, Mapping) else "["
        for i, item in enumerate(value):
            if left[0] <= 0:
                break
            yield ", " if i else ""
            yield f"{label(item)}: " if isinstance(value, Mapping) else ""
            yield from _pieces(value[item] if isinstance(value, Mapping) else item, left)
        yield "}" if isinstance(value, Mapping) else "]"
        return
    text = leaf(value).text[:2_000]
    left[0] -= len(text)
    yield text


def leaf(value: Any) -> Node:
    """A value that has no parts. Numbers are shown as Python writes them: -0.0, nan and 1e+22 stay what they are."""
    match value:
        case None:
            return Node("word", "null")
        case bool():
            return Node("word", "true" if value else "false")
        case float():
            awkward = value != value or value in (float("inf"), float("-inf"))
            return Node("number", repr(value), type="float" if awkward else "")
        case int():
            return Node("number", integer(value))
        case str():
            return Node("text", readable(value))
        case Pointer():
            return Node("pointer", value.uri, value=value)
        case Unencodable():
            return Node("typed", readable(value.why or "its content could not be kept"), type=readable(value.type_name))
        case bytes():
            return Node("typed", readable(repr(value)), type=f"bytes, {len(value)} B")
        case datetime() | date() | time():
            return Node("typed", value.isoformat(), type=type(value).__name__)
        case Decimal() | UUID() | timedelta():
            return Node("typed", str(value), type=type(value).__name__)
    return Node("typed", readable(repr(value)), type=type(value).__name__)


def integer(value: int) -> str:
    """In hexadecimal beyond what Python converts to decimal (about 4,300 digits)."""
    return str(value) if value.bit_length() < 14_000 else hex(value)
