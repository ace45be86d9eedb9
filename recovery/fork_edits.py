"""Edits at a fork: a person's value in place of a copied input, result, answer, payload or plan.

Each is judged by what the value was declared as, sealed where that says so, and marked in its entry. Whether the agent
still decides the copied part as it is recorded, a worker says (recovery.replays).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from journal.encoding import canonical, encode, problems
from journal.entries import Entry, Kind
from journal.payloads import PayloadStore
from journal.prefixes import Row, changed_body
from recovery.errors import ForkEditRefused
from runs.answer_types import SchemaRefused, answer_fault, faults_of
from runs.edits import EDITABLE, put_in
from runs.inputs import input_faults
from runs.loops.rewritten import NotInAConversation
from runs.models import Release
from runs.moves import Call, as_decided, from_record
from runs.secrets import opened, sealed_by
from runs.state import RunState

MARK = "edited_at_fork"  # in the body of an edited entry: by whom, and the digest of what it said


@dataclass(frozen=True, slots=True)
class Edit:
    """`name`: the field of the body. `value`: as it is written. `before`: digest of the value in its place. `beside`:
    other fields that have to say the same, as a model's answer does with its moves."""

    seq: int
    name: str
    value: Any
    before: str
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> dict[str, Any]:
        return {"seq": self.seq, "value": self.value}

    @property
    def record(self) -> dict[str, Any]:
        """As START tells of it."""
        return {"seq": self.seq, "from_digest": self.before}


def checked(
    asked: Sequence[Mapping[str, Any]], entries: Sequence[Entry], state: RunState, release: Release
) -> list[Edit]:
    """`entries`: the copied ones, `state`: their fold. Raises ForkEditRefused, naming each field."""
    found: list[Edit] = []
    wrong: dict[str, str] = {}
    for place, edit in enumerate(asked):
        seq = edit["seq"]
        entry = entries[seq - 1] if 1 <= seq <= len(entries) else None
        why = refusal(entry, edit["value"], state, release)
        if entry is None or why or any(other.seq == seq for other in found):
            wrong[f"edits.{place}"] = why or "It is edited twice."
            continue
        name = EDITABLE[entry.kind]
        value = sealed(entry, edit["value"], state, release)
        changed = put_in(entry, name, value)
        before = hashlib.sha256(canonical(entry.body[name])).hexdigest()
        found.append(Edit(seq, name, changed.pop(name), before, changed))
    if wrong:
        raise ForkEditRefused(wrong)
    return found


def refusal(entry: Entry | None, value: Any, state: RunState, release: Release) -> str:
    """Why this value cannot stand there, in a sentence."""
    if entry is None:
        return "The fork has no such entry."
    if EDITABLE.get(entry.kind) not in entry.body:
        return f"Entry {entry.seq} is a {entry.kind} in which nothing can be edited."
    if lost := problems({"value": value}, "value"):
        return f"{lost[0]} is of a type that the journal cannot keep."
    match entry.kind:
        case Kind.START:
            return "; ".join(fault.told("input") for fault in input_faults(release.content.get("input"), value))
        case Kind.OBS:
            return refused_result(entry, value, state, release)
        case Kind.ANSWER:
            return answer_fault(state.slots[entry.step or 0].body, value) or ""
        case Kind.PLAN:
            return refused_moves(entry, value)
    return ""


def refused_result(entry: Entry, value: Any, state: RunState, release: Release) -> str:
    if entry.body.get("outcome") != "succeeded":
        return f"Entry {entry.seq} tells of no result: its outcome is {entry.body.get('outcome')}."
    schema = contract_of(release, state.slots[entry.step or 0].tool).get("returns")
    try:
        return "; ".join(fault.told("result") for fault in faults_of(schema, value)) if schema else ""
    except SchemaRefused:  # a type that no validator knows judges nothing
        return ""


def refused_moves(entry: Entry, value: Any) -> str:
    try:
        as_decided([from_record(move) for move in value])
        put_in(entry, EDITABLE[entry.kind], value)
    except NotInAConversation as error:
        return str(error)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        return f"These are no moves: {error}."
    return ""


def sealed(entry: Entry, value: Any, state: RunState, release: Release) -> Any:
    """With what is declared as a secret, or matches HOLDFAST_REDACT, sealed."""
    match entry.kind:
        case Kind.START:
            return sealed_by(release.content.get("input"), value)
        case Kind.OBS:
            return sealed_by(contract_of(release, state.slots[entry.step or 0].tool).get("returns"), value)
        case Kind.PLAN:
            return [sealed_move(move, release) for move in value]
    return sealed_by(None, value)


def sealed_move(record: Mapping[str, Any], release: Release) -> dict[str, Any]:
    move = from_record(record)
    if not isinstance(move, Call):
        return dict(sealed_by(None, dict(record)))
    schema = contract_of(release, move.tool).get("parameters")
    return dict(record) | {"args": sealed_by(schema, opened(dict(move.args)))}


def contract_of(release: Release, tool: str) -> Mapping[str, Any]:
    tools: list[Mapping[str, Any]] = release.contract.get("tools", [])
    return next((one for one in tools if one["name"] == tool), {})


def bodies(
    edits: Sequence[Edit], rows: Sequence[Row], fork_id: UUID, store: PayloadStore, actor: str
) -> dict[int, bytes]:
    """What is written in their place, by seq; a large value goes beside the journal. Raises PayloadStoreDown."""
    found = {}
    for edit in edits:
        fields = {edit.name: edit.value, **edit.beside}
        for name, value in fields.items():
            if len(encode(value)) > store.limit:
                fields[name] = store.put(fork_id, value)
        mark = {MARK: {"by": actor, "from_digest": edit.before}}
        found[edit.seq] = changed_body(rows[edit.seq - 1].entry.body, fields | mark)
    return found
