"""Values in a conversation: what is text reads as text, a picture is seen, the rest is JSON; all of it inert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import template

from journal.encoding import Pointer
from runs.pages.json_lines import Line, json_lines
from runs.pages.pictures import data_uri, is_picture
from runs.pages.pointers import pointers_in
from runs.pages.said import Bill, Block, bill_of, blocks_of
from runs.values import line

SHORT = 700  # characters; what is longer is folded
LINES = 12
MOST_TEXT = 100_000

register = template.Library()


@dataclass(frozen=True, slots=True)
class View:
    """`kind` picks the partial: text, json, nothing, picture (of `uri`). `pointers`: path, pointer, and whether it is a
    picture, of what lies outside. `short`: in one line, for the head of what is folded."""

    kind: str
    blocks: Sequence[Block] = ()
    lines: Sequence[Line] = ()
    uri: str = ""
    long: bool = False
    short: str = ""
    pointers: Sequence[tuple[str, Pointer, bool]] = ()
    cut: int = 0

    @property
    def template(self) -> str:
        return f"runs/chat/value/{self.kind}.html"


@register.filter
def view(value: Any) -> View:
    outside = [(path, pointer, is_picture(pointer)) for path, pointer in pointers_in(value)]
    if isinstance(value, Pointer):
        return View("outside", pointers=outside)
    if value is None or value == {}:
        return View("nothing")
    if isinstance(value, bytes) and (uri := data_uri(value)):
        return View("picture", uri=uri)
    if isinstance(value, str):
        long = len(value) > SHORT or value.count("\n") > LINES
        cut = max(len(value) - MOST_TEXT, 0)
        return View("text", blocks_of(value[:MOST_TEXT]), long=long, short=line(value, 100), cut=cut)
    lines = json_lines(value)
    return View("json", lines=lines, long=len(lines) > LINES, short=line(value, 100), pointers=outside)


@register.filter
def of_seq(says: str, seq: int) -> str:
    """What a part of the page is called: no two may be called the same."""
    return f"{says or 'Value'} of seq {seq}"


@register.filter
def blocks(text: str) -> Sequence[Block]:
    return blocks_of(str(text)[:MOST_TEXT])


@register.filter
def bill(body: Mapping[str, Any]) -> Bill:
    """Of a PLAN's body."""
    return bill_of(body)


@register.filter
def money(bill: Bill) -> str:
    """$0.0123; the agent's own number as it is; what nobody knows is not nothing."""
    if bill.cost is None:
        return "price unknown"
    return f"${bill.cost}" if bill.priced else f"cost {bill.cost}"
