"""Golden journals: a run's journal as a file, compared with what the code writes, and decided again by newer code."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from journal.encoding import decode, tagged
from journal.entries import Entry, Kind
from journal.upcasters import upcast
from runs.agents import Agent
from runs.redeciding import DECISIONS, Divergence
from runs.redeciding import redecide as decided_again
from runs.testing.trial import Trial

WRITE = "HOLDFAST_GOLDEN"
# They change with any edit of a file or a docstring, or with a package, while the run stays the same.
PASSING = {
    "START": ("release", "code"), "TOOL_CALL": ("digest",), "APPROVAL": ("digest", "release"), "ATTEMPT": ("digest",),
    "PLAN": ("prices",),
}  # fmt: skip


class GoldenDiffers(AssertionError):
    """The journal is not the one in the file."""


def golden(run: Trial, path: str | Path, *, write: bool | None = None) -> None:
    """Compare the run's journal with the file's. A missing file is written, and so is one with `write=True` or with
    HOLDFAST_GOLDEN=write in the environment. Raises GoldenDiffers with the lines that differ."""
    path = Path(path)
    lines = [_line(entry) for entry in run.journal]
    if write is None:
        write = os.environ.get(WRITE) == "write"
    if write or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        return
    recorded = path.read_text().splitlines()
    if recorded != lines:
        said = "\n".join(difflib.unified_diff(recorded, lines, str(path), "this run", lineterm="", n=0))
        raise GoldenDiffers(f"{path} differs from this run ({WRITE}=write accepts the new one):\n{said}")


def replay(agent: Agent, source: str | Path | Sequence[Entry]) -> str | None:
    """Decide a stored journal again, without any effect. None: the agent decides the same, and its calls would be let
    through as they were; else the first thing that would be otherwise. Other words for the same moves are the same.

    `source`: the path of a golden journal or of an export (`manage.py journal export`), or entries.
    """
    entries = read_journal(source) if isinstance(source, (str, Path)) else list(source)
    if not entries or entries[0].kind != Kind.START:
        raise ValueError("this is no journal: its first entry is no START")
    if entries[0].body.get("agent") != agent.name:
        raise ValueError(f"this is a journal of {entries[0].body.get('agent')!r}, not of {agent.name!r}")
    first = decided_again(agent, entries).first
    return told(first) if first is not None else None


def redecide(agent: Agent, entries: Sequence[Entry]) -> str | None:
    """The first decision of the agent's own code that would be another, for entries that are surely the agent's."""
    found = decided_again(agent, entries).divergences
    return next((told(each) for each in found if each.kind in DECISIONS), None)


def told(divergence: Divergence) -> str:
    if divergence.kind in DECISIONS:
        return f"entry {divergence.seq}: recorded {divergence.recorded}, decided {divergence.attempted}"
    return f"entry {divergence.seq}: {divergence.says}"


def read_journal(path: str | Path) -> list[Entry]:
    """The entries of a golden journal or an export. Raises ValueError naming the line that is no entry."""
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if line.strip():
            try:
                found.append(_entry(json.loads(line)))
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                said = "a golden journal or an export (manage.py journal export) is wanted"
                raise ValueError(f"{path}, line {number}, is no entry of a journal: {said}") from error
    return found


def _line(entry: Entry) -> str:
    body = {key: value for key, value in entry.body.items() if key not in PASSING.get(entry.kind, ())}
    said = {
        "run_id": str(entry.run_id), "seq": entry.seq, "kind": entry.kind, "v": entry.v, "step": entry.step,
        "settles": entry.settles, "epoch": entry.epoch, "actor": entry.actor,
        "recorded_at": entry.recorded_at.isoformat(), "body": tagged(body),
    }  # fmt: skip
    return json.dumps(said)


def _entry(line: dict[str, Any]) -> Entry:
    body = line["body"]  # an export has the bytes as text, a golden journal the tagged value
    text = body if isinstance(body, str) else json.dumps(body)
    kept = dict.fromkeys(PASSING.get(line["kind"], ()), "") if line["kind"] != Kind.PLAN else {}
    read = upcast(line["kind"], line["v"], decode(text.encode("latin-1")))
    return Entry(
        UUID(line["run_id"]), line["seq"], line["kind"], line["v"], line["step"], line["settles"], line["epoch"],
        line["actor"], datetime.fromisoformat(line["recorded_at"]), kept | read,
    )  # fmt: skip
