"""What happened before something came to wait for a person, in a few lines that lead to their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journal.entries import Entry, Kind
from runs.pages.summaries import summary
from runs.slots import ASKS_FIRST, Slot
from runs.state import MACHINES, RunState

EARLIER = 5  # entries of other steps that are told before the intent's own
TELLING = frozenset({Kind.OBS, Kind.ANSWER, Kind.SIGNAL, Kind.CHILD, Kind.CONTROL, Kind.PLAN})


@dataclass(frozen=True, slots=True)
class Before:
    """A line of what happened before."""

    entry: Entry
    glyph: str
    hue: str
    text: str


def happened_before(state: RunState, slot: Slot, entries: Sequence[Entry]) -> list[Before]:
    """The start, the last few entries of other steps, then everything that happened to this one."""
    earlier = [e for e in entries if 1 < e.seq < slot.seq and e.step != slot.step and is_telling(e)]
    own = [e for e in entries if e.step == slot.step or (e.seq > slot.seq and is_take_over(e))]
    return [line_of(state, slot, e) for e in [*entries[:1], *earlier[-EARLIER:], *own]]


def line_of(state: RunState, slot: Slot, e: Entry) -> Before:
    glyph, hue = GLYPHS.get(e.kind, (f"k-{e.kind}", "off"))
    text = summary(e)
    match e.kind:
        case Kind.START:
            text = f"Started by {e.actor}: {text}"
        case Kind.OBS:
            of = state.slots.get(e.step or 0)
            text = f"{of.tool if of else ''}: {text}"
            hue = "ok" if e.body.get("outcome") == "succeeded" else "reconcile" if e.settles is None else "failed"
        case Kind.TOOL_CALL:
            text = f"{slot.tool}: intent written at seq {e.seq}"
            hue = "reconcile" if slot.in_doubt else "off"
        case Kind.ATTEMPT:
            sends = [attempt.seq for attempt in slot.sends]
            number = f"attempt {sends.index(e.seq) + 1}, source: {e.body.get('source', '')}" if e.seq in sends else ""
            text = f"Sent, {number}" if number else "Tried: the tool asked for approval first"
        case Kind.ERROR if e.body.get("code") == ASKS_FIRST:
            glyph, hue = "s-approval", "approval"
        case Kind.APPROVAL:
            glyph, hue, text = approval_line(e)
        case Kind.NOTE if is_take_over(e):
            glyph, hue, text = "s-lost", "lost", f"Taken over under epoch {e.body.get('epoch', '')}"
    return Before(e, glyph, hue, text)


def is_telling(e: Entry) -> bool:
    if e.kind == Kind.PLAN:
        return bool(e.body.get("thought"))
    return e.kind in TELLING


def is_take_over(e: Entry) -> bool:
    return e.kind == Kind.NOTE and e.actor in MACHINES and "epoch" in e.body


GLYPHS: dict[str, tuple[str, str]] = {
    Kind.ERROR: ("s-failed", "failed"), Kind.RECONCILE: ("k-RECONCILE", "reconcile"),
    Kind.ASK: ("s-approval", "approval"), Kind.ANSWER: ("s-ok", "ok"),
}  # fmt: skip
APPROVALS = {
    "granted": ("s-ok", "ok", "Granted"), "denied": ("s-failed", "failed", "Rejected"),
    "edited": ("s-approval", "approval", "Edited"), "expired": ("s-off", "off", "Expired"),
    "asked": ("s-approval", "approval", "Asked back"), "answered": ("s-ok", "ok", "Answered"),
}  # fmt: skip


def approval_line(e: Entry) -> tuple[str, str, str]:
    verdict, note = str(e.body.get("verdict", "")), e.body.get("note") or e.body.get("why") or ""
    glyph, hue, word = APPROVALS.get(verdict, ("s-approval", "approval", "Asked for approval"))
    who = "" if e.actor in MACHINES else f" by {e.actor}"
    return glyph, hue, f"{word}{who}" + (f": {note}" if note else "")
