"""Runs in memory: the real engine, fold, rules and drivers on journals that are lists. No database, broker or thread.

A `Memory` is what PostgreSQL is elsewhere: heads, run rows, evidence, and the one clock, which moves only when told.
Its answers are those of the functions in journal/sql and runs/sql; tests/testing/test_memory.py compares them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from journal.committer import Append
from journal.encoding import decode, encode, problems
from journal.entries import STEERING, Answer, Draft, Entry, Kind
from runs.agents import Agent
from runs.engine.claims import TAKES_TURNS, Claim
from runs.engine.parking import stopped_by
from runs.engine.projections import Park, Then
from runs.inputs import check_input, input_refusal
from runs.memory.permits import MemoryPermits
from runs.moves import Spawn
from runs.secrets import sealed_by
from runs.state import MODEL_ACTOR, RunState, fold
from runs.totals import Totals
from runs.trees import DEEPEST, TOO_DEEP, Newborn, business_id_of, outcome_of_child

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(milliseconds=1)  # between two appends, so that no two have the same time
ENDED = ("done", "failed", "cancelled")
CLAIMABLE = ("queued", "running", "waiting_for_version")
GIVES_UP = (*ENDED, "held", "quarantined", "waiting_for_version")  # its permits and its places in line
STAYS = ("held", "quarantined")
WAKEABLE = ("waiting", "awaiting_approval", "needs_reconciliation")
FIRST_ID = 0x01900000_0000_7000_8000_000000000001
Stored = tuple[Entry, bytes]


@dataclass(slots=True, eq=False)
class MemorySession:
    """A lease that never lapses by itself."""

    memory: Memory
    name: str
    id: UUID = field(default_factory=uuid4)
    region: str = "local"
    lease: float = 30.0
    lapses_in: float = 30.0
    ended: bool = False
    draining: bool = False
    totals: Totals = field(default_factory=Totals)

    @property
    def alive(self) -> bool:
        return not self.ended

    def now(self) -> float:
        return self.memory.now.timestamp()


@dataclass(slots=True, eq=False)
class MemoryRun:
    """Head, run row and entries of one run."""

    id: UUID
    release_id: str
    stored: list[Stored] = field(default_factory=list)
    epoch: int = 0
    steering_seq: int = 0
    append_no: int = 0
    answer: Answer | None = None
    settled: set[int] = field(default_factory=set)
    status: str = "queued"
    reason: str = ""
    wake: float = 0.0
    session: MemorySession | None = None
    crashes: int = 0
    crash_seq: int = 0
    taken_over_at: float | None = None
    parent: UUID | None = None
    parent_told: bool = False
    awaits: tuple[UUID, ...] = ()
    awaits_any: bool = False
    deadline: float = 0.0
    business_id: str = ""
    evidence: list[tuple[int, int, bytes, bool]] = field(default_factory=list)  # step, epoch, body, adopted

    @property
    def last_seq(self) -> int:
        return len(self.stored)

    @property
    def entries(self) -> list[Entry]:
        """As a reader gets them: bodies decoded anew, so that nobody can change what is stored."""
        return [
            Entry(self.id, e.seq, e.kind, e.v, e.step, e.settles, e.epoch, e.actor, e.recorded_at, decode(body))
            for e, body in self.stored
        ]

    @property
    def state(self) -> RunState:
        return fold(self.id, self.entries)

    def write(self, drafts: Iterable[Draft], actor: str, at: datetime) -> None:
        for draft in drafts:
            body = encode(draft.body) if draft.data is None else draft.data
            who = actor if draft.actor == "worker" else draft.actor
            seq = self.last_seq + 1
            entry = Entry(self.id, seq, draft.kind, draft.v, draft.step, draft.settles, self.epoch, who, at, {})
            self.stored.append((entry, body))
            if draft.kind in STEERING:
                self.steering_seq = seq
            if draft.settles is not None:
                self.settled.add(draft.settles)


class Memory:
    """All runs of one test, and its clock. `agents`: what a run may be of."""

    def __init__(self, agents: Iterable[Agent], began: datetime = BEGAN) -> None:
        self.now = began
        self.agents = {agent.release_id: agent for agent in agents}
        self.runs: dict[UUID, MemoryRun] = {}
        self.messages: deque[tuple[UUID, str]] = deque()
        self.gates: dict[str, str] = {}  # reasons by scope
        self.permits = MemoryPermits(lambda: self.now.timestamp(), self.wake)

    def tick(self) -> datetime:
        self.now += TICK
        return self.now

    def start(self, agent: Agent, input: Any = None, labels: Mapping[str, str] | None = None) -> MemoryRun:
        check_input(agent.takes, input)
        body = start_body(agent, input, labels)
        run_id = UUID(int=FIRST_ID + len(self.runs))  # the same ones in each memory, so that journals can be compared
        run = self._begin(run_id, agent.release_id, Draft(Kind.START, body), "test", agent.deadline)
        run.business_id = business_id_of(agent.unique, labels or {}) or ""
        return run

    def _begin(self, run_id: UUID, release_id: str, start: Draft, actor: str, lasts: float | None) -> MemoryRun:
        run = self.runs[run_id] = MemoryRun(run_id, release_id)
        run.write([start], actor, self.tick())
        run.deadline = self.now.timestamp() + lasts if lasts else 0.0
        self.messages.append((run_id, release_id))
        return run

    def newborn(self, parent: UUID, step: int, move: Spawn) -> Newborn:
        agent = next(
            (a for a in self.agents.values() if a.name == move.agent and move.release in (None, a.version)), None
        )
        if agent is None:
            return Newborn(step, move.agent, refused=f"no agent {move.agent!r} is in this memory")
        if self.depth_of(parent) >= DEEPEST:
            return Newborn(step, move.agent, refused=TOO_DEEP)
        if lost := problems({"input": move.input}, "child"):
            return Newborn(step, move.agent, refused=f"{lost[0]} cannot be journaled: give JSON values, dates or bytes")
        input = sealed_by(agent.takes, move.input)
        if refusal := input_refusal(agent.takes, move.input):
            return Newborn(step, move.agent, refused=refusal, input=input)
        business = business_id_of(agent.unique, move.labels or {}) or ""
        if (holder := self._open_run_with(agent.name, business)) is not None:
            return Newborn(step, move.agent, refused=f"{business} belongs to the open run {holder.id}", input=input)
        body = start_body(agent, move.input, move.labels) | {"parent": {"run": str(parent), "step": step}}
        lasts = move.deadline or agent.deadline or 0.0
        sealed = (b"", b"", encode(body))
        child = uuid5(parent, str(step))
        return Newborn(
            step, move.agent, child, agent.release_id, deadline=lasts, business_id=business, sealed=sealed, input=input
        )

    def depth_of(self, run_id: UUID) -> int:
        """How many runs are above it."""
        parent = self.runs[run_id].parent
        return 0 if parent is None else 1 + self.depth_of(parent)

    def started_by(self, run_id: UUID) -> str:
        """Who started the root of the run's tree."""
        run = self.runs[run_id]
        return run.state.started_by if run.parent is None else self.started_by(run.parent)

    def _open_run_with(self, agent: str, business_id: str) -> MemoryRun | None:
        for run in self.runs.values():
            named = run.business_id == business_id != "" and self.agents[run.release_id].name == agent
            if named and run.status not in ENDED:
                return run
        return None

    def sweep(self) -> None:
        """Send what is due, what a dead worker left, and what no message will reach; cancel what outlives its time."""
        for run in self.runs.values():
            if run.status not in ENDED and 0 < run.deadline <= self.now.timestamp():
                run.deadline = 0.0
                self.cancel_tree(run, "its deadline has passed", {})
        for run in self.runs.values():
            if not run.parent_told:
                self.tell_parent(run)
            if run.session is None:
                self.permits.repair(run.id, run.status in GIVES_UP, run.settled)
        sent = {run_id for run_id, _ in self.messages}
        for run in self.runs.values():
            if run.id in sent:
                continue
            due = run.session is None and (run.status == "queued" or 0 < run.wake <= self.now.timestamp())
            orphaned = run.session is not None and run.session.ended
            if run.status not in ENDED and (due or orphaned):
                self.messages.append((run.id, run.release_id))

    def wake(self, run_id: UUID) -> None:
        run = self.runs[run_id]
        if run.session is None and run.status in WAKEABLE:
            run.wake = self.now.timestamp()
            self.messages.append((run.id, run.release_id))

    def append(self, append: Append) -> Answer:
        """A worker's append. Judged in this order: epoch, number, settled, seen."""
        run = self.runs[append.run_id]
        if run.epoch != append.epoch:
            return Answer(run.id, "lost")
        if append.number == run.append_no and run.answer is not None:
            verdict = "refused" if run.answer.verdict == "refused" else "already"
            return run.answer._replace(verdict=verdict)
        if append.number <= run.append_no:
            return Answer(run.id, "already")
        if any(draft.settles in run.settled for draft in append.entries if draft.settles is not None):
            return Answer(run.id, "settled")
        refused = run.steering_seq > append.seen and any(draft.decision for draft in append.entries)
        written = [draft for draft in append.entries if not (refused and draft.decision)]
        if not written:
            return Answer(run.id, "refused")
        first, steered, at = run.last_seq + 1, run.steering_seq, self.tick()
        run.write(written, "worker", at)
        run.append_no = append.number
        run.answer = Answer(run.id, "refused" if refused else "written", first, run.last_seq, at)
        then: Then = append.then or Then()
        if not refused:
            for child in then.children:
                self._bear(run, child)
            if then.park is not None and (steered <= append.seen or run.steering_seq >= first):
                self._let_go(run, then.park)
        return run.answer

    def _bear(self, parent: MemoryRun, child: Newborn) -> None:
        assert child.id is not None and child.release is not None
        start = Draft(Kind.START, {}, data=child.sealed[2])
        run = self._begin(child.id, child.release, start, "parent", child.deadline)
        run.parent, run.business_id = parent.id, child.business_id

    def append_person(
        self, run: MemoryRun, drafts: Sequence[Draft], actor: str, reason: str = "", wakes: bool = True
    ) -> None:
        """What a person's command does: append under the head's epoch, and wake the run if nobody drives it."""
        assert not any(draft.settles in run.settled for draft in drafts if draft.settles is not None), "settled already"
        run.write(drafts, actor, self.tick())
        if run.session is None and wakes:
            run.status, run.reason, run.wake = "queued", reason, 0.0
            self.messages.append((run.id, run.release_id))

    def pin(self, run: MemoryRun, agent: Agent, actor: str, told: Mapping[str, Any]) -> None:
        """Move a run that nobody drives to another release. `told`: what PIN says beside the two releases."""
        pin = Draft(Kind.PIN, {"release": agent.release_id, "from": run.release_id, **told})
        doubts = {slot.step for slot in run.state.unsettled() if slot.in_doubt}
        self.permits.free(run.id, self.permits.held(run.id).keys() - doubts)
        run.release_id = agent.release_id
        stop = None if run.status not in STAYS else stopped_by(run.state)
        self.append_person(run, [pin], actor, f"pinned to {agent.name}@{agent.version}", stop is None)

    def claim(
        self, run: MemoryRun, session: MemorySession, may_count: bool, release_id: str | None = None
    ) -> Claim | str:
        if release_id not in (None, run.release_id):
            return "pinned elsewhere"
        holder = run.session
        orphaned = holder is not None and holder.ended and holder is not session
        progressed = run.crashes > 0 and any(
            e.settles is not None or (e.kind == Kind.PLAN and e.actor == MODEL_ACTOR)
            for e, _ in run.stored[run.crash_seq :]
        )
        crashes = (0 if progressed else run.crashes) + (orphaned and holder is not None and not holder.draining)
        if run.status in ENDED:
            return "ended"
        if session.ended:
            return "no session"
        if not orphaned and holder is not session:
            due = 0 < run.wake <= self.now.timestamp()
            if holder is not None or (run.status not in CLAIMABLE and not due):
                return "held"
        if crashes >= TAKES_TURNS and not may_count:
            return "counted"
        if crashes != run.crashes or progressed:
            run.crash_seq = run.last_seq
        if orphaned:
            run.taken_over_at = self.now.timestamp()
        run.session, run.epoch, run.crashes = session, run.epoch + 1, int(crashes)
        run.append_no, run.answer = 0, None
        run.status, run.reason, run.wake = "running", "", 0.0
        taken_from = holder.id if orphaned and holder is not None else None
        return Claim(run.id, run.epoch, run.last_seq, taken_from, run.crashes, run.taken_over_at)

    def let_go(self, run: MemoryRun, epoch: int, seen: int, park: Park) -> bool:
        if run.epoch != epoch or run.steering_seq > seen:
            return False
        self._let_go(run, park)
        return True

    def _let_go(self, run: MemoryRun, park: Park) -> None:
        run.session, run.status, run.reason, run.wake = None, park.status, park.reason, park.wake
        run.release_id = park.release or run.release_id
        run.awaits, run.awaits_any = park.awaits, park.awaits_any
        self._join(run)

    def _join(self, run: MemoryRun) -> None:
        """Due at once, if what it waits for of its children has come."""
        ended = [self.runs[child].status in ENDED for child in run.awaits]
        if ended and (any(ended) if run.awaits_any else all(ended)):
            run.wake = self.now.timestamp()

    def tell_parent(self, child: MemoryRun) -> None:
        if child.parent is None or child.status not in ENDED:
            return
        child.parent_told, parent = True, self.runs[child.parent]
        if parent.status == "waiting" and parent.session is None and child.id in parent.awaits:
            self._join(parent)
            if 0 < parent.wake <= self.now.timestamp():
                self.messages.append((parent.id, parent.release_id))

    def ended_children(self, children: Iterable[UUID]) -> dict[UUID, dict[str, Any]]:
        ended = [run for child in children if (run := self.runs[child]).status in ENDED]
        return {run.id: outcome_of_child(run.status, run.reason, run.entries[-1].body) for run in ended}

    def cancel_tree(self, run: MemoryRun, why: str, cause: Mapping[str, Any], actor: str = "system") -> None:
        """CONTROL(cancel) in the run and in all below it that have not ended."""
        if run.status in ENDED:
            return
        body = {"verb": "cancel", "reason": why} | ({"cause": dict(cause)} if cause else {})
        self.append_person(run, [Draft(Kind.CONTROL, body, actor=actor)], actor, f"cancelled by {actor}")
        for child in [other for other in self.runs.values() if other.parent == run.id]:
            self.cancel_tree(child, why, cause or {"run": str(run.id)}, actor)


def start_body(agent: Agent, input: Any, labels: Mapping[str, str] | None) -> dict[str, Any]:
    try:
        code = agent.code_digest
    except OSError:  # written at a prompt: there is no file
        code = ""
    input = sealed_by(agent.takes, input)
    body = {"agent": agent.name, "input": input, "release": agent.release_id, "code": code}
    return body | ({"labels": dict(labels)} if labels else {})
