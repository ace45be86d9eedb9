"""People's values in place of what a journal says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from journal.entries import Entry, Kind
from runs.loops.rewritten import NotInAConversation, rewritten

EDITABLE: Mapping[str, str] = {
    Kind.START: "input", Kind.OBS: "result", Kind.ANSWER: "value", Kind.SIGNAL: "payload", Kind.PLAN: "moves",
}  # fmt: skip


OF_A_LIBRARY = "This answer was given to another library's agent, whose moves are its own: edit what came of its calls"


class CannotEdit(ValueError):
    """An edit names an entry that has nothing to edit."""


def edited(entries: Iterable[Entry], edits: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The entries with people's values in place of some: `[{seq, value}]`. Raises CannotEdit naming what cannot be."""
    changed = list(entries)
    for edit in edits:
        seq, value = edit["seq"], edit["value"]
        if not 1 <= seq <= len(changed):
            raise CannotEdit(f"there is no entry {seq} to edit")
        entry = changed[seq - 1]
        name = EDITABLE.get(entry.kind)
        if name is None or name not in entry.body:
            raise CannotEdit(f"entry {seq} is a {entry.kind}, and nothing in it can be edited")
        try:
            changed[seq - 1] = replace(entry, body=entry.body | put_in(entry, name, value))
        except (NotInAConversation, AttributeError, TypeError) as error:
            raise CannotEdit(f"entry {seq}: {error}") from error
    return changed


def put_in(entry: Entry, name: str, value: Any) -> dict[str, Any]:
    """The fields that change with this one. Raises NotInAConversation."""
    if entry.kind == Kind.PLAN and "response" in entry.body:
        if "digest" in entry.body:
            raise NotInAConversation(OF_A_LIBRARY)
        return rewritten(entry.seq, entry.body, value)
    return {name: value}
