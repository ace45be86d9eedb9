"""A journal as people read it: steps, each with its entries, on one axis of time. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from journal.entries import Entry, Kind
from runs.pages.axis import AnyAxis, Bar, axis_over, seq_axis
from runs.pages.heard import told_at
from runs.pages.summaries import asked_again, summary
from runs.slots import Signal, Slot
from runs.state import MODEL_ACTOR, RunState

FOLDED, TIME, SEQ = AXES = ("folded", "time", "seq")


@dataclass(slots=True)
class Row:
    """One entry. `seconds` is what it took, None for a moment; `flag` is said aloud behind the text."""

    entry: Entry
    text: str
    began: datetime
    look: str
    flag: str = ""
    until: datetime | None = None
    gap: Gap | None = None
    lost_at: datetime | None = None  # a send whose worker was lost before it was answered
    bar: Bar | None = None

    outcome: str = ""  # of an intent; when it changes, an inspector that shows the intent is drawn anew
    slot: Slot | None = None
    signal: Signal | None = None  # of a SIGNAL: with the step that took it
    told_at: int | None = None  # of a SIGNAL: the request that told the model of it
    child: Kin | None = None  # of a CHILD that was spawned
    place: str = ""  # of a call that waits for a permit

    @property
    def seconds(self) -> float | None:
        end = self.until or self.entry.recorded_at
        return None if self.look == "pt" else (end - self.began).total_seconds()

    @property
    def opens(self) -> bool:
        """Whether its step began here."""
        return self.slot is not None and self.slot.seq == self.entry.seq

    @property
    def cells(self) -> list[str]:
        """The partial for what stands below the line, by the kind's file name."""
        return [f"runs/row/{self.entry.kind}.html", "runs/row/other.html"]


@dataclass(frozen=True, slots=True)
class Kin:
    """Another run of the tree, as its row tells it."""

    id: UUID
    agent: str
    status: str
    reason: str
    depth: int = 0
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """What no journal of this run says: its children's state by id, and places in line by step."""

    children: Mapping[UUID, Kin] = field(default_factory=dict)
    places: Mapping[int, str] = field(default_factory=dict)


ALONE = Around()


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker session that held the run."""

    name: str
    heartbeat_at: datetime


@dataclass(slots=True)
class Gap:
    """A stretch that nobody held, drawn before the row of the new holder."""

    epoch: int
    began: datetime
    ended: datetime
    lost: Holder | None
    taker: Holder | None
    bar: Bar | None = None

    @property
    def seconds(self) -> float:
        return (self.ended - self.began).total_seconds()


@dataclass(slots=True)
class Group:
    """A step, or what stands outside any step (number None)."""

    number: int | None
    title: str
    rows: list[Row] = field(default_factory=list)
    beside: str = ""  # what the step is among those that were decided with it

    @property
    def id(self) -> str:
        """Of its place in the page."""
        return f"step-{self.number}" if self.number else f"at-{self.title.lower() or 'top'}"

    @property
    def pending(self) -> bool:
        return any(row.look == "pending" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Timeline:
    groups: list[Group]
    axis: AnyAxis
    around: Around
    start: datetime


def timeline(
    entries: Sequence[Entry],
    state: RunState,
    *,
    now: datetime,
    held: bool,
    holders: Mapping[str, Holder],
    around: Around = ALONE,
    names: Mapping[int, str] | None = None,
    by: str = FOLDED,
) -> Timeline:
    """`held`: a live session drives the run, so an open call is under way and not in doubt. `holders` by session id.

    `names`: what people call a step, by number, where it is not its tool. `by`: one of AXES.
    """
    signals = {signal.seq: signal for signal in state.signals}
    rows = [row_of(entry, state, now, held) for entry in entries]
    for row in rows:
        row.signal = signals.get(row.entry.seq)
        row.told_at = told_at(row.signal, state) if row.signal is not None else None
        if row.signal is not None and (waited := waiter(row.signal, state)) is not None:
            row.look, row.began = "timer", waited.at
        if row.slot is not None and row.opens:
            row.place = around.places.get(row.slot.step, "")
            row.child = around.children.get(row.slot.child) if row.slot.kind == "child" and row.slot.child else None
    say_after_what(rows)
    owned_from = None
    for before, row in pairwise(rows):
        row.gap = gap_between(before.entry, row.entry, holders)
        if row.gap is not None:
            owned_from = row.gap.ended
            if is_send(before.entry) and before.until is None:
                before.lost_at = row.gap.began
        if owned_from is not None and row.look in OF_WORKERS:
            row.began = max(row.began, owned_from)  # before that nobody worked on it
    axis = axis_of(rows, now, by, grows=held)
    for row in rows:
        row.bar = bar_of(row, axis)
        if row.gap is not None:
            row.gap.bar = axis.bar("gap", row.gap.began, row.gap.ended, row.entry.seq)
    start = entries[0].recorded_at if entries else now
    return Timeline(grouped(rows, state, names or {}), axis, around, start)


def say_after_what(rows: Sequence[Row]) -> None:
    """A model that is asked again is so after something."""
    failed: Entry | None = None
    for row in rows:
        if row.entry.step is not None or row.entry.is_beyond:
            continue
        if row.entry.kind == Kind.ATTEMPT and failed is not None and not row.entry.body.get("lost"):
            row.text = asked_again(row.entry, failed)
        if row.entry.kind in (Kind.ERROR, Kind.PLAN):
            failed = row.entry if row.entry.kind == Kind.ERROR else None


def axis_of(rows: Sequence[Row], now: datetime, by: str, *, grows: bool) -> AnyAxis:
    times = [row.entry.recorded_at for row in rows]
    if by == SEQ:
        return seq_axis(rows[0].entry.seq if rows else 1, times, grows=grows)
    lost = {row.gap.began for row in rows if row.gap is not None}
    until = {now} if any(row.until for row in rows) else set()
    return axis_over(sorted({*times, *lost, *until}), now, folded=by != TIME, grows=grows)


def bar_of(row: Row, axis: AnyAxis) -> Bar:
    if row.lost_at is not None:
        return axis.bar("lost", row.began, row.lost_at, row.entry.seq + 1)
    if row.until is not None:
        return axis.bar(row.look, row.began, row.until)
    return axis.bar(row.look, row.began, row.entry.recorded_at, row.entry.seq)


# -- steps ------------------------------------------------------------------------------------------------------------


def grouped(rows: Sequence[Row], state: RunState, names: Mapping[int, str]) -> list[Group]:
    """Rows in their steps. A decision stands with the first step it made, a signal with the step that waited for it, a
    person's word with the step under way."""
    groups: list[Group] = []
    steps: dict[int, Group] = {}
    lead: list[Row] = []
    for row in rows:
        step, kind = step_of(row, state), row.entry.kind
        if step is not None:
            if step not in steps:
                slot = state.slots.get(step)
                name = names.get(step) or (slot.tool if slot else "")
                steps[step] = Group(step, name, lead, beside_of(slot) if slot else "")
                groups.append(steps[step])
                lead = []
            steps[step].rows.append(row)
        elif kind in (Kind.PLAN, Kind.ATTEMPT, Kind.ERROR) or (lead and kind != Kind.DONE):
            lead.append(row)
        elif kind == Kind.DONE:
            groups.append(Group(None, "End", [*lead, row]))
            lead = []
        elif groups:
            groups[-1].rows.append(row)
        else:
            groups.append(Group(0, "Start", [row]) if row.entry.seq == 1 else Group(None, "", [row]))
    return [*groups, Group(None, "Next", lead)] if lead else groups


def step_of(row: Row, state: RunState) -> int | None:
    """A signal belongs to the step that was waiting when it came."""
    waited = waiter(row.signal, state) if row.signal is not None else None
    return row.entry.step if waited is None else waited.step


def waiter(signal: Signal, state: RunState) -> Slot | None:
    """The step that was waiting when the signal came, and took it."""
    slot = state.slots.get(signal.step) if signal.step is not None else None
    return slot if slot is not None and slot.seq < signal.seq else None


def beside_of(slot: Slot) -> str:
    made = slot.decided
    if made is None or len(made.steps) < 2:
        return ""
    place = f"{made.steps.index(slot.step) + 1} of {len(made.steps)}"
    if made.join != "first":
        return f"{place}, side by side"
    return f"{place}, {OF_FIRST.get(slot.outcome or '', slot.outcome or 'the first ends it')}"


OF_FIRST = {"succeeded": "came first", "cancelled": "withdrawn"}

# -- rows -------------------------------------------------------------------------------------------------------------


def row_of(entry: Entry, state: RunState, now: datetime, held: bool) -> Row:
    slot = state.slots.get(entry.step) if entry.step is not None else None
    text = summary(entry)
    look, began = (moment if entry.is_beyond else LOOKS.get(entry.kind, moment))(entry, slot, state)
    row = Row(entry, text, began, look, slot=slot)
    if slot is not None and entry.seq == slot.seq:
        row.outcome = slot.outcome or slot.state
        if not slot.settled and state.done is None and (waits := wait_of(slot)):
            row.until, row.look = now, waits
    if slot is not None and slot.in_doubt and state.done is None and entry.seq == slot.attempts[-1].seq:
        row.until, row.look = now, "open" if held else "pending"
        row.flag = "" if held else "no result"
    elif slot is not None and slot.in_doubt and state.done is not None and entry.seq == slot.attempts[-1].seq:
        row.flag = "never answered"
    elif entry.step is None and state.model_attempt is not None and entry.seq == state.model_attempt.seq:
        row.until, row.look = now, "open"
    return row


def moment(entry: Entry, slot: Slot | None, state: RunState) -> tuple[str, datetime]:
    return "pt", entry.recorded_at


def plan_look(entry: Entry, slot: Slot | None, state: RunState) -> tuple[str, datetime]:
    """A model's answer took the time since what it was made from; a script decides at once."""
    seen = entry.body.get("seen", 0)
    if entry.actor != MODEL_ACTOR or not 0 < seen < entry.seq <= len(state.times):
        return "pt", entry.recorded_at
    return "plan", state.time_of(seen)


def result_look(entry: Entry, slot: Slot | None, state: RunState) -> tuple[str, datetime]:
    """From the last send before this result to the result."""
    look = {"succeeded": "call", "unknown": "recon"}.get(entry.body.get("outcome", ""), "error")
    sends = [attempt.at for attempt in slot.attempts if attempt.seq < entry.seq] if slot else []
    return (look, sends[-1]) if sends else ("pt", entry.recorded_at)


def approval_look(entry: Entry, slot: Slot | None, state: RunState) -> tuple[str, datetime]:
    asked = entry.body.get("verdict") == "requested" or slot is None
    return ("pt", entry.recorded_at) if asked or slot is None else ("ask", slot.at)


def wait_of(slot: Slot) -> str:
    """How an open step that waits is drawn; a call waits until its first attempt."""
    if slot.kind != "call":
        return WAITS[slot.kind]
    return "" if slot.attempts else "ask" if slot.state == "awaiting_approval" else "timer"


def wait_look(entry: Entry, slot: Slot | None, state: RunState) -> tuple[str, datetime]:
    """What ends a wait took from its beginning."""
    opens = slot is None or entry.seq == slot.seq
    return ("pt", entry.recorded_at) if opens or slot is None else (WAITS.get(slot.kind, "pt"), slot.at)


def reconcile_look(entry: Entry, slot: Slot | None, state: RunState) -> tuple[str, datetime]:
    return "recon", entry.recorded_at


WAITS = {"sleep": "timer", "signal": "timer", "ask": "ask", "child": "child"}  # a kind of wait, and how it is drawn

OF_WORKERS = ("call", "error", "recon")

Look = Callable[[Entry, Slot | None, RunState], tuple[str, datetime]]
LOOKS: dict[str, Look] = {
    Kind.PLAN: plan_look,
    Kind.OBS: result_look,
    Kind.ERROR: result_look,
    Kind.APPROVAL: approval_look,
    Kind.TIMER: wait_look,
    Kind.ASK: wait_look,
    Kind.ANSWER: wait_look,
    Kind.CHILD: wait_look,
    Kind.RECONCILE: reconcile_look,
}


def gap_between(before: Entry, after: Entry, holders: Mapping[str, Holder]) -> Gap | None:
    """A take-over: the new holder's first entry says so, or what came before was a send that its sender never answered.

    Letting go leaves no gap: it happens at a checkpoint.
    """
    noted = after.kind == Kind.NOTE and "session" in after.body
    if after.epoch <= before.epoch or not (noted or is_send(before)):
        return None
    lost, taker = holders.get(str(after.body.get("from"))), holders.get(str(after.body.get("session")))
    began = max(before.recorded_at, min(lost.heartbeat_at, after.recorded_at)) if lost else before.recorded_at
    return Gap(after.epoch, began, after.recorded_at, lost, taker)


def is_send(entry: Entry) -> bool:
    return entry.kind == Kind.ATTEMPT or (entry.kind == Kind.TOOL_CALL and entry.body.get("gate") is None)
