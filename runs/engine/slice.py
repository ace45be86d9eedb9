"""The loop of one run on one worker: append intent -> perform effect -> append observation.

The order is the safety argument:
1. Nothing is sent before its TOOL_CALL or ATTEMPT is committed under the current epoch (`commit` answers True).
2. The lease is looked at again just before each effect (`Flight.run`).
3. An outcome rides with the next decision, or goes alone; nothing is sent, asked or parked before it is committed.
4. A refused decision is made again from the entries that refused it; its outcome is kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from journal.crash import Crashed
from journal.entries import Draft, Kind
from runs.brakes import Brake, over
from runs.engine import drafts
from runs.engine.approving import asked_now, expired, reminder, request_anew
from runs.engine.asking import Asking
from runs.engine.claims import CRASH_LIMIT, Claim, Lost
from runs.engine.drivers import Diverged, KeepsAlive
from runs.engine.family import FamilyGate
from runs.engine.flights import Flights
from runs.engine.parking import open_children, park_for, sentence, stopped_by
from runs.engine.performing import MODEL_STEP
from runs.engine.permits import Admission
from runs.engine.projections import Park
from runs.engine.rules import (
    Act,
    Ask,
    Asked,
    AwaitPerson,
    Bear,
    Expire,
    Fire,
    Hold,
    Join,
    Moment,
    Remind,
    RequestApproval,
    Send,
    WaitUntil,
    Withdraw,
    next_act,
    next_wait,
)
from runs.mistakes import difference, raised
from runs.model_turns import GiveUp, Later, LeaveOut, NeedsPerson, Ready
from runs.moves import Decided, Fail, Finish, from_record
from runs.relatives import Relatives
from runs.slots import Slot
from runs.tools import Tool
from runs.trees import Newborn

if TYPE_CHECKING:
    from runs.agents import Agent
    from runs.engine.worker import Worker

log = logging.getLogger("holdfast.engine")

SLICE_SECONDS = 60.0
SLICE_STEPS = 200
LOOKS_IN_LINE = 1.0  # seconds between two looks for a permit while another call is under way


class Slice(Flights):
    """What one task does for a run."""

    def __init__(self, worker: Worker, claim: Claim, agent: Agent) -> None:
        super().__init__(worker, claim, agent)
        self.began = time.monotonic()
        self.deciding: float | None = None  # since when the agent's code is at work (monotonic)
        self.first_step = 0
        self.requested: set[int] = set()  # steps whose approval this slice has asked for anew
        self.root_started_by: str | None = None
        self.family: FamilyGate | None = None
        self.admission = Admission(worker.permits, self.run_id, worker.pause, worker.session.now)

    # -- the loop ---------------------------------------------------------------------------------------------------

    def drive(self) -> Park | None:
        """Returns how the run was let go; None if it was lost."""
        with self.baton.held:
            try:
                self.open()
                while self.parked is None:
                    self.turn()
                self.admission.parked(self.parked, self.state)
                if self.state.done is not None and self.state.parent is not None:
                    self.worker.tell_parent(self.run_id)
                return self.parked
            except Lost:
                self.leave()
                return None
            except Crashed:
                raise
            except BaseException:
                self.leave()
                raise
            finally:
                self.baton.over = True
                driver = getattr(self, "driver", None)  # none, where the journal could not be read
                if isinstance(driver, KeepsAlive):
                    driver.close()

    def open(self) -> None:
        """Read, note a take-over, and decide again what is recorded, before any effect."""
        entries = self.read()
        self.first_step = self.state.next_step
        if self.claim.taken_from is not None:
            self.add(drafts.taken_over(self.claim.epoch, self.claim.taken_from, self.worker.session.id))
        if self.state.beyond is not None or self.elsewhere:  # `stop` lets it go
            return
        if self.agent.limited:
            self.admission.put_in_order(self.state)
        if self.claim.crashes >= CRASH_LIMIT and self.state.quarantined is None:
            why = f"its worker died {self.claim.crashes} times with no progress between"
            self.commit([drafts.control("quarantine", why)], Park("quarantined", why))
            return
        if self.state.cancel is not None:  # nothing is decided any more: it ends, whatever its code would say by now
            self.adopt()
            return
        try:
            with self.at_work():
                self.driver.check(self.state, entries)
        except Diverged as error:
            self.diverge(error)
        else:
            self.adopt()

    def turn(self) -> None:
        stop = self.stop()
        if stop is not None:
            self.land() if self.flying else self.let_go(stop)
        elif MODEL_STEP in self.flying:
            self.land()
        elif self.state.open:
            self.settle()
        elif self.state.cancel is not None:
            self.commit([drafts.cancelled(self.state.cancel)], Park("cancelled"))
        else:
            self.decide()

    def commit(self, made: Sequence[Draft] = (), park: Park | None = None) -> bool:
        whole = super().commit(made, park)
        if not self.pending:
            self.admission.settle(self.state)
        return whole

    def stop(self) -> Park | None:
        """Why no new attempt may begin, and as what the run is let go then."""
        if self.elsewhere:
            return Park("queued", "waits for a worker", release=self.state.release_id)
        if (park := stopped_by(self.state)) is not None:
            return park
        if self.worker.draining:
            return Park("queued", "its worker is draining")
        if self.state.cancel is None and (gate := self.worker.gate_for(self.agent)) is not None:  # it sends no more
            return Park("held", gate)
        if self.state.cancel is None and (gate := self.worker.gate_here) is not None:
            return Park("queued", f"left its worker at a {gate}")
        if time.monotonic() - self.began > SLICE_SECONDS or self.state.next_step - self.first_step > SLICE_STEPS:
            return Park("queued", "its slice is over")
        return None

    # -- unsettled steps --------------------------------------------------------------------------------------------

    def acts(self) -> dict[int, Act]:
        """The rules' word on each unsettled step that is not under way."""
        moment = Moment(self.worker.session.now(), self.claim.taken_over_at, self.state.cancel is not None)
        found: dict[int, Act] = {}
        ended = self.ended_children()
        family = self.family_gate() if self.state.has_relatives else None
        for step, slot in self.state.open.items():
            if step in self.flying:
                continue
            if slot.kind != "call":
                how = ended.get(slot.child) if slot.child else None
                wait = next_wait(slot, moment, self.state.is_over(slot), how)
                found[step] = wait if family is None else family.judged_child(self.state, slot, wait)
                continue
            tool = self.agent.toolbox[slot.tool]
            act = next_act(slot, tool, self.asked_now(slot, tool), moment, absent=step in self.absent)
            if family is not None:
                act = family.judged(self.state, slot, tool, act)
            gate = self.worker.gates.over(f"tool:{slot.tool}") if isinstance(act, Send) else None
            found[step] = act if gate is None else AwaitPerson("held", gate)
        return found

    def asked_now(self, slot: Slot, tool: Tool) -> Asked | None:
        if slot.gate != "approval" and slot.approval is None:
            return None
        reminders, repeats = self.reminders.get(slot.step, 0), slot.step in self.requested
        return asked_now(slot, tool, self.run_id, self.state.release_id, reminders, repeats)

    def family_gate(self) -> FamilyGate:
        """Its relatives are looked at anew, where one of the acts depends on them."""
        if self.family is None:
            relatives = Relatives(self.run_id, self.state.root, self.worker.relations, self.worker.store)
            self.family = FamilyGate(relatives, self.worker.session.now)
        self.family.stale = True
        return self.family

    def asked_by(self) -> str:
        """Who started the run, or forked it; of a child, who started the root of its tree."""
        if self.state.fork is not None:
            return str(self.state.fork["by"])
        if self.state.parent is None:
            return self.state.started_by
        if self.root_started_by is None:
            self.root_started_by = self.worker.started_by(self.run_id)
        return self.root_started_by

    def park(self, acts: Mapping[int, Act]) -> Park:
        asks = any(isinstance(act, AwaitPerson) or self.state.slots[step].kind == "ask" for step, act in acts.items())
        asked_by = self.asked_by() if asks else ""
        return park_for(acts, self.state, self.worker.session.now(), self.reminders, asked_by)

    def ended_children(self) -> Mapping[UUID, Mapping[str, Any]]:
        """How those children ended that this run still waits for. None is asked for before it is born."""
        children = open_children(self.state)
        return self.worker.ended_children(children) if children and not self.newborn else {}

    def settle(self) -> None:
        acts = self.acts()
        room = drafts.SIBLINGS_AT_ONCE - len(self.flying)
        ready = {step: act for step, act in acts.items() if not isinstance(act, (WaitUntil, AwaitPerson))}
        ready = dict(list(ready.items())[:room])
        in_line = self.admission.admit(ready, self.state.slots, self.agent.toolbox) if self.agent.limited else {}
        if go := {step: act for step, act in ready.items() if step not in in_line}:
            self.carry_out(go)
            return
        acts |= in_line
        if self.flying:
            times = [act.at for act in acts.values() if isinstance(act, (WaitUntil, AwaitPerson)) and act.at]
            if in_line:
                times.append(self.worker.session.now() + LOOKS_IN_LINE)
            self.land(min(times, default=None))
        else:
            self.let_go(self.park(acts))

    def rest(self) -> Park | None:
        """How the run is let go, if nothing is left to do but wait."""
        acts = self.acts()
        waits = bool(acts) and all(isinstance(act, (WaitUntil, AwaitPerson)) for act in acts.values())
        return self.park(acts) if waits and not self.flying else None

    def carry_out(self, ready: Mapping[int, Act]) -> None:
        written: list[Draft] = []
        children: list[Newborn] = []
        for step, act in ready.items():
            slot = self.state.slots[step]
            match act:
                case Send(source, doubt):
                    approved = slot.approval.digest if slot.approval is not None else None
                    written.append(drafts.attempt(step, len(slot.attempts) + 1, source, doubt, approved))
                case Fire():
                    written.append(drafts.answer_expired(step) if slot.kind == "ask" else drafts.timer_fired(step))
                case Join(how):
                    written.append(drafts.child_ended(step, slot.child, how))
                case RequestApproval(why, repeats):
                    tool, now = self.agent.toolbox[slot.tool], self.worker.session.now()
                    written.append(request_anew(slot, tool, self.run_id, self.state.release_id, now, why, repeats))
                    self.requested.add(step)
                case Expire(deny):
                    written += expired(slot, deny)
                case Remind(number):
                    written.append(reminder(slot, number))
                case Bear():
                    children += self.worker.newborn(self.run_id, step, [from_record(slot.recorded)]).values()
                    written.append(drafts.born(step, children[-1]))
                case Hold(why, repeats):
                    told = [repeat.record for repeat in repeats]
                    written.append(drafts.control("hold", why, step=step, repeats=told))
                case Withdraw(why):
                    if slot.kind == "child" and slot.child:  # first, so that no child outlives the word that it was
                        self.worker.cancel_child(slot.child, f"{why} in its parent", {"run": str(self.run_id)})
                    written.append(drafts.withdrawn(slot, why))
        self.newborn = [child for child in children if not child.refused]
        if written and not self.commit(written):
            return
        for step, act in ready.items():
            if isinstance(act, Send):
                self.absent.discard(step)
                self.launch(self.state.slots[step])
            elif isinstance(act, Ask):
                self.launch(self.state.slots[step], probing=True)

    # -- decisions --------------------------------------------------------------------------------------------------

    def decide(self) -> None:
        try:
            with self.at_work():
                decided = self.driver.decide(self.state)
        except Diverged as error:
            return self.diverge(error)
        except Crashed:
            raise
        except BaseException as error:
            return self.agent_raised(error)
        return self.write(decided) if isinstance(decided, Decided) else self.ask_model(decided)

    def agent_raised(self, error: BaseException) -> None:
        """SystemExit and the like too: an agent's code ends its run, never the worker."""
        log.warning("run %s: agent %s raised", self.run_id, self.agent.name, exc_info=error)
        self.write(Decided([Fail(raised(error))]))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The agent's code decides: the worker looks how long it takes."""
        self.deciding = time.monotonic()
        try:
            yield
        finally:
            self.deciding = None

    def write(self, decided: Decided) -> None:
        moves = decided.moves
        last = moves[-1]
        if isinstance(last, (Finish, Fail)):
            self.commit([drafts.ending(last)], Park("failed", last.reason) if isinstance(last, Fail) else Park("done"))
            return
        if (brake := over(self.state, self.agent.budget, self.worker.session.now(), moves)) is not None:
            self.brake(brake)
            return
        made = [] if self.state.pending_moves or decided.said else [drafts.decision(self.seen, decided)]
        first = self.state.next_step
        now = datetime.fromtimestamp(self.worker.session.now(), UTC)
        children = self.worker.newborn(self.run_id, first, moves)
        release, family = self.state.release_id, self.state.has_relatives
        made += drafts.steps(self.agent, self.run_id, first, moves, now, children, self.stopped, release, family)
        for draft in made:
            self.add(draft)
        self.newborn = [child for child in children.values() if not child.refused and not family]
        sends = any(draft.kind == Kind.TOOL_CALL and draft.body["gate"] is None for draft in made)
        # With relatives it looks at them once this is committed; before that it says nothing of what it waits for.
        if not self.commit(park=None if sends or family else self.rest()) or self.parked is not None:
            return
        for step in range(first, first + len(moves)):
            slot = self.state.slots[step]
            if slot.kind == "call" and slot.gate is None and not slot.settled:
                self.launch(slot)

    def ask_model(self, asking: Asking) -> None:
        """OBS(n) + ATTEMPT -> request -> PLAN. What was asked and not answered is asked again, under a new ATTEMPT."""
        now = self.worker.session.now()
        if (brake := over(self.state, self.agent.budget, now)) is not None:
            self.brake(brake)
            return None
        try:
            with self.at_work():
                following = asking.next(self.state, now, self.claim.epoch)
        except Crashed:
            raise
        except BaseException as error:  # of the part of the request that the agent's code makes
            return self.agent_raised(error)
        match following:
            case Later(at, why):
                self.let_go(Park("waiting", sentence(WaitUntil(at, why), now), at))
            case GiveUp(reason):
                self.commit([drafts.ending(Fail(reason))], Park("failed", reason))
            case NeedsPerson(reason):
                self.commit([drafts.control("hold", reason)], Park("held", reason))
            case LeaveOut(body):
                self.commit([drafts.compaction(self.seen, body)])
            case Ready(told):
                if self.commit([drafts.model_attempt(len(self.state.model_attempts) + 1, told)]):
                    self.launch_model(asking)

    def brake(self, brake: Brake) -> None:
        entry = drafts.control("brake", brake.reason, limit=brake.limit, used=brake.used)
        self.commit([entry], Park("held", f"brake: {brake.reason}"))

    def stopped(self, tool: str) -> bool:
        return self.worker.gates.over(f"tool:{tool}") is not None

    def diverge(self, error: Diverged) -> None:
        differs = difference(error.recorded, error.attempted)
        reason = f"entry {error.seq}: the code decides otherwise than the journal says: {differs}"
        more = {"seq": error.seq, "recorded": error.recorded, "attempted": error.attempted}
        self.commit([drafts.control("diverged", reason, **more)], Park("held", f"diverged: {reason}"))

    def adopt(self) -> None:
        """A late success of a fenced worker settles its intent, if nobody has."""
        doubtful = [slot for slot in self.state.unsettled() if slot.in_doubt]
        for slot, body, mark in self.worker.late_successes(self.run_id, doubtful):
            found = Draft(
                Kind.RECONCILE, {"verdict": "happened", "evidence": mark}, step=slot.step, actor=drafts.SYSTEM
            )
            late = drafts.observation(slot.step, {**body, "source": "late"})
            if self.commit([found, late]):
                self.worker.mark_adopted(mark["evidence"], self.seen)
