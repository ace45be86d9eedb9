"""What the address of the list asks for: a query, facets that add terms to it, an order and a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from runs.errors import QueryInvalid
from runs.listing import ORDERS
from runs.query_language import HAS, LONGEST, OPEN, STATUS_WORDS, Term, parse, written
from runs.texts import is_writable

FACETS = ("status", "agent", "release", "region", "has")
ADDED = ("label", "parent")  # of older addresses: they become part of the query's text
KNOWN: Mapping[str, Mapping[str, Any]] = {"status": STATUS_WORDS, "has": HAS}
DEFAULT_ORDER = "person"
LONGEST_FACET = 200
MOST_CHOSEN = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """`text` is the whole query, facets and all; `fault` says what is wrong with `q`, the part that was typed."""

    q: str
    chosen: Mapping[str, Sequence[str]]
    order: str
    after: str | None
    terms: Sequence[Term] = ()
    fault: QueryInvalid | None = None
    given: QueryDict = field(default_factory=QueryDict)

    @property
    def text(self) -> str:
        facets = [written(name, value) for name, values in self.chosen.items() for value in values]
        return " ".join([*([self.q] if self.q else []), *facets])

    @property
    def address(self) -> str:
        """Query and facets as the address holds them, in one order: what a saved view keeps."""
        facets = [(name, value) for name in FACETS for value in sorted(self.chosen.get(name, ()))]
        return urlencode([*([("q", self.q)] if self.q or not facets else []), *facets])

    @property
    def narrowed(self) -> int:
        return sum(map(len, self.chosen.values()))


def asked_in(given: QueryDict) -> Asked:
    """Without any word in it the address asks for the open runs. What no facet can be asks for nothing."""
    q = given.get("q", "").strip()[: LONGEST + 1]
    for name in ADDED:
        q = " ".join([q, *(written_added(name, value) for value in given.getlist(name) if value)]).strip()
    chosen = {name: values_in(given, name) for name in FACETS}
    if not any(name in given for name in ("q", "view", *FACETS, *ADDED)):
        chosen["status"] = list(OPEN)
    order = given.get("sort", "")
    asked = Asked(q, chosen, order if order in ORDERS else DEFAULT_ORDER, given.get("after") or None, given=given)
    return read(asked)


def written_added(name: str, value: str) -> str:
    """As it would have been typed; what is none stays for the query to point at."""
    return written(name, value) if name != "label" or ":" in value.strip(":") else f"{name}:{value}"


def values_in(given: QueryDict, name: str) -> list[str]:
    values = [value for value in given.getlist(name) if value and is_writable(value) and len(value) <= LONGEST_FACET]
    known = KNOWN.get(name)
    return list(dict.fromkeys(value for value in values if known is None or value in known))[:MOST_CHOSEN]


def read(asked: Asked) -> Asked:
    try:
        parse(asked.q)  # first by itself: its faults are pointed at where they were typed
        terms, fault = parse(asked.text), None
    except QueryInvalid as wrong:
        terms, fault = (), wrong
    return Asked(asked.q, asked.chosen, asked.order, asked.after, terms, fault, asked.given)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A fault shown in its place: the text before it, the faulty piece, the text behind."""

    before: str
    wrong: str
    behind: str
    caret: str
    said: str


AROUND = 32


def pointer_at(q: str, fault: QueryInvalid) -> Pointer:
    at = min(fault.position, len(q))
    end = min(at + fault.length, len(q))
    before = q[max(0, at - AROUND) : at]
    before = f"…{before}" if at > AROUND else before
    wrong = q[at:end][: AROUND * 2]
    behind = q[end : end + AROUND] + ("…" if len(q) > end + AROUND else "")
    return Pointer(before, wrong, behind, " " * len(before) + "^" * max(len(wrong), 1), fault.said)
