"""Values in a conversation: what is text reads as text, a picture is seen, an object is a table of its fields, the
rest is JSON; all of it inert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import template

from journal.encoding import Pointer
from runs.pages.json_lines import Line, json_lines
from runs.pages.money import dollars
from runs.pages.pictures import data_uri, is_picture
from runs.pages.pointers import pointers_in
from runs.pages.said import Bill, Block, bill_of, blocks_of
from runs.values import label, leaf, line, readable

SHORT = 700  # characters; what is longer is folded
LINES = 12
MOST_FIELDS, MOST_LINES = 16, 300  # of an object that is shown as a table, and of it as JSON
LONG_FIELD = 2_500  # characters of a field, say the text of a mail; what is longer is folded
MOST_TEXT = 100_000

register = template.Library()


@dataclass(frozen=True, slots=True)
class View:
    """`kind` picks the partial: text, json, word (a value without parts, as `short`), fields (of an object), nothing,
    picture (of `uri`). `pointers`: path, pointer, and whether it is a
    picture, of what lies outside. `short`: in one line, for the head of what is folded."""

    kind: str
    blocks: Sequence[Block] = ()
    lines: Sequence[Line] = ()
    uri: str = ""
    long: bool = False
    short: str = ""
    pointers: Sequence[tuple[str, Pointer, bool]] = ()
    cut: int = 0
    fields: Sequence[tuple[str, View]] = ()

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
        return text_view(value, SHORT, LINES)
    lines = json_lines(value)
    if is_table(value) and len(lines) <= MOST_LINES:
        fields = [(label(name), field_view(item)) for name, item in value.items()]
        return View("fields", lines=lines, fields=fields, pointers=outside)
    return View("json", lines=lines, long=len(lines) > LINES, short=line(value, 100), pointers=outside)


def text_view(value: str, most: int, most_lines: int) -> View:
    long = len(value) > most or value.count("\n") > most_lines
    cut = max(len(value) - MOST_TEXT, 0)
    return View("text", blocks_of(value[:MOST_TEXT]), long=long, short=line(value, 100), cut=cut)


def is_table(value: Any) -> bool:
    """An object with few fields, most of which read as they are."""
    if not isinstance(value, Mapping) or len(value) > MOST_FIELDS:
        return False
    nested = sum(isinstance(item, Mapping | list) and bool(item) for item in value.values())
    return all(isinstance(name, str) for name in value) and nested * 2 <= len(value)


def field_view(value: Any) -> View:
    if isinstance(value, str) and value.strip():
        return text_view(value, LONG_FIELD, LONG_FIELD)
    if isinstance(value, Mapping | list) and value:
        lines = json_lines(value)
        return View("json", lines=lines, long=len(lines) > LINES, short=line(value, 100))
    found = leaf(value) if not isinstance(value, Mapping | list) else None
    if found is None or found.kind == "pointer":
        return View("word", short="none" if found is None else "kept outside, below")
    return View("word", short=repr(value) if found.kind == "text" else found.text)


@register.filter
def of_seq(says: str, seq: int) -> str:
    """What a part of the page is called: no two may be called the same."""
    return f"{says or 'Value'} of seq {seq}"


@register.filter
def of_value(name: str, says: str) -> str:
    return f"{name} in {says}"


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
    return as_dollars(bill.cost) if bill.priced else f"cost {bill.cost}"


@register.filter
def as_dollars(cost: Any) -> str:
    """Of a cost as an entry holds it; the exact one stands in the entry."""
    try:
        return dollars(Decimal(str(cost)))
    except ArithmeticError:
        return f"${readable(str(cost))}"
