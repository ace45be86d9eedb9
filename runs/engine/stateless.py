"""Driving a stateless run: the same engine, on a journal in memory that is then forgotten; see runs/stateless.py."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import psycopg
from psycopg_pool import PoolTimeout

from journal.crash import Crashed
from journal.encoding import decode, encode
from journal.entries import Draft, Kind
from runs.agents import Agent
from runs.engine.claims import Claim, Lost
from runs.engine.performing import Flight
from runs.engine.projections import Park
from runs.engine.slice import Slice
from runs.memory.store import Memory, MemoryRun, start_body
from runs.memory.worker import MemoryWorker
from runs.moves import Call, Decided, Fail, Finish, Move
from runs.open_gates import names_of
from runs.outcomes import describe
from runs.texts import plain_text
from runs.trees import Newborn

if TYPE_CHECKING:
    from runs.engine.worker import Worker

log = logging.getLogger("holdfast.stateless")

LONGEST = 30.0  # seconds
TOO_LONG = f"took longer than {LONGEST:g} s: a stateless run has no more; take durability='journal'"
IN_LINE = 0.2  # seconds between two looks for a permit
Ending = tuple[str, str, dict[str, Any]]
CLAIM = """
UPDATE runs_run SET session_id = %(session)s, epoch = epoch + 1, status = 'running', reason = '',
       since = clock_timestamp(), dispatches = 0, dispatched_at = NULL
 WHERE id = %(run)s AND input IS NOT NULL AND session_id IS NULL AND status IN ('queued', 'waiting_for_version')
   AND EXISTS (SELECT FROM runs_workersession s WHERE s.id = %(session)s AND s.ended_at IS NULL)
   AND NOT EXISTS (SELECT FROM runs_gate g WHERE g.lifted_at IS NULL AND g.scope = ANY (%(scopes)s))
RETURNING epoch, input, labels
"""
IS_STATELESS = "SELECT input IS NOT NULL FROM runs_run WHERE id = %s"
# It stays queued, and says the gate. What stops this worker alone stops no run.
HOLD = """
UPDATE runs_run r SET reason = left('gate ' || g.scope || ': ' || g.reason, 2000), dispatched_at = NULL, dispatches = 0
  FROM (SELECT scope, reason FROM runs_gate
         WHERE lifted_at IS NULL AND scope = ANY (%(scopes)s) AND scope !~ '^(worker|region):' LIMIT 1) AS g
 WHERE r.id = %(run)s AND r.input IS NOT NULL AND r.session_id IS NULL AND r.status = 'queued'
RETURNING r.id
"""
GATED_HERE = """
SELECT FROM runs_run r, runs_gate g
 WHERE r.id = %(run)s AND r.input IS NOT NULL AND r.session_id IS NULL AND r.status IN ('queued', 'waiting_for_version')
   AND g.lifted_at IS NULL AND g.scope = ANY (%(scopes)s)
"""
END = """
UPDATE runs_run SET status = %(status)s, reason = %(reason)s, ending = %(ending)s, since = clock_timestamp(),
       session_id = NULL, ended_at = CASE WHEN %(ending)s::bytea IS NOT NULL THEN clock_timestamp() END
 WHERE id = %(run)s AND session_id = %(session)s AND epoch = %(epoch)s AND status = 'running'
"""


def drive(worker: Worker, run_id: UUID, agent: Agent) -> bool:
    """Drive the whole run, if it can be claimed. False: this run has a journal, like one that another spawned."""
    given = {"run": run_id, "session": worker.session.id, "scopes": scopes(worker, agent)}
    with worker.connections.connection() as conn:
        row = conn.execute(CLAIM, given).fetchone()
        if row is None:
            gated = conn.execute(HOLD, given).fetchone() is not None
            elsewhere = not gated and conn.execute(GATED_HERE, given).fetchone() is not None
            known = conn.execute(IS_STATELESS, (run_id,)).fetchone()
    if row is None:
        if elsewhere:
            worker.pass_on(run_id, agent.release_id)
        return known is None or bool(known[0])
    epoch, input, labels = row
    try:
        ending = Life(worker, run_id, agent, decode(bytes(input)), labels).live()
    except Crashed:
        raise
    except Lost:  # the lease may be over: the sweep ends it
        return True
    except BaseException as error:
        log.exception("run %s: the worker failed", run_id)
        ending = failed(f"the worker failed: {describe(error)}")
    if agent.limited:
        worker.permits.free(run_id, None)
    with suppress(Lost):
        end(worker, run_id, epoch, ending)
        worker.notifier.touch(run_id)
        if ending[0] == "queued":
            worker.send(run_id, agent.release_id)
    return True


def scopes(worker: Worker, agent: Agent) -> list[str]:
    """Of the gates that stop the whole run, as it is short: those of its tools among them."""
    here = [f"worker:{name}" for name in names_of(worker.session.name, worker.session.pool)]
    own = [f"agent:{agent.name}", f"release:{agent.name}@{agent.version}", *here, f"region:{worker.session.region}"]
    return ["all", *own, *(f"tool:{name}" for name in agent.toolbox)]


def failed(why: str) -> Ending:
    return "failed", why, {"error": {"reason": why}}


def end(worker: Worker, run_id: UUID, epoch: int, ending: Ending) -> None:
    """One UPDATE, fenced: a cancelled run, or one of a session that was ended, stays as it is."""
    status, reason, body = ending
    given = {
        "run": run_id, "session": worker.session.id, "epoch": epoch, "status": status, "reason": plain_text(reason),
        "ending": encode(body) if body else None,
    }  # fmt: skip
    while True:
        try:
            with worker.connections.connection() as conn:
                conn.execute(END, given)
            break
        except (psycopg.OperationalError, PoolTimeout):
            log.warning("run %s cannot be ended: the database does not answer", run_id)
            worker.pause(1.0)


class StatelessSlice(Slice):
    """Nothing may outlive the run's time, and nothing may be waited for."""

    ends: float  # monotonic

    def stop(self) -> Park | None:
        return Park("failed", TOO_LONG) if time.monotonic() >= self.ends else super().stop()

    def take_off(self, flight: Flight) -> None:
        flight.deadline = min(flight.deadline, self.ends)
        super().take_off(flight)

    def write(self, decided: Decided) -> None:
        waits = [move for move in decided.moves if not isinstance(move, (Call, Finish, Fail))]
        if waits:
            name = type(waits[0]).__name__
            decided = Decided([Fail(f"a stateless run cannot wait: for {name} take durability='journal'")])
        super().write(decided)


class Life(MemoryWorker):
    """One stateless run from its claim to its end: the process's own session, calls, gates and permits, on a memory."""

    def __init__(self, worker: Worker, run_id: UUID, agent: Agent, given: Any, labels: Mapping[str, str]) -> None:
        self.real, self.agent = worker, agent
        super().__init__(Clocked([agent], worker.session.now))
        self.session = worker.session  # type: ignore[assignment]
        self.calls = worker.calls  # type: ignore[assignment]
        self.gates, self.permits = worker.gates, worker.permits  # type: ignore[assignment]
        self.run = MemoryRun(run_id, agent.release_id)
        self.run.write([Draft(Kind.START, start_body(agent, given, labels))], "system", self.memory.tick())
        self.memory.runs[run_id] = self.run
        self.ends = time.monotonic() + LONGEST

    @property
    def draining(self) -> bool:
        return self.real.draining

    @draining.setter
    def draining(self, value: bool) -> None:
        """It drains with its process."""

    def live(self) -> Ending:
        while True:
            claim = self.memory.claim(self.run, self.session, may_count=True)
            assert isinstance(claim, Claim), claim
            piece = StatelessSlice(cast("Worker", self), claim, self.agent)
            piece.ends = self.ends
            park = piece.drive()
            if park is None:
                raise Lost
            if (ending := self._ending(park)) is not None:
                return ending
            if park.status == "waiting":
                self._wait(park)

    def _ending(self, park: Park) -> Ending | None:
        """None: it goes on."""
        state = self.run.state
        if state.done is not None:
            return park.status, park.reason, state.done
        if park.status == "queued":
            return ("queued", park.reason, {}) if self.draining else None
        if park.status == "waiting" and all(slot.kind == "call" for slot in state.unsettled()):
            return None if time.monotonic() < self.ends else failed(TOO_LONG)
        if park.status == "failed":
            return failed(park.reason)
        return failed(f"a stateless run cannot wait for anybody ({park.reason}): take durability='journal'")

    def _wait(self, park: Park) -> None:
        """For a backoff, or for a place in a limit's line: in place, for nobody keeps this run's memory."""
        seconds = park.wake - self.session.now() if park.wake else IN_LINE
        self.real.pause(max(0.0, min(seconds, self.ends - time.monotonic())))
        self.run.status, self.run.wake = "queued", 0.0

    def gate_for(self, agent: Agent) -> str | None:
        return None  # looked at before the claim: it is short

    def newborn(self, parent: UUID, first_step: int, moves: Sequence[Move]) -> dict[int, Newborn]:
        return {}


class Clocked(Memory):
    """A memory on the worker's clock."""

    def __init__(self, agents: Sequence[Agent], clock: Callable[[], float]) -> None:
        self.clock = clock
        super().__init__(agents, datetime.fromtimestamp(clock(), UTC))

    def tick(self) -> datetime:
        self.now = max(self.now, datetime.fromtimestamp(self.clock(), UTC))
        return self.now
