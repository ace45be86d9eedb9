"""The journal as a scale: a mark an entry, or one for some entries of a long journal; numbers where they fit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from journal.entries import Entry, Kind
from runs.state import RunState

MOST_MARKS = 120
MOST_NUMBERS = 9
PENDING = "PENDING"  # an intent that nobody knows the outcome of
# Of the entries behind one mark, the one that says most gives its look.
LOUDEST = (PENDING, Kind.ERROR, Kind.RECONCILE, Kind.APPROVAL, Kind.ASK, Kind.ANSWER, Kind.CONTROL, Kind.DONE,
           Kind.CHILD, Kind.SIGNAL, Kind.TIMER, Kind.TOOL_CALL, Kind.OBS, Kind.START, Kind.PIN)  # fmt: skip
LOUDNESS = {kind: len(LOUDEST) - n for n, kind in enumerate(LOUDEST)}


@dataclass(frozen=True, slots=True)
class Mark:
    """`x` in percent, of the middle of the seqs from `first` to `last`."""

    x: float
    look: str
    first: int
    last: int
    major: bool


@dataclass(frozen=True, slots=True)
class Ruler:
    last: int
    marks: Sequence[Mark]
    numbers: Sequence[tuple[float, int]]
    held: tuple[float, int] | None  # the first intent in doubt
    frontier: int

    @property
    def grouped(self) -> int:
        """How many entries a mark stands for."""
        return self.marks[0].last - self.marks[0].first + 1 if self.marks else 1


def ruler(entries: Sequence[Entry], state: RunState, *, held: bool) -> Ruler:
    """`held`: a live session drives the run, so that an open call is under way and not in doubt."""
    last = state.seq
    doubt = [] if held or state.done is not None else [slot.seq for slot in state.open.values() if slot.in_doubt]
    each, every = ceil(last / MOST_MARKS), step_of_numbers(last)
    marks = []
    for at in range(0, len(entries), max(each, 1)):
        behind = entries[at : at + max(each, 1)]
        kinds = [PENDING if entry.seq in doubt else entry.kind for entry in behind]
        look = max(kinds, key=lambda kind: LOUDNESS.get(kind, 0))
        first, end = behind[0].seq, behind[-1].seq
        major = first == 1 or any(n % every == 0 for n in range(first, end + 1))
        marks.append(Mark(place((first + end) / 2, last), look, first, end, major))
    numbers = [(place(n, last), n) for n in [1, *range(every, last + 1, every)] if last - n >= every / 2 or n == last]
    first_doubt = min(doubt, default=None)
    if first_doubt is not None:
        near = every / 2 if last > MOST_NUMBERS else 0.5
        numbers = [(x, n) for x, n in numbers if abs(n - first_doubt) > near]
    stop = None if first_doubt is None else (place(first_doubt, last), first_doubt)
    return Ruler(last, marks, list(dict.fromkeys(numbers)), stop, state.frontier)


def step_of_numbers(last: int) -> int:
    """1, 5, 10, 25, 50, 100, 250 … so that only a few numbers stand below the scale."""
    for power in range(12):
        for part in (1, 2.5, 5) if power else (1, 5):
            every = int(part * 10**power)
            if last / every <= MOST_NUMBERS:
                return every
    return last


def place(seq: float, last: int) -> float:
    """The thumb of a range input goes from the first to the last seq."""
    return round(100 * (seq - 1) / (last - 1), 3) if last > 1 else 0.0
