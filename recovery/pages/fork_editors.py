"""What may be edited of the entries that a fork copies, each as a form that begins with what is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from journal.encoding import Pointer, decode, tagged
from journal.entries import Entry, Kind
from journal.tags import Sealed
from runs.edits import EDITABLE
from runs.models import Release
from runs.pages.answering import answer_form
from runs.pages.schema_forms import SchemaForm
from runs.slots import Slot
from runs.state import RunState
from runs.values import line

MOST_OFFERED = 60
MOST_EDITED = 20


@dataclass(frozen=True, slots=True)
class Offer:
    """An entry that may be edited: what it is called, its JSON schema, its value, and the step it belongs to."""

    seq: int
    what: str
    schema: Mapping[str, Any]
    value: Any
    question: Slot | None = None

    @property
    def now(self) -> str:
        return line(self.value)


@dataclass
class Editor:
    """`kept`: values that nobody may read, which stay as they are. `tags`: it is asked for in the journal's tagged
    form, since JSON cannot say all of it."""

    offer: Offer
    form: SchemaForm
    kept: Mapping[str, Any]
    tags: bool

    @property
    def value(self) -> Any:
        """What was meant. Only after the form was found valid."""
        given = decode(json.dumps(self.form.value).encode()) if self.tags else self.form.value
        return {**given, **self.kept} if self.kept and isinstance(given, Mapping) else given

    @property
    def changes(self) -> bool:
        return bool(tagged(self.value) != tagged(self.offer.value))


def offers_of(entries: Sequence[Entry], at: int, state: RunState, release: Release) -> list[Offer]:
    """Of the entries up to `at`. A payload that lies outside of the journal is not edited on a page."""
    found = [offer_of(entry, state, release) for entry in entries[:at] if EDITABLE.get(entry.kind) in entry.body]
    return [one for one in found if one is not None and not isinstance(one.value, Pointer)][:MOST_OFFERED]


def offer_of(entry: Entry, state: RunState, release: Release) -> Offer | None:
    value = entry.body[EDITABLE[entry.kind]]
    slot = state.slots.get(entry.step) if entry.step is not None else None
    match entry.kind:
        case Kind.START:
            return Offer(entry.seq, "Input", release.contract.get("input") or {}, value)
        case Kind.OBS if slot is not None and entry.body.get("outcome") == "succeeded":
            return Offer(entry.seq, f"Result of {slot.tool}", returns_of(release, slot.tool), value)
        case Kind.ANSWER if slot is not None:
            return Offer(entry.seq, "Answer", {}, value, slot)
        case Kind.SIGNAL:
            return Offer(entry.seq, f"Payload of {entry.body.get('name', '')}", {}, value)
        case Kind.PLAN:
            return Offer(entry.seq, "The model's moves", {}, value)
    return None


def returns_of(release: Release, tool: str) -> Mapping[str, Any]:
    contracts: Sequence[Mapping[str, Any]] = release.contract.get("tools", [])
    return next((one.get("returns") or {} for one in contracts if one["name"] == tool), {})


def editors_of(offers: Sequence[Offer], seqs: Sequence[int], data: Any) -> list[Editor]:
    """A form for each of these entries that may be edited."""
    return [editor_of(one, data) for one in offers if one.seq in seqs[:MOST_EDITED]]


def editor_of(offer: Offer, data: Any) -> Editor:
    prefix = f"entry-{offer.seq}"
    offer, kept = without_secrets(offer)
    plain = tagged(offer.value)
    if plain is not offer.value:
        return Editor(offer, SchemaForm({}, data, plain, prefix), kept, True)
    schema = offer.schema if offer.question is None else answer_form(offer.question).schema
    return Editor(offer, SchemaForm(schema, data, offer.value, prefix), kept, False)


def without_secrets(offer: Offer) -> tuple[Offer, Mapping[str, Any]]:
    """Without the fields that are sealed, in the schema too."""
    if not isinstance(offer.value, Mapping):
        return offer, {}
    kept = {name: value for name, value in offer.value.items() if isinstance(value, Sealed)}
    if not kept:
        return offer, {}
    schema = dict(offer.schema)
    schema["properties"] = {name: s for name, s in schema.get("properties", {}).items() if name not in kept}
    schema["required"] = [name for name in schema.get("required", ()) if name not in kept]
    value = {name: value for name, value in offer.value.items() if name not in kept}
    return replace(offer, schema=schema if offer.schema else {}, value=value), kept
