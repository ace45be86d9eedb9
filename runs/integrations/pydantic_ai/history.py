"""What a run's journal says of the units of its agent's code. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from runs.compared import Diverged
from runs.integrations.pydantic_ai.live import NOT_YET, Unanswered
from runs.integrations.pydantic_ai.results import as_payload
from runs.integrations.pydantic_ai.units import Ident, Unit
from runs.slots import Decision, Slot
from runs.state import RunState

LOOK_UP = "look_up"  # the tool that makes the units which are neither requests nor calls


class History:
    """`slots`: the steps, by the unit that made them; `plans`: the model's answers, in order."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.slots: dict[Ident, Slot] = {}
        self.plans: list[Decision] = []
        self._count: Counter[tuple[str, int, str]] = Counter()
        self._steps = 0
        self._names: dict[int, Ident] = {}

    def read_on(self) -> None:
        """What has come since. Steps and a model's answers are never taken back."""
        for made in self.state.decisions[len(self.plans) :]:
            if made.said is not None and (not self.plans or made.seq > self.plans[-1].seq):
                self.plans.append(made)
        for step in range(self._steps + 1, len(self.state.slots) + 1):
            self._add(self.state.slots[step])
        self._steps = len(self.state.slots)

    def _add(self, slot: Slot) -> None:
        after = sum(made.seq < slot.seq for made in self.plans)
        if slot.kind == "signal":
            place = ("wait", after, slot.signal)
        elif slot.id is None:  # the library's calls have one
            place = ("unit", after, str(slot.args.get("unit")) if slot.tool == LOOK_UP else slot.tool)
        else:
            place = ("call", after, slot.id)
        self._count[place] += 1
        ident = (*place, self._count[place])
        self.slots[ident] = slot
        self._names[slot.step] = ident

    def ident_of(self, step: int) -> Ident | None:
        return self._names.get(step)

    def told(self, ident: Ident, asked_first: bool = False) -> Any:
        """What the unit came to, in the library's words; NOT_YET."""
        kind, number, _, _ = ident
        if kind == "model":
            said = self.plans[number - 1].said if number <= len(self.plans) else None
            return NOT_YET if said is None else said["response"]
        slot = self.slots.get(ident)
        if slot is None or not slot.settled:
            return NOT_YET
        if kind == "call":
            return as_payload(slot, asked_first)
        return slot.result if slot.outcome == "succeeded" else Unanswered(f"{slot.tool}: {slot.error or slot.outcome}")

    def answer(self, unit: Unit) -> Any:
        """As `told`. Raises Diverged if the journal says that another one was made here."""
        kind, number, _, _ = unit.ident
        slot = self.slots.get(unit.ident)
        if kind == "model" and number <= len(self.plans):
            self._compare(unit, self.plans[number - 1])
        if kind == "call" and slot is not None and (slot.tool, slot.asked_args) != (unit.tool, unit.args):
            raise Diverged(slot.seq, [slot.recorded], [{"call": unit.tool, "args": unit.args, "id": slot.id}])
        return self.told(unit.ident, unit.asks_first)

    def _compare(self, unit: Unit, made: Decision) -> None:
        """Another version of the library writes the same request otherwise: then it is not compared."""
        recorded = made.said or {}
        if recorded.get("client") == unit.client and recorded.get("digest") != unit.digest:
            raise Diverged(made.seq, [{"request": recorded.get("digest")}], [{"request": unit.digest}])
