"""What a run has done, what comes next, and what was decided last: its own plan, or else its steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from journal.entries import Entry, Kind
from runs.pages.summaries import summary
from runs.slots import Slot
from runs.state import RunState
from runs.values import line

DONE, NEXT, LATER, DECIDED = "done", "next", "later", "decided"
PLANNED = "planned"  # of a run that has ended: nothing of it is under way or to come
# The words that agents use for an item's state, as the key of the item or in its field `state` or `status`.
STATES = {
    "done": DONE, "completed": DONE, "finished": DONE,
    "next": NEXT, "now": NEXT, "doing": NEXT, "active": NEXT, "current": NEXT, "in_progress": NEXT,
    "later": LATER, "then": LATER, "planned": LATER, "todo": LATER, "pending": LATER,
    "decided": DECIDED, "decision": DECIDED, "agreed": DECIDED,
}  # fmt: skip
TEXTS = ("text", "title", "name", "item", "step", "what", "content")
GLYPHS = {DONE: "s-done", NEXT: "s-running", DECIDED: "k-PLAN", PLANNED: "s-off"}
MOST_PAST, MOST_SHOWN = 4, 14
LONGEST = 90


@dataclass(frozen=True, slots=True)
class Item:
    """`state`: done, next, later, decided, planned, or the agent's own word. `seq`: the entry that it leads to, where
    it is a step."""

    state: str
    text: str
    seq: int | None = None

    @property
    def glyph(self) -> str:
        return GLYPHS.get(self.state, "s-queued")


@dataclass(frozen=True, slots=True)
class Plan:
    """`own`: the agent wrote it, in the decision at `said`; else it is told from the steps. `before` items in front and
    `more` behind are not shown. `decided`: the last decision, in a line, with its seq."""

    items: Sequence[Item]
    own: bool
    said: int | None = None
    before: int = 0
    more: int = 0
    decided: str = ""
    decided_seq: int | None = None

    @property
    def done(self) -> int:
        return self.before + sum(item.state == DONE for item in self.items)


def plan_of(state: RunState, entries: Sequence[Entry]) -> Plan:
    last = entry_at(entries, state.decisions[-1].seq) if state.decisions else None
    decided = summary(last) if last is not None and last.kind == Kind.PLAN else ""
    told = (decided, last.seq if last is not None and decided else None)
    if items := items_of(state.plan):
        said = last_said(state, entries)
        if state.done is not None:
            items = [replace(item, state=PLANNED) if item.state in (NEXT, LATER) else item for item in items]
        before = min(max(sum(item.state == DONE for item in items) - MOST_PAST, 0), max(len(items) - MOST_SHOWN, 0))
        shown = items[before : before + MOST_SHOWN]
        return Plan(shown, True, said, before, len(items) - before - len(shown), *told)
    return from_steps(state, told)


def from_steps(state: RunState, told: tuple[str, int | None]) -> Plan:
    open_ones = list(state.open.values())
    past = [slot for slot in state.slots.values() if slot.settled]
    items = [Item(DONE if slot.outcome == "succeeded" else slot.outcome or "", slot.tool, slot.seq) for slot in past]
    now = [Item(NEXT, slot.tool, slot.seq) for slot in open_ones[:MOST_SHOWN]]
    before = max(len(items) - MOST_PAST, 0)
    return Plan([*items[before:], *now], False, None, before, max(len(open_ones) - MOST_SHOWN, 0), *told)


def items_of(plan: Any) -> list[Item]:
    """None of a plan so long that it is kept outside of the journal."""
    return [item_of(item) for item in plan] if isinstance(plan, list) else []


def item_of(item: Any) -> Item:
    """A text, `{state: text}`, or an object with fields for both; what is neither is shown in one line."""
    if not isinstance(item, Mapping):
        return Item(LATER, line(item, LONGEST))
    if len(item) == 1:
        [(state, text)] = item.items()
        return Item(STATES.get(str(state), line(state, 30)), line(text, LONGEST))
    text = next((item[name] for name in TEXTS if name in item), item)
    state = str(item.get("state") or item.get("status") or LATER)
    return Item(STATES.get(state, line(state, 30)), line(text, LONGEST))


def last_said(state: RunState, entries: Sequence[Entry]) -> int | None:
    """The decision that the plan in force came with."""
    for decision in reversed(state.decisions):
        entry = entry_at(entries, decision.seq)
        if entry is not None and "plan" in entry.body:
            return entry.seq
    return None


def names_of(slots: Iterable[Slot], entries: Sequence[Entry]) -> dict[int, str]:
    """What people call these steps: what the plan had next when they were decided, else the call in a sentence."""
    names = {}
    for slot in slots:
        made = entry_at(entries, slot.decided.seq) if slot.decided is not None else None
        plan = made.body.get("plan") if made is not None else None
        following = [item.text for item in items_of(plan) if item.state == NEXT] if isinstance(plan, list) else []
        said = following[0] if len(following) == 1 else slot.body.get("summary") if slot.kind == "call" else None
        if isinstance(said, str) and said:
            names[slot.step] = line(said, LONGEST)
    return names


def entry_at(entries: Sequence[Entry], seq: int) -> Entry | None:
    """Of a journal read from its beginning."""
    found = entries[seq - 1] if 0 < seq <= len(entries) else None
    return found if found is not None and found.seq == seq else None
