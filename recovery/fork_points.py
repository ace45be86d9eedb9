"""Where a journal may be cut for a fork. Pure.

A fork begins at a frontier: behind an entry at which no step was unsettled, the steps of one decision all before it or
all behind it. So no call, wait or child is in both, and the agent's code finds each of its decisions whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from journal.entries import Entry, Kind
from runs.erased import ERASED
from runs.state import RunState


@dataclass(frozen=True, slots=True)
class ForkPoints:
    """`seqs`: where it may be cut, in order. `whys`: why not elsewhere, by seq."""

    last_seq: int
    seqs: Sequence[int]
    whys: dict[int, str]

    def allows(self, at: int) -> bool:
        return self.before(at) == at

    def before(self, at: int) -> int | None:
        """The last one up to `at`."""
        place = bisect_right(self.seqs, at)
        return self.seqs[place - 1] if place else None

    def after(self, at: int) -> int | None:
        """The first one behind `at`."""
        place = bisect_right(self.seqs, at)
        return self.seqs[place] if place < len(self.seqs) else None

    def why_not(self, at: int) -> str:
        if at < 1 or at > self.last_seq:
            return f"the journal has the entries 1 to {self.last_seq}"
        return self.whys.get(at, "")


def fork_points(run_id: UUID, entries: Sequence[Entry]) -> ForkPoints:
    """Of a whole journal."""
    state = RunState(run_id)
    whys: dict[int, str] = {}
    stop = ""
    for entry in entries:
        stop = stop or stopping(entry)
        if not stop:
            state.apply(entry)
        if stop or (why := open_at(state)):
            whys[entry.seq] = stop or why
    for first, last in spans(state):
        for seq in range(first, last):
            whys.setdefault(seq, f"one decision made the steps up to entry {last}")
    last_seq = entries[-1].seq if entries else 0
    return ForkPoints(last_seq, [entry.seq for entry in entries if entry.seq not in whys], whys)


def stopping(entry: Entry) -> str:
    """Why nothing can be forked from this entry on."""
    if entry.kind == Kind.DONE:
        return "the run had ended"
    if entry.body.get("$") == ERASED:
        return f"entry {entry.seq} was erased"
    if entry.is_beyond:
        return f"entry {entry.seq} was written by a newer version"
    if entry.kind == Kind.CONTROL and entry.body.get("verb") == "cancel":
        return f"the run was cancelled in entry {entry.seq}"
    return ""


def open_at(state: RunState) -> str:
    """Which step is unsettled."""
    slot = next(iter(state.open.values()), None)
    return f"{slot.tool} (step {slot.step}, entry {slot.seq}) was not settled" if slot is not None else ""


def spans(state: RunState) -> list[tuple[int, int]]:
    """The first and the last entry that begins a step, of each decision that made several."""
    found = [[state.slots[step].seq for step in made.steps] for made in state.decisions if len(made.steps) > 1]
    return [(seqs[0], seqs[-1]) for seqs in found]
