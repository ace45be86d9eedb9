"""Values as the console shows them: a tree whose text is inert. What the browser could act on or hide is written out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from journal.encoding import Pointer, Unencodable

NODES = 5_000  # a body is at most a few dozen KiB; this only bounds a page made of one-byte values
DEPTH = 60  # templates recurse

# Control characters but tab and newline, lone surrogates, invisible and direction-changing characters.
AWKWARD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")


@dataclass(slots=True)
class Node:
    """`kind` picks the partial: text, number, word (true, false, null), typed, list, map, pointer, more."""

    kind: str
    text: str
    name: str | None = None
    type: str = ""
    children: list[Node] = field(default_factory=list)
    value: Any = None

    @property
    def template(self) -> str:
        return f"runs/value/{self.kind}.html"


def readable(text: str) -> str:
    """The same text with awkward characters written as escapes, so that they can be seen and do nothing."""
    return AWKWARD.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text)


def tree(value: Any, name: str | None = None) -> Node:
    return _Grower().grow(value, name, 0)


class _Grower:
    def __init__(self) -> None:
        self.left = NODES

    def grow(self, value: Any, name: str | None, depth: int) -> Node:
        self.left -= 1
        node = leaf(value)
        node.name = name
        if isinstance(value, Mapping):
            pairs: Iterable[tuple[str, Any]] = [(self.label(key), item) for key, item in value.items()]
            node = Node("map", f"{len(value)} {'field' if len(value) == 1 else 'fields'}", name)
        elif isinstance(value, list | tuple | set | frozenset):
            pairs = [(str(i), item) for i, item in enumerate(value)]
            kind = "" if isinstance(value, list) else type(value).__name__
            node = Node("list", f"{len(value)} {'item' if len(value) == 1 else 'items'}", name, kind)
        else:
            return node
        for key, item in pairs:
            if self.left <= 0 or depth >= DEPTH:
                node.children.append(Node("more", "The rest is not drawn. Read it through the API or the export."))
                break
            node.children.append(self.grow(item, key, depth + 1))
        return node

    @staticmethod
    def label(key: Any) -> str:
        return readable(key) if isinstance(key, str) else readable(f"{key!r} ({type(key).__name__})")


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
