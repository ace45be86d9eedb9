"""Pieces of a page as a stream sends them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the page: `swap` is how it comes to its target."""

    target: str
    swap: str
    html: str

    def __str__(self) -> str:
        return f'<hx-partial hx-target="{self.target}" hx-swap="{self.swap}">{self.html}</hx-partial>'


def message(blocks: Iterable[Block], seq: int) -> str:
    """A server-sent event; a browser that comes again names its seq."""
    lines = "\n".join(map(str, blocks)).splitlines()
    return f"id: {seq}\n" + "".join(f"data: {line}\n" for line in lines) + "\n"
