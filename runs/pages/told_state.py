"""A fold as people read it, at any seq, and what differs between two. Pure: derived each time, stored nowhere."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from journal.encoding import canonical
from runs.brakes import spent
from runs.models import Status
from runs.pages.plan import Item, items_of
from runs.slots import Slot
from runs.state import RunState
from runs.values import label, line

MOST_DIFFERENCES = 400
MOST_STEPS = 60
LONGEST = 400


@dataclass(frozen=True, slots=True)
class Difference:
    """One path of the fold, in the earlier and in the later state. `what`: added, removed, changed."""

    path: str
    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Compared:
    """From seq `first` to seq `then`, the earlier one first."""

    first: int
    then: int
    differences: Sequence[Difference]
    more: int


@dataclass(frozen=True, slots=True)
class ToldState:
    """`steps` are the last of `all_steps`; `whole` has these alone, or a page of a long run would be megabytes."""

    seq: int
    at: datetime | None
    status: str
    why: str
    state: RunState
    steps: Sequence[Slot]
    all_steps: int
    whole: dict[str, Any]
    compared: Compared | None = None

    @property
    def plan(self) -> list[Item]:
        return items_of(self.state.plan)

    @property
    def open_steps(self) -> list[Slot]:
        return self.state.unsettled()

    @property
    def answers(self) -> list[Slot]:
        return [slot for slot in self.state.slots.values() if slot.kind == "ask" and slot.settled]


def told_state(state: RunState, other: RunState | None = None) -> ToldState:
    """`other`: to compare with; of the two the earlier is the one that things were added to."""
    status, why = status_then(state)
    slots = list(state.slots.values())
    at = state.time_of(state.seq) if state.seq else None
    compared = None
    if other is not None:
        first, then = sorted((state, other), key=lambda one: one.seq)
        steps = may_differ(first, then)
        found = list(differences(flat(as_data(first, steps)), flat(as_data(then, steps))))
        compared = Compared(first.seq, then.seq, found[:MOST_DIFFERENCES], max(len(found) - MOST_DIFFERENCES, 0))
    shown = slots[-MOST_STEPS:]
    whole = as_data(state, {slot.step for slot in shown})
    return ToldState(state.seq, at, status, why, state, shown, len(slots), whole, compared)


def may_differ(first: RunState, then: RunState) -> set[int]:
    """The steps of both but those that one entry has settled for good in either."""
    same = {step for step, slot in first.slots.items() if slot.settled and slot.obs_seq == then.slots[step].obs_seq}
    return {step for step in then.slots if step not in same}


def status_then(state: RunState) -> tuple[str, str]:
    """What the entries alone say. Who held the run at that time, and what its row said, is not in its journal."""
    if state.done is not None:
        ends = {"result": Status.DONE, "error": Status.FAILED}
        return next((s for name, s in ends.items() if name in state.done), Status.CANCELLED), ""
    if state.quarantined is not None:
        return Status.QUARANTINED, state.quarantined.reason
    if (control := state.diverged or state.braked or state.held) is not None:
        return Status.HELD, control.reason
    open_ones = state.unsettled()
    if (slot := next((s for s in open_ones if s.state == "awaiting_approval"), None)) is not None:
        return Status.AWAITING_APPROVAL, f"{slot.tool} (step {slot.step})"
    if (slot := next((s for s in open_ones if s.in_doubt), None)) is not None:
        return Status.RUNNING, f"{slot.tool} (step {slot.step}) was sent and not answered yet"
    if state.model_attempt is not None:
        return Status.RUNNING, "the model was asked and had not answered yet"
    if open_ones and all(slot.kind != "call" for slot in open_ones):
        return Status.WAITING, ", ".join(dict.fromkeys(slot.tool for slot in open_ones[:3]))
    return (Status.RUNNING, "") if state.seq > 1 else (Status.QUEUED, "")


def as_data(state: RunState, steps: Container[int]) -> dict[str, Any]:
    """The fold as one tree of values, with these steps under their numbers: two trees can be compared by path."""
    total = spent(state, 0.0) if state.slots or state.usage else None
    controls = (state.cancel, state.held, state.diverged, state.braked, state.quarantined)
    return _said(
        status=status_then(state)[0],
        seq=state.seq,
        frontier=state.frontier,
        agent=state.agent,
        release=state.release_id,
        code=state.code or None,
        labels=state.labels or None,
        input=state.input,
        plan=state.plan or None,
        steps={str(slot.step): step_data(slot) for slot in state.slots.values() if slot.step in steps} or None,
        open=[slot.step for slot in state.unsettled()] or None,
        signals={
            str(signal.seq): {"name": signal.name, "payload": signal.payload, "from": signal.actor, "step": signal.step}
            for signal in state.signals
        }
        or None,
        controls={control.verb: {"reason": control.reason, "by": control.actor} for control in controls if control}
        or None,
        usage=dict(state.usage) or None,
        steps_used=total.steps if total else None,
        done=state.done,
    )


def step_data(slot: Slot) -> dict[str, Any]:
    approval = slot.approval
    said = None if approval is None else {"verdict": approval.verdict, "by": approval.actor, "digest": approval.digest}
    asked = slot.body.get("question") if slot.kind == "ask" else None
    return _said(
        kind=slot.kind,
        tool=slot.tool if slot.kind in ("call", "child") else None,
        signal=slot.signal or None,
        question=asked,
        id=slot.id,
        args=slot.args if slot.kind == "call" else None,
        key=slot.key or None,
        state=slot.state if not slot.settled else None,
        attempts=len(slot.attempts) or None,
        approval=said,
        due=None if slot.due is None else datetime.fromtimestamp(slot.due, UTC).isoformat(),
        outcome=slot.outcome,
        error=slot.error,
        settled_by=slot.settled_by,
    ) | ({"result": slot.result} if slot.outcome == "succeeded" else {})


def _said(**fields: Any) -> dict[str, Any]:
    """Without what there is nothing to say of."""
    return {
        name: value for name, value in fields.items() if value is not None and value != "" and value not in ({}, [])
    }


# -- differences -------------------------------------------------------------------------------------------------------


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Each value that has no parts, by its path. Parts of lists are numbered."""
    found: dict[str, Any] = {}
    _walk(value, path, found)
    return found


def _walk(value: Any, path: str, found: dict[str, Any]) -> None:
    parts: Iterator[tuple[str, Any]]
    if isinstance(value, Mapping) and value:
        parts = ((f"{path}.{label(name)}" if path else label(name), item) for name, item in value.items())
    elif isinstance(value, list | tuple) and value:
        parts = ((f"{path}[{n}]", item) for n, item in enumerate(value))
    else:
        found[path] = value
        return
    for name, item in parts:
        _walk(item, name, found)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    """In the order of the later state; what is gone comes last."""
    for path, value in after.items():
        if path not in before:
            yield Difference(path, "added", "", line(value, LONGEST))
        elif not alike(before[path], value):
            yield Difference(path, "changed", line(before[path], LONGEST), line(value, LONGEST))
    for path, value in before.items():
        if path not in after:
            yield Difference(path, "removed", line(value, LONGEST), "")


def alike(one: Any, other: Any) -> bool:
    """Exactly: 1, 1.0 and True are three values."""
    if type(one) is not type(other):
        return False
    return one is other or (one == other and one.__class__ in (str, int, bool)) or canonical(one) == canonical(other)
