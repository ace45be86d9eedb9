"""A fork beside what it was forked from, or two runs of a family, step by step. Pure.

What both have is the same entry, written once and copied; behind it the steps are set side by side by their number, as
the agent's code counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal.entries import Entry
from recovery.fork_edits import MARK
from runs.relatives import equal
from runs.slots import Slot
from runs.state import fold

COPIED, EDITED, EQUAL, DIFFERS, ONLY_FORK, ONLY_SOURCE = (
    "copied", "edited", "equal", "differs", "only in the fork", "only in the source",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepPair:
    """`how`: copied; edited (copied, with a person's value in it); equal (the same move, and the same came of it);
    differs; only in the fork; only in the source. `differs`: in what: move, what was sent, outcome, result."""

    step: int
    how: str
    fork: Slot | None
    source: Slot | None
    differs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ForkCompared:
    """`at`: the last entry that both have. `edits`: entries up to there that a person edited in the fork. `endings`:
    DONE of the fork and of the source, None while they have not ended. `counts`: steps by `how`."""

    at: int
    steps: Sequence[StepPair]
    edits: Sequence[Entry]
    endings: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(pair.how for pair in self.steps)


def forks_compared(fork: Sequence[Entry], source: Sequence[Entry]) -> ForkCompared:
    """Both journals whole."""
    at = common_end(fork, source)
    mine, theirs = fold(fork[0].run_id, fork), fold(source[0].run_id, source)
    edits = [entry for entry in fork[:at] if MARK in entry.body]
    edited = {entry.step for entry in edits}
    steps = list(pairs(mine.slots, theirs.slots, at, edited))
    return ForkCompared(at, steps, edits, (mine.done, theirs.done))


def common_end(fork: Sequence[Entry], source: Sequence[Entry]) -> int:
    """The last entry that was first written in the same place."""
    both = zip(fork, source, strict=False)
    return next((mine.seq - 1 for mine, theirs in both if origin(mine) != origin(theirs)), min(len(fork), len(source)))


def origin(entry: Entry) -> tuple[str, int]:
    """In which journal it was first written, and its seq there."""
    copied = entry.body.get("copied_from")
    return (copied["run"], copied["seq"]) if copied else (str(entry.run_id), entry.seq)


def pairs(mine: Mapping[int, Slot], theirs: Mapping[int, Slot], at: int, edited: set[int | None]) -> Iterator[StepPair]:
    for step in range(1, max(len(mine), len(theirs)) + 1):
        one, other = mine.get(step), theirs.get(step)
        if one is None or other is None:
            yield StepPair(step, ONLY_SOURCE if one is None else ONLY_FORK, one, other)
        elif max(one.seq, other.seq) <= at:
            yield StepPair(step, EDITED if step in edited else COPIED, one, other)
        else:
            found = differences(one, other)
            yield StepPair(step, DIFFERS if found else EQUAL, one, other, found)


def differences(mine: Slot, theirs: Slot) -> list[str]:
    """In what two steps of the same number differ."""
    if mine.kind != theirs.kind or not equal(mine.recorded, theirs.recorded):
        return ["move"]
    found = [] if equal(mine.args, theirs.args) else ["what was sent"]
    if mine.outcome != theirs.outcome:
        found.append("outcome")
    elif not equal([mine.result, mine.error], [theirs.result, theirs.error]):
        found.append("result")
    return found
