"""Runs in memory: the real engine, fold, rules and drivers on journals that are lists. No database, broker or thread.

A `Memory` is what PostgreSQL is elsewhere: heads, run rows, evidence, and the one clock, which moves only when told.
Its answers are those of the functions in journal/sql and runs/sql; tests/testing/test_memory.py compares them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from journal.committer import Append
from journal.crash import Crashed, crash_point
from journal.encoding import decode, encode
from journal.entries import STEERING, Answer, Draft, Entry, Kind
from runs.agents import Agent
from runs.calls import CallPool, Job, Raised, Returned
from runs.claims import TAKES_TURNS, Claim
from runs.projections import Park
from runs.state import MODEL_ACTOR, RunState, Slot, fold
from runs.worker import Worker

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(milliseconds=1)  # between two appends, so that no two have the same time
ENDED = ("done", "failed", "cancelled")
CLAIMABLE = ("queued", "running", "waiting_for_version")
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
        self.hired = 0

    def tick(self) -> datetime:
        self.now += TICK
        return self.now

    def hire(self) -> MemoryWorker:
        self.hired += 1
        return MemoryWorker(self, MemorySession(self, f"memory-{self.hired}"))

    def lose(self, worker: MemoryWorker) -> None:
        """As if its process had died and the supervisor had seen it."""
        worker.session.ended = True

    def start(self, agent: Agent, input: Any = None, labels: dict[str, str] | None = None) -> MemoryRun:
        run_id = UUID(int=0x01900000_0000_7000_8000_000000000000 + len(self.runs) + 1)
        body = {"agent": agent.name, "input": input, "release": agent.release_id, "code": agent.code_digest}
        if labels:
            body["labels"] = dict(labels)
        run = self.runs[run_id] = MemoryRun(run_id, agent.release_id)
        run.write([Draft(Kind.START, body)], "test", self.tick())
        self.messages.append((run_id, agent.release_id))
        return run

    def sweep(self) -> None:
        """Send what is due, what a dead worker left, and what no message will reach."""
        sent = {run_id for run_id, _ in self.messages}
        for run in self.runs.values():
            if run.id in sent:
                continue
            due = run.session is None and (run.status == "queued" or 0 < run.wake <= self.now.timestamp())
            orphaned = run.session is not None and run.session.ended
            if run.status not in ENDED and (due or orphaned):
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
        if append.then and not refused and (steered <= append.seen or run.steering_seq >= first):
            self._let_go(run, append.then["status"], append.then["reason"], append.then["wake"])
        return run.answer

    def append_person(self, run: MemoryRun, drafts: Sequence[Draft], actor: str, reason: str = "") -> None:
        """What a person's command does: append under the head's epoch, and wake the run if nobody drives it."""
        assert not any(draft.settles in run.settled for draft in drafts if draft.settles is not None), "settled already"
        run.write(drafts, actor, self.tick())
        if run.session is None:
            run.status, run.reason, run.wake = "queued", reason, 0.0
            self.messages.append((run.id, run.release_id))

    def claim(self, run: MemoryRun, session: MemorySession, may_count: bool) -> Claim | str:
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
        self._let_go(run, park.status, park.reason, park.wake)
        return True

    def _let_go(self, run: MemoryRun, status: str, reason: str, wake: float) -> None:
        run.session, run.status, run.reason, run.wake = None, status, reason, wake


class MemoryCommitter:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def append(self, append: Append) -> Answer:
        crash_point("before-commit")
        answer = self._memory.append(append)
        crash_point("after-commit")
        return answer


class MemoryCalls(CallPool):
    """Calls are made at once, in the thread that asks; calls side by side one after the other, in the order of steps.

    What is in `fatal` ends the test instead of becoming an outcome.
    """

    def __init__(self, landed: Callable[[Job, Any], None], fatal: tuple[type[BaseException], ...]) -> None:
        super().__init__()
        self._landed, self._fatal = landed, fatal

    def start(self, job: Job) -> None:
        try:
            how: Returned | Raised = Returned(job.run())
        except self._fatal:
            raise
        except BaseException as error:
            how = Raised(error)
        self._landed(job, how)


class MemoryStore:
    """Values of any size stay in their entry."""

    limit = 1 << 60

    def resolve(self, body: dict[str, Any]) -> dict[str, Any]:
        return body


class Silent:
    """Nobody watches."""

    def touch(self, run_id: UUID) -> None:
        return None


class MemoryWorker(Worker):
    """A worker on a `Memory`: everything that the engine asks of a worker, answered at once."""

    session: MemorySession  # type: ignore[assignment]

    def __init__(self, memory: Memory, session: MemorySession) -> None:
        self.memory, self.session = memory, session
        self.agents = memory.agents
        self.store = MemoryStore()  # type: ignore[assignment]
        self.committer = MemoryCommitter(memory)  # type: ignore[assignment]
        self.calls = MemoryCalls(self._landed, (Crashed, KeyboardInterrupt, AssertionError))
        self.notifier = Silent()  # type: ignore[assignment]
        self.driving = {}
        self.draining = False
        self.gates = frozenset()
        self.on_end = lambda: None
        self._counted = None
        self._counted_waiting = deque()
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def dispatch(self, run_id: UUID, release_id: str) -> None:
        self.memory.messages.append((run_id, release_id))

    def _landed(self, job: Any, how: Any) -> None:
        piece = self.driving[job.run_id]
        assert piece is not None
        piece.inbox.put((job, how))

    def _claim(self, run_id: UUID, release_id: str, may_count: bool) -> Claim | None:
        crash_point("before-claim")
        answer = self.memory.claim(self.memory.runs[run_id], self.session, may_count)
        crash_point("after-claim")
        return answer if isinstance(answer, Claim) else None

    def _give_back(self, claimed: Claim, error: BaseException) -> Park | None:
        raise error

    def read(self, run_id: UUID) -> list[Entry]:
        return self.memory.runs[run_id].entries

    def let_go(self, run_id: UUID, epoch: int, seen: int, park: Park) -> bool:
        return self.memory.let_go(self.memory.runs[run_id], epoch, seen, park)

    def epoch_of(self, run_id: UUID) -> int:
        return self.memory.runs[run_id].epoch

    def keep_evidence(self, run_id: UUID, epoch: int, draft: Draft) -> None:
        run = self.memory.runs[run_id]
        if draft.step is None or "outcome" not in draft.body:
            return
        body = encode(draft.body)
        if any(e.settles == draft.step and stored == body for e, stored in run.stored):
            return
        run.evidence.append((draft.step, epoch, body, False))

    def late_successes(self, run_id: UUID, slots: list[Slot]) -> list[tuple[Slot, dict[str, Any], dict[str, Any]]]:
        by_step = {slot.step: slot for slot in slots}
        kept = enumerate(self.memory.runs[run_id].evidence)
        found = [
            (by_step[step], decode(body), {"evidence": n, "epoch": epoch})
            for n, (step, epoch, body, adopted) in kept
            if step in by_step and not adopted
        ]
        return [late for late in found if late[1]["outcome"] == "succeeded"]

    def mark_adopted(self, number: int, seq: int) -> None:
        for run in self.memory.runs.values():
            if number < len(run.evidence):
                step, epoch, body, _ = run.evidence[number]
                run.evidence[number] = (step, epoch, body, True)

    def pause(self, seconds: float) -> None:
        self.memory.now += timedelta(seconds=seconds)

    def drain(self) -> None:
        self.draining = self.session.draining = True

    def close(self, reason: str = "stopped") -> None:
        self.session.ended = True
