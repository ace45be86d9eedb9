"""A journal as people read it: steps, each with its entries, on one axis of time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from journal.entries import Entry, Kind
from runs.pages.summaries import summary
from runs.slots import Signal, Slot
from runs.state import MODEL_ACTOR, RunState

FOLD_SECONDS = 30.0  # a longer wait is folded into a narrow band
FOLD_PERCENT = 7.0
TICKS = (0, 25, 50, 75, 100)
FEW_TICKS = (0, 100)  # milliseconds need more room


@dataclass(frozen=True, slots=True)
class Bar:
    """Places in percent of the lane; `look` is the pattern, as run.css draws it (pt is a moment)."""

    look: str
    x: float
    width: float


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
    bar: Bar | None = None

    outcome: str = ""  # of an intent; when it changes, an inspector that shows the intent is drawn anew
    slot: Slot | None = None
    signal: Signal | None = None  # of a SIGNAL: with the step that took it
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
    def pending(self) -> bool:
        return any(row.look == "pending" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Axis:
    """Time to percent. `folds` are the bands (x, width) of waits that were folded; `ticks` are (x, time of day)."""

    cuts: list[tuple[float, float]]  # (seconds since the first entry, percent), ascending
    start: datetime
    folds: list[tuple[float, float]]
    ticks: list[tuple[float, str]]

    def place(self, at: datetime) -> float:
        seconds = (at - self.start).total_seconds()
        i = min(max(bisect_right([t for t, _ in self.cuts], seconds), 1), len(self.cuts) - 1)
        (t0, x0), (t1, x1) = self.cuts[i - 1], self.cuts[i]
        part = (seconds - t0) / (t1 - t0) if t1 > t0 else 0.0
        return round(x0 + min(max(part, 0.0), 1.0) * (x1 - x0), 3)

    def bar(self, look: str, began: datetime, ended: datetime) -> Bar:
        x = self.place(began)
        return Bar(look, x, round(self.place(ended) - x, 3))


@dataclass(frozen=True, slots=True)
class Timeline:
    groups: list[Group]
    axis: Axis
    around: Around


def timeline(
    entries: Sequence[Entry],
    state: RunState,
    *,
    now: datetime,
    held: bool,
    holders: Mapping[str, Holder],
    around: Around = ALONE,
) -> Timeline:
    """`held`: a live session drives the run, so an open call is under way and not in doubt. `holders` by session id."""
    signals = {signal.seq: signal for signal in state.signals}
    rows = [row_of(entry, state, now, held) for entry in entries]
    for row in rows:
        row.signal = signals.get(row.entry.seq)
        if row.signal is not None and (waited := waiter(row.signal, state)) is not None:
            row.look, row.began = "timer", waited.at
        if row.slot is not None and row.opens:
            row.place = around.places.get(row.slot.step, "")
            row.child = around.children.get(row.slot.child) if row.slot.kind == "child" and row.slot.child else None
    for row, previous in zip(rows[1:], entries, strict=False):
        row.gap = gap_between(previous, row.entry, holders)
    running = any(row.until for row in rows)
    axis = axis_over([e.recorded_at for e in entries] + ([now] if running else []), now)
    for row in rows:
        row.bar = axis.bar(row.look, row.began, row.until or row.entry.recorded_at)
        if row.gap is not None:
            row.gap.bar = axis.bar("gap", row.gap.began, row.gap.ended)
    return Timeline(grouped(rows, state), axis, around)


# -- steps ------------------------------------------------------------------------------------------------------------


def grouped(rows: Sequence[Row], state: RunState) -> list[Group]:
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
                steps[step] = Group(step, slot.tool if slot else "", lead, beside_of(slot) if slot else "")
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
            groups.append(Group(0, "Start", [row]))
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


# -- time -------------------------------------------------------------------------------------------------------------


def axis_over(times: Sequence[datetime], now: datetime) -> Axis:
    start = times[0] if times else now
    points = sorted({(at - start).total_seconds() for at in times} | {0.0})
    spans = list(pairwise(points))
    waits = [span for span in spans if span[1] - span[0] > FOLD_SECONDS]
    fold = min(FOLD_PERCENT, 50 / len(waits)) if waits else 0.0
    busy = sum(b - a for a, b in spans if b - a <= FOLD_SECONDS)
    rest = 100 - fold * len(waits)
    cuts, folds, x = [(0.0, 0.0)], [], 0.0
    for a, b in spans:
        width = fold if b - a > FOLD_SECONDS else rest * (b - a) / busy
        if b - a > FOLD_SECONDS:
            folds.append((round(x, 3), round(width, 3)))
        x += width
        cuts.append((b, x))
    cuts.append((points[-1] + 1e-6, max(x, 0.0)))
    return Axis(cuts, start, folds, ticks(cuts, folds, start))


def ticks(
    cuts: Sequence[tuple[float, float]], folds: Sequence[tuple[float, float]], start: datetime
) -> list[tuple[float, str]]:
    """Times at a few places of the lane, none inside a fold; milliseconds where seconds would repeat."""
    found: list[tuple[float, datetime]] = []
    for x in TICKS:
        if x > cuts[-1][1] + 0.01 or any(left <= x <= left + width for left, width in folds):
            continue
        i = min(max(bisect_right([place for _, place in cuts], x), 1), len(cuts) - 1)
        (t0, x0), (t1, x1) = cuts[i - 1], cuts[i]
        seconds = t0 + (t1 - t0) * ((x - x0) / (x1 - x0) if x1 > x0 else 0.0)
        found.append((float(x), start.astimezone(UTC) + timedelta(seconds=seconds)))
    if len({f"{at:%H:%M:%S}" for _, at in found}) == len(found):
        return [(x, f"{at:%H:%M:%S}") for x, at in found]
    return [(x, f"{at:%H:%M:%S}.{at.microsecond // 1000:03}") for x, at in found if x in FEW_TICKS]
