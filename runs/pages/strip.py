"""The journal strip: a run as a barcode, one bar an entry, height and hue by kind, a dashed line at a new epoch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe

from journal.entries import Kind
from journal.outlines import Outline

MOST = 40  # entries that a strip shows
PITCH = 4
HEIGHT = 18
PERSON, MACHINE = ("APPROVAL", 4), ("TIMER", 9)
# The class of a bar's hue, and where it begins from above; all end at the foot.
LOOKS: dict[str, tuple[str, int]] = {
    Kind.START: ("START", 8), Kind.PIN: ("PIN", 8), Kind.PLAN: ("PLAN", 11), Kind.TOOL_CALL: ("TOOL_CALL", 2),
    Kind.ATTEMPT: ("TOOL_CALL", 5), Kind.OBS: ("OBS", 6), Kind.ERROR: ("ERROR", 2), Kind.APPROVAL: PERSON,
    Kind.ASK: PERSON, Kind.ANSWER: PERSON, Kind.RECONCILE: ("RECONCILE", 2), Kind.TIMER: MACHINE,
    Kind.SIGNAL: ("SIGNAL", 9), Kind.CHILD: MACHINE, Kind.CONTROL: ("START", 4), Kind.NOTE: ("PLAN", 14),
    Kind.DONE: ("DONE", 0),
}  # fmt: skip
UNKNOWN = ("PLAN", 11)


@dataclass(frozen=True, slots=True)
class Bar:
    look: str
    x: int
    y: int
    copied: bool = False

    @property
    def classes(self) -> str:
        return f"{self.look} copied" if self.copied else self.look

    @property
    def height(self) -> int:
        return HEIGHT - self.y


@dataclass(frozen=True, slots=True)
class Strip:
    """`gaps`: where the epoch rises. `says` is the sentence for whoever does not see it."""

    bars: Sequence[Bar]
    gaps: Sequence[float]
    width: int
    says: str

    @property
    def shapes(self) -> SafeString:
        """The bars and lines as SVG. A page has thousands of them: a template would take longer than the database."""
        bars = "".join(
            f'<rect class="{bar.classes}" x="{bar.x}" y="{bar.y}" width="3" height="{bar.height}"></rect>'
            for bar in self.bars
        )
        return mark_safe(bars + "".join(f'<path class="gap" d="M{x} 0v{HEIGHT}"></path>' for x in self.gaps))


def strip_of(entries: Sequence[Outline], pending: Collection[int], copied: int = 0) -> Strip:
    """`pending`: the seqs of intents that have no result and that nobody can tell of. `copied`: the last entry that a
    fork has of its source, 0 for a run that is none."""
    bars, gaps, x, epoch = [], [], 0, entries[0].epoch if entries else 0
    for entry in entries:
        if entry.epoch > epoch >= 1:
            gaps.append(x + PITCH / 2 - 0.5)
            x += PITCH
        epoch = max(entry.epoch, epoch)
        look, y = ("PENDING", 0) if entry.seq in pending else LOOKS.get(entry.kind, UNKNOWN)
        bars.append(Bar(look, x, y, entry.seq <= copied))
        x += PITCH
    return Strip(bars, gaps, x, sentence(entries, len(gaps), bool(pending), copied))


def sentence(entries: Sequence[Outline], gaps: int, doubt: bool, copied: int = 0) -> str:
    if not entries:
        return "No entries"
    last = entries[-1].seq
    said = "1 entry" if last == 1 else f"{last:,} entries"
    if last > len(entries):
        said += f", the last {len(entries)} shown"
    if copied:
        said += f", the first {copied} copied"
    if gaps:
        said += ", 1 new epoch" if gaps == 1 else f", {gaps} new epochs"
    if doubt:
        said += ", an intent without a result"
    return f"{said}, the last is {entries[-1].kind}"
