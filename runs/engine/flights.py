"""The calls that a slice has under way: sent, landed, timed out, left behind."""

from __future__ import annotations

import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from journal.crash import Crashed
from runs.engine import drafts
from runs.engine.approving import request_anew
from runs.engine.baton import Baton, carry_on, watch
from runs.engine.calls import Ended, Raised, drain
from runs.engine.claims import Claim, Lost
from runs.engine.performing import Flight, LeaseLapsed, TimedOut, finding_of, outcome_of
from runs.engine.recorder import Recorder
from runs.loops.declared import ModelLoop
from runs.outcomes import NeedsApproval, describe
from runs.secrets import struck_text
from runs.slots import ASKS_FIRST, Slot
from runs.tools import ToolContext

if TYPE_CHECKING:
    from runs.agents import Agent
    from runs.engine.asking import Asking
    from runs.engine.worker import Worker

STEERED = object()  # in an inbox: somebody wrote into the journal


class Flights(Recorder):
    """`flying`: by step. `absent`: steps that a probe did not find, so that they may be sent."""

    def __init__(self, worker: Worker, claim: Claim, agent: Agent) -> None:
        super().__init__(worker, claim, agent)
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.baton = Baton()
        self.flying: dict[int, Flight] = {}
        self.absent: set[int] = set()

    def turn(self) -> None:
        """One turn of the loop; a call's thread drives on with it."""
        raise NotImplementedError

    def launch(self, slot: Slot, probing: bool = False) -> None:
        tool = self.agent.toolbox[slot.tool]
        deadline = time.monotonic() + tool.timeout
        flight = Flight(self.worker, self.run_id, slot, tool, self.claim.epoch, deadline, self.landed, probing=probing)
        flight.typed = isinstance(self.agent.decide, ModelLoop)
        flight.ctx = ToolContext(
            slot.key, self.run_id, slot.step, len(slot.attempts), time.time() + tool.timeout, flight.cancelled
        )
        self.take_off(flight)

    def launch_model(self, asking: Asking) -> None:
        deadline = time.monotonic() + asking.timeout
        flight = Flight(self.worker, self.run_id, None, None, self.claim.epoch, deadline, self.landed)
        flight.asking, flight.asked = asking, self.state.model_attempts[-1].seq
        self.take_off(flight)

    def take_off(self, flight: Flight) -> None:
        self.flying[flight.step] = flight
        if self.baton.carried:
            self.baton.waiting.append(flight)
        else:
            self.worker.calls.start(flight)

    def landed(self, flight: Flight, how: Ended) -> Flight | None:
        return carry_on(self, flight, how)

    def land(self, until: float | None = None) -> None:
        """Wait for the next thing to happen: an outcome, a timeout, a steering entry, or the time `until` (POSIX)."""
        if self.baton.carried:
            self.baton.rests = "until a time" if until is not None else "until it lands"
            return
        deadline = min(flight.deadline for flight in self.flying.values())
        if until is not None:
            deadline = min(deadline, time.monotonic() + until - self.worker.session.now())
        happened = watch(self, deadline)
        if self.parked is not None:
            return
        if not happened:
            late = [flight for flight in self.flying.values() if flight.deadline <= time.monotonic()]
            happened = [(flight, Raised(TimedOut("no answer within its timeout"))) for flight in late]
            for flight in late:
                flight.left = True
                self.worker.calls.abandon()
        for item in happened:
            if not isinstance(item, tuple):
                continue
            flight, how = item
            if self.flying.get(flight.step) is flight:
                del self.flying[flight.step]
                self.note_end(flight, how)
            else:  # it answered in the very moment in which it was given up
                flight.ended(how)
        if self.pending and (self.flying or STEERED in happened):
            self.commit()
        elif STEERED in happened:
            self.read()
        if self.state.cancel is not None:
            for flight in self.flying.values():
                flight.cancelled.asked = True

    def note_end(self, flight: Flight, how: Ended) -> None:
        if isinstance(how, Raised) and isinstance(how.error, LeaseLapsed):
            raise Lost
        if isinstance(how, Raised) and isinstance(how.error, Crashed):
            raise how.error
        now = self.worker.session.now()
        if flight.asking is not None:
            self.worker.under_way.over(self.run_id)
            self.add(flight.asking.answer(how, self.state, self.seen, now))
        elif flight.probing:
            found = finding_of(flight, how)
            if not found:
                self.absent.add(flight.step)
            for draft in found:
                self.add(draft)
        elif self.state.slots[flight.step].settled:  # a person said meanwhile what happened
            self.worker.keep_evidence(self.run_id, self.claim.epoch, outcome_of(flight, how, now))
        elif isinstance(how, Raised) and isinstance(how.error, NeedsApproval):
            self.ask_first(flight, how.error, now)
        else:
            self.add(outcome_of(flight, how, now))

    def ask_first(self, flight: Flight, error: NeedsApproval, now: float) -> None:
        """The attempt did not act, and the next one waits for somebody's approval."""
        assert flight.slot is not None and flight.tool is not None
        slot = self.state.slots[flight.slot.step]
        if slot.attempts[-1].doubt:  # an earlier one may have acted, which nobody can approve any more
            self.add(outcome_of(flight, Raised(error), now))
            return
        self.add(drafts.failure(slot.step, struck_text(describe(error)), now, code=ASKS_FIRST))
        self.add(request_anew(slot, flight.tool, self.run_id, self.state.release_id, now, str(error)))

    def leave(self) -> None:
        """Lost: outcomes that were not written go to the evidence; what still flies goes there when it ends."""
        for flight in self.flying.values():
            flight.left = True
            self.worker.calls.abandon()
            if flight.asking is not None:
                self.worker.under_way.over(self.run_id)
        for draft in self.pending:
            if draft.step is not None and not draft.decision:
                self.worker.keep_evidence(self.run_id, self.claim.epoch, draft)
        for item in drain(self.inbox):
            if isinstance(item, tuple):
                item[0].ended(item[1])
