"""The family gate: in a run that is a fork, or was forked, an effect that equals a relative's waits for a person.

The order is the safety argument:
1. The intent is committed, and nothing is sent with it (its gate is "family", or its own approval).
2. Only then are the relatives' journals looked at. Of two that are about to do the same, the one that looks later finds
   the other's intent: it was committed before the other looked. Maybe each finds the other's; never neither.
3. What equals an effect of theirs, done or to be expected, is sent only when somebody has approved it who was told so.
   The ATTEMPT is a decision: it is refused if somebody has steered since.
A run without relatives asks nothing and writes nothing for this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import eq
from typing import TYPE_CHECKING

from journal.errors import PayloadStoreDown
from runs.engine.rules import Act, AwaitPerson, Bear, Hold, RequestApproval, Send, WaitUntil
from runs.relatives import Alike, Relatives, uncovered
from runs.slots import Repeat, Slot, repeats_in_words
from runs.tools import Tool

if TYPE_CHECKING:
    from runs.state import RunState

STORE_AWAY = 2.0  # seconds until what could not be compared is compared again


@dataclass(slots=True)
class FamilyGate:
    """`stale`: the relatives are looked at anew before the next word."""

    relatives: Relatives
    now: Callable[[], float]
    stale: bool = True

    def judged(self, state: RunState, slot: Slot, tool: Tool, act: Act) -> Act:
        """The rules' word on a call, or what has to come before it."""
        if tool.effect == "read" or not self.concerns(slot, act):
            return act
        found = self.found(state, slot, tool.takes_alike)
        if isinstance(found, WaitUntil):
            return found
        if isinstance(act, RequestApproval):
            return replace(act, repeats=tuple(found))
        if not uncovered(found, () if slot.approval is None else slot.approval.repeats):
            return act
        return RequestApproval("" if slot.approval is None else f"it is {repeats_in_words(found)}", tuple(found))

    def judged_child(self, state: RunState, slot: Slot, act: Act) -> Act:
        """A child is an effect too: what a relative has started with the same input is started once more only when
        somebody has resumed the run who was told so."""
        if not isinstance(act, Bear):
            return act
        found = self.found(state, slot, eq)
        if isinstance(found, WaitUntil):
            return found
        if not uncovered(found, slot.let):
            return act
        same = repeats_in_words(found)
        return Hold(f"it would start {slot.tool} (step {slot.step}) with {same}: resume it to let it", tuple(found))

    def found(self, state: RunState, slot: Slot, alike: Alike) -> list[Repeat] | WaitUntil:
        """What of the relatives' it would repeat; or that nobody can say for now."""
        assert slot.seq <= state.committed_seq, "relatives are looked at only behind the own intent"
        if self.stale:
            self.relatives.look()
            self.stale = False
        try:
            return self.relatives.repeated_by(slot, first=not slot.attempts, alike=alike)
        except PayloadStoreDown as error:
            return WaitUntil(self.now() + STORE_AWAY, f"{slot.tool} cannot be compared with its relatives': {error}")

    def concerns(self, slot: Slot, act: Act) -> bool:
        """Whether it is about to be sent, or a person is asked about it. The same key again is no other effect."""
        match act:
            case Send():
                return not act.doubt
            case RequestApproval():
                return True
            case AwaitPerson("awaiting_approval"):
                return slot.approval is not None and slot.approval.open
        return False
