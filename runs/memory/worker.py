"""A worker on a `Memory`: what the real engine asks of a worker, answered at once and in one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from journal.committer import Append
from journal.crash import Crashed, crash_point
from journal.encoding import decode, encode
from journal.entries import Answer, Draft, Entry
from runs.agents import Agent
from runs.engine.calls import CallPool, Job, Raised, Returned
from runs.engine.claims import Claim
from runs.engine.projections import Park
from runs.engine.slice import Slice
from runs.memory.store import Memory, MemorySession
from runs.moves import Move, Spawn
from runs.open_gates import OpenGates
from runs.relatives import Member
from runs.slots import Slot
from runs.trees import Newborn, only_one

if TYPE_CHECKING:
    from runs.engine.worker import Worker


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


class Unwatched:
    """Nobody watches answers arrive."""

    def hear(self, run_id: UUID, epoch: int, attempt_seq: int, text: str, thinking: str) -> None: ...

    def over(self, run_id: UUID) -> None: ...


@dataclass(frozen=True, slots=True)
class MemoryRelations:
    """Nobody forks a run in memory."""

    memory: Memory

    def family(self, root: UUID) -> list[Member]:
        return []

    def read_behind(self, run_id: UUID, after: int) -> list[Entry]:
        return self.memory.runs[run_id].entries[after:]


class MemoryWorker:
    """A worker on a `Memory`: all that the engine asks of a `runs.engine.worker.Worker`, answered at once."""

    def __init__(self, memory: Memory, name: str = "memory") -> None:
        self.memory, self.session = memory, MemorySession(memory, name)
        self.store = MemoryStore()
        self.committer = MemoryCommitter(memory)
        self.calls = MemoryCalls(self._landed, (Crashed, KeyboardInterrupt, AssertionError))
        self.driving: dict[UUID, Slice] = {}
        self.draining = False
        self.permits = memory.permits
        self.relations = MemoryRelations(memory)
        self.gates = OpenGates(memory.gates)
        self.gate_here: str | None = None  # it is nowhere
        self.under_way = Unwatched()

    def die(self) -> None:
        """As if its process had died and the supervisor had seen it."""
        self.session.ended = True

    def advance(self, run_id: UUID, release_id: str) -> Park | None:
        """Drive one slice of the run, if it can be claimed. Returns how it was let go."""
        if run_id in self.driving or self.draining or self.session.ended:
            return None
        crash_point("before-claim")
        claim = self.memory.claim(self.memory.runs[run_id], self.session, may_count=True, release_id=release_id)
        crash_point("after-claim")
        if not isinstance(claim, Claim):
            return None
        piece = self.driving[run_id] = Slice(cast("Worker", self), claim, self.memory.agents[release_id])
        try:
            park = piece.drive()
        finally:
            del self.driving[run_id]
        if park is not None and park.status == "queued":
            self.send(run_id, park.release or release_id)
        return park

    def send(self, run_id: UUID, release_id: str) -> None:
        crash_point("before-dispatch")
        self.memory.messages.append((run_id, release_id))
        crash_point("after-dispatch")

    def _landed(self, job: Any, how: Any) -> None:
        self.driving[job.run_id].inbox.put((job, how))

    def gate_for(self, agent: Agent) -> str | None:
        return self.gates.over_runs_of(agent.name, agent.version)

    def touched(self, piece: object) -> None:
        """Nobody watches."""

    def read(self, run_id: UUID) -> list[Entry]:
        return self.memory.runs[run_id].entries

    def let_go(self, run_id: UUID, epoch: int, seen: int, park: Park) -> bool:
        return self.memory.let_go(self.memory.runs[run_id], epoch, seen, park)

    def epoch_of(self, run_id: UUID) -> int:
        return self.memory.runs[run_id].epoch

    def newborn(self, parent: UUID, first_step: int, moves: Sequence[Move]) -> dict[int, Newborn]:
        spawns = [(step, move) for step, move in enumerate(moves, first_step) if isinstance(move, Spawn)]
        born: dict[int, Newborn] = {}
        for step, move in spawns:
            born[step] = only_one(self.memory.newborn(parent, step, move), born.values())
        return born

    def born(self, children: Sequence[Newborn]) -> None:
        """The memory has sent them when it bore them."""

    def ended_children(self, children: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
        return self.memory.ended_children(children)

    def started_by(self, run_id: UUID) -> str:
        return self.memory.started_by(run_id)

    def cancel_child(self, child: UUID, why: str, cause: Mapping[str, Any]) -> None:
        self.memory.cancel_tree(self.memory.runs[child], why, cause)

    def tell_parent(self, child: UUID) -> None:
        self.memory.tell_parent(self.memory.runs[child])

    def keep_evidence(self, run_id: UUID, epoch: int, draft: Draft) -> None:
        run = self.memory.runs[run_id]
        if draft.step is None or "outcome" not in draft.body:
            return
        body = encode(draft.body)
        if not any(e.settles == draft.step and stored == body for e, stored in run.stored):
            run.evidence.append((draft.step, epoch, body, False))

    def late_successes(self, run_id: UUID, slots: list[Slot]) -> list[tuple[Slot, dict[str, Any], dict[str, Any]]]:
        by_step = {slot.step: slot for slot in slots}
        found = [
            (by_step[step], decode(body), {"evidence": n, "epoch": epoch})
            for n, (step, epoch, body, adopted) in enumerate(self.memory.runs[run_id].evidence)
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
