"""A run's state and its journal, as the worker that holds the run sees them: read, apply, append, let go.

An entry is applied to the state before it is committed, so that the next decision can ride in the same append. What the
answer says otherwise is read anew from the journal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from psycopg.errors import UniqueViolation

from journal.committer import Append
from journal.crash import crash_point
from journal.encoding import decode, encode
from journal.entries import STEERING, Draft, Entry, Kind
from runs.engine.approving import count_reminder
from runs.engine.claims import Claim, Lost
from runs.engine.drivers import Driver, KeepsAlive, driver_for
from runs.engine.performing import stored
from runs.engine.projections import Park, Then, listing, open_intents
from runs.spending import spent_in
from runs.state import MODEL_ACTOR, RunState, fold
from runs.trees import Newborn

if TYPE_CHECKING:
    from runs.agents import Agent
    from runs.engine.worker import Worker

POINTS: dict[str, str] = {
    Kind.TOOL_CALL: "intent", Kind.ATTEMPT: "attempt", Kind.OBS: "outcome", Kind.ERROR: "outcome", Kind.PLAN: "plan",
    Kind.APPROVAL: "approval", Kind.RECONCILE: "finding", Kind.TIMER: "timer", Kind.ASK: "question",
    Kind.ANSWER: "answer", Kind.CHILD: "child", Kind.CONTROL: "control", Kind.NOTE: "note",
    Kind.DONE: "done",
}  # fmt: skip


STOPPED = ("held", "quarantined", "waiting_for_version")
ONE_OPEN_RUN = "runs_run_business_id"


class Recorder:
    """`seen`: the last seq that was read or written here. `pending`: applied to the state, not committed yet."""

    def __init__(self, worker: Worker, claim: Claim, agent: Agent) -> None:
        self.worker, self.claim, self.agent = worker, claim, agent
        self.run_id: UUID = claim.run_id
        self.pending: list[Draft] = []
        self.number = 0
        self.seen = 0
        self.newborn: Sequence[Newborn] = ()  # children to be born with the next append
        self.parked: Park | None = None
        self.progressed = False
        self.reminders: dict[int, int] = {}  # of the last request for approval, by step
        self.state: RunState
        self.driver: Driver

    @property
    def elsewhere(self) -> bool:
        """Whether the journal pins the run to another release than this slice's: its agent decides nothing here."""
        return self.state.release_id != self.agent.release_id

    def read(self) -> list[Entry]:
        """The state anew, from the journal; the driver with it."""
        entries = self.worker.read(self.run_id)
        self.state = fold(self.run_id, entries)
        before: Driver | None = getattr(self, "driver", None)
        self.driver = driver_for(self.agent, self.state, entries)
        if isinstance(self.driver, KeepsAlive):
            self.driver.instead_of(before)
        self.seen = self.state.seq
        self.reminders.clear()
        for entry in entries:
            count_reminder(self.reminders, entry)
        return entries

    def add(self, draft: Draft) -> None:
        """Apply a draft to the state and keep it for the next append. What comes of a call that a person changed says
        so."""
        slot = self.state.slots.get(draft.step or 0)
        if draft.kind == Kind.OBS and slot is not None and slot.edited is not None:
            draft.body = draft.body | {"edited": slot.edited.record}
        draft, more = stored(self.worker, self.run_id, draft)
        for each in (draft, *more):
            self.pending.append(each)
            self.apply(each)

    def apply(self, draft: Draft) -> None:
        """As it will read back. Seq and time are a guess until the append is answered."""
        at = datetime.fromtimestamp(self.worker.session.now(), UTC)
        body = self.worker.store.resolve(decode(encode(draft.body) if draft.data is None else draft.data))
        entry = Entry(
            self.run_id,
            self.state.seq + 1,
            draft.kind,
            draft.v,
            draft.step,
            draft.settles,
            self.claim.epoch,
            draft.actor,
            at,
            body,
        )
        self.state.apply(entry)
        count_reminder(self.reminders, entry)

    def commit(self, made: Sequence[Draft] = (), park: Park | None = None) -> bool:
        """Append what is pending and `made`. True: written whole. False: the state was read anew, look again.

        `park`: let the run go with it.
        """
        for draft in made:
            self.add(draft)
        batch, self.pending = self.pending, []
        if not batch:
            return True
        points = [POINTS[kind] for kind in dict.fromkeys(draft.kind for draft in batch) if kind in POINTS]
        for point in points:
            crash_point(f"before-{point}")
        self.number += 1
        spent = spent_in(batch, self.agent.name, self.agent.release_id)
        then = Then(park and self.telling(park), self.newborn, spent) if park or self.newborn or spent else None
        self.newborn = ()
        append = Append(self.run_id, self.claim.epoch, self.number, self.seen, batch, then)
        began = time.monotonic()
        try:
            answer = self.worker.committer.append(append)
        except UniqueViolation as taken:
            if taken.diag.constraint_name != ONE_OPEN_RUN:
                raise
            self.keep_unsettled(batch)  # another start was quicker: decided again, the child is refused with its name
            return False
        took = time.monotonic() - began
        for point in points:
            crash_point(f"after-{point}")
        match answer.verdict:
            case "written" | "already":
                assert answer.first_seq and answer.last_seq and answer.recorded_at
                self.progressed |= any(d.settles is not None or d.actor == MODEL_ACTOR for d in batch)
                self.worker.touched(self)
                self.worker.session.totals.appended(batch, self.state, took)
                self.worker.born(then.children if then else ())
                return self.written(answer.first_seq, answer.last_seq, answer.recorded_at, park)
            case "refused":  # outcomes are kept: what was asked for and paid counts
                self.read()
                kept = [draft for draft in batch if not draft.decision]
                self.worker.session.totals.appended(kept, self.state, took)
                return False
            case "settled":
                self.keep_unsettled(batch)
                return False
            case _:
                self.pending = batch
                self.worker.session.totals.fenced()
                raise Lost

    def telling(self, park: Park) -> Park:
        """With what lists show of the run; held, too, it has what waits for somebody."""
        if park.status in STOPPED and park.intents == "[]":
            park = replace(park, intents=open_intents(self.state))
        return replace(park, listed=listing(self.state, self.worker.session.region))

    def written(self, first: int, last: int, at: datetime, park: Park | None) -> bool:
        if first == self.seen + 1:
            self.state.times[first - 1 :] = [at] * (last - first + 1)
            self.seen = self.state.committed_seq = last
            self.parked = park
            return True
        before = self.seen
        entries = self.read()
        if not any(entry.kind in STEERING for entry in entries[before : first - 1]):
            self.parked = park
        return self.state.beyond is None

    def keep_unsettled(self, batch: Sequence[Draft]) -> None:
        """Somebody settled one of these outcomes: ours of that step is evidence, the others are sent again."""
        self.read()
        for draft in batch:
            slot = self.state.slots.get(draft.step or 0)
            if draft.decision:
                continue
            if slot is not None and slot.settled:
                self.worker.keep_evidence(self.run_id, self.claim.epoch, draft)
            else:
                self.add(draft)

    def let_go(self, park: Park) -> None:
        """At a checkpoint: with the pending outcomes, or with a word to the database alone."""
        if self.pending and not park.release:
            self.commit(park=park)
            return
        if not self.commit():
            return
        crash_point("before-let-go")
        if self.worker.let_go(self.run_id, self.claim.epoch, self.seen, self.telling(park)):
            self.parked = park
            return
        if self.worker.epoch_of(self.run_id) != self.claim.epoch:
            raise Lost
        self.read()
