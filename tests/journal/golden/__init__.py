"""Journals that earlier versions wrote, as `journal export` writes them, each with what its runs' states were told as.

At a release, export runs that show what is new, and freeze what this version makes of them:

    python manage.py journal export RUN… > tests/journal/golden/v2/what-is-new.jsonl
    python -m tests.journal.golden tests/journal/golden/v2/what-is-new.jsonl

The second never touches a state that is there. A golden journal is never changed: a version that reads it otherwise is
wrong, or lacks an upcaster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from journal.encoding import tagged
from journal.entries import Entry
from journal.export import read_line
from runs.run_view import RunView
from runs.slots import Approval, Slot
from runs.state import RunState, fold

FOLDER = Path(__file__).parent


def journals_in(path: Path) -> dict[UUID, list[Entry]]:
    lines = map(read_line, path.read_text().splitlines())
    return {run_id: list(entries) for run_id, entries in groupby(lines, key=lambda entry: entry.run_id)}


def states_of(journals: dict[UUID, list[Entry]]) -> dict[str, Any]:
    """What each run's state is told as, in JSON's own types."""
    return {str(run_id): tagged(told(fold(run_id, entries))) for run_id, entries in journals.items()}


def told(state: RunState) -> dict[str, Any]:
    """A state as agents, pages and the engine see it; not how it is kept."""
    view = RunView(state)
    held = {"held": state.held, "braked": state.braked, "diverged": state.diverged, "cancel": state.cancel,
            "quarantined": state.quarantined}  # fmt: skip
    return {
        "agent": state.agent, "release": state.release_id, "input": view.input, "labels": state.labels,
        "parent": state.parent, "plan": view.plan, "usage": view.usage, "now": view.now.isoformat(),
        "steps": {str(step): told_slot(slot) for step, slot in state.slots.items()},
        "decisions": [[d.seq, d.seen, d.by_model, d.join, d.steps] for d in state.decisions],
        "signals": [[s.seq, s.name, s.payload, s.id, s.actor, s.step] for s in view.signals],
        "controls": {name: [c.seq, c.actor, c.reason] for name, c in held.items() if c is not None},
        "model_attempts": [[a.number, a.seq, a.error, a.due] for a in state.model_attempts],
        "next_step": state.next_step, "frontier": state.frontier, "seq": state.seq, "done": state.done,
    }  # fmt: skip


def told_slot(slot: Slot) -> dict[str, Any]:
    return {
        "kind": slot.kind, "seq": slot.seq, "tool": slot.tool, "id": slot.id, "args": slot.args, "key": slot.key,
        "effect": slot.effect, "digest": slot.digest, "gate": slot.gate, "due": slot.due, "recorded": slot.recorded,
        "outcome": slot.outcome, "result": slot.result, "error": slot.error, "obs_seq": slot.obs_seq,
        "settled_by": slot.settled_by, "state": slot.state, "cleared_by": slot.cleared_by, "undecided": slot.undecided,
        "attempts": [[a.number, a.seq, a.epoch, a.source, a.error, a.due] for a in slot.attempts],
        "approval": slot.approval and [slot.approval.verdict, slot.approval.seq, slot.approval.actor],
        "edited": slot.edited and [slot.edited.by, slot.edited.args, slot.edited.seq, slot.editors],
        "consent": slot.approval and told_consent(slot.approval),
    }  # fmt: skip


def told_consent(approval: Approval) -> dict[str, Any]:
    return {
        "policy": approval.policy.content, "granted": approval.granted_by, "expires": approval.expires,
        "why": approval.why, "fields": approval.fields, "digest": approval.digest, "release": approval.release,
        "question": approval.question and [approval.question.by, approval.question.text],
    }  # fmt: skip


def missed(stored: Any, found: Any, path: str = "") -> list[str]:
    """Where `found` is not what is stored. It may know more: keys that were not told then are not compared."""
    if isinstance(stored, dict) and isinstance(found, dict):
        return [fault for key, value in stored.items() for fault in missed(value, found.get(key), f"{path}/{key}")]
    return [] if stored == found else [f"{path}: {stored!r} is read as {found!r}"]


def freeze(paths: Iterable[Path]) -> None:
    """Writes the state beside each journal. FileExistsError if there is one."""
    for path in paths:
        text = json.dumps(states_of(journals_in(path)), indent=1)
        with open(path.with_suffix(".json"), "x") as file:
            file.write(text + "\n")
