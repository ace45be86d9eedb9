"""A worker process: one session, one committer, a few connections, and the runs that it drives."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from journal.committer import Committer
from journal.crash import Crashed, crash_point
from journal.entries import Draft, Entry
from journal.errors import CommitterClosed
from journal.feed import Notifier
from journal.payloads import PayloadStore
from journal.read import read_entries
from runs import trees
from runs.agents import Agent
from runs.engine import drafts, evidence, stateless
from runs.engine.at_gates import AtGates
from runs.engine.calls import CallPool
from runs.engine.claims import TAKES_TURNS, Claim, Lost, claim, next_in_flight
from runs.engine.flights import STEERED
from runs.engine.giving_back import give_back, is_away
from runs.engine.permits import DatabasePermits, Permits
from runs.engine.projections import Park, RunsProjection, let_go
from runs.engine.recorder import Recorder
from runs.engine.sessions import Session, SessionEnded, open_connections
from runs.engine.slice import Slice
from runs.engine.turns import Turns
from runs.loops.under_way import Teller
from runs.moves import Move, Spawn
from runs.outcomes import describe
from runs.relatives import InPool, Relations
from runs.slots import Slot
from runs.trees import Newborn

log = logging.getLogger("holdfast.worker")

EPOCH = "SELECT epoch FROM journal_head WHERE run_id = %s"
Dispatch = Callable[[UUID, str], bool]
DECISION_LIMIT = 60.0  # seconds that an agent's code may take for one decision


class Worker(AtGates):
    """Drives runs until it is drained or its session ends. `dispatch(run id, release id)` sends the next message."""

    def __init__(
        self,
        dsn: str,
        session: Session,
        agents: dict[str, Agent],
        store: PayloadStore,
        dispatch: Dispatch,
        connections: int = 4,
    ) -> None:
        super().__init__(session)
        self.agents, self.store, self.dispatch = agents, store, dispatch
        # With one run in flight there is nobody to hold up: it asks again on the one connection, however long it takes.
        self.committer = Committer(dsn, RunsProjection(), patience=1.0 if connections > 1 else math.inf)
        self.committer.connect()  # before the session tells others that there is a worker
        self.connections = open_connections(dsn, connections)
        session.register(self.connections)
        self.calls = CallPool(on_too_many=lambda: self.on_end())
        self.notifier = Notifier(self.connections.connection)
        self.under_way = Teller(self.connections.connection, self.notifier.touch)
        self.driving: dict[UUID, Slice | None] = {}
        self.draining = False
        self.permits: Permits = DatabasePermits(self.connections, dispatch)
        self.relations: Relations = InPool(self.connections)
        self.decision_limit = DECISION_LIMIT
        self.on_end: Callable[[], None] = lambda: None
        self.turns = Turns(self.send)
        self._lock = threading.Lock()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heart.start()

    # -- runs -------------------------------------------------------------------------------------------------------

    def advance(self, run_id: UUID, release_id: str) -> Park | None:
        """Drive one slice of the run, or of a more urgent one of its release: then this one is sent again.

        Returns how it was let go; None if it could not be claimed, or was lost, or has no journal.
        """
        agent = self.agents.get(release_id)
        stops = self.draining or self.session.ended
        if agent is not None and agent.durability == "stateless" and not stops and stateless.drive(self, run_id, agent):
            return None
        taken = self._take(run_id, release_id, look_urgent=True)
        if isinstance(taken, UUID):
            urgent = self._take(taken, release_id, look_urgent=False)
            if isinstance(urgent, Claim):
                self.send(run_id, release_id)
                taken = urgent
            else:  # somebody else was quicker
                taken = self._take(run_id, release_id, look_urgent=False)
        return self._drive(taken, release_id) if isinstance(taken, Claim) else None

    def _take(self, run_id: UUID, release_id: str, look_urgent: bool) -> Claim | UUID | None:
        """The claim, or which run is more urgent."""
        with self._lock:
            if run_id in self.driving or self.draining or self.session.ended or release_id not in self.agents:
                return None
            self.driving[run_id] = None
        claimed: Claim | UUID | None = None
        try:
            claimed = self._claim(run_id, release_id, self.turns.reserve(run_id), look_urgent)
        finally:
            if not isinstance(claimed, Claim):
                self._forget(run_id)
        return claimed

    def _forget(self, run_id: UUID) -> None:
        with self._lock:
            self.driving.pop(run_id, None)
        self.turns.over(run_id)

    def _drive(self, claimed: Claim, release_id: str) -> Park | None:
        run_id, agent = claimed.run_id, self.agents[release_id]
        try:
            piece = Slice(self, claimed, agent)
            self.driving[run_id] = piece
            try:
                park = piece.drive()
            except Crashed:
                raise
            except BaseException as error:
                log.exception("run %s: the worker failed", run_id)
                park = self._give_back(claimed, error)
        finally:
            self._forget(run_id)
        self.notifier.touch(run_id)
        if park is not None and park.status == "queued":
            self.send(run_id, park.release or release_id)
        if park is not None and agent.limit is not None:
            self._send_next(agent)
        return park

    def _send_next(self, agent: Agent) -> None:
        """A place among the agent's runs in flight is free: send who waits for it. A sweep does it, if this fails."""
        try:
            with self.connections.connection() as conn:
                following = next_in_flight(conn, agent.name)
        except (psycopg.Error, PoolTimeout) as error:
            log.warning("the next run of %s is left to the sweep: %s", agent.name, error)
            return
        for run_id, release_id in following:
            self.send(run_id, release_id)

    def _give_back(self, claimed: Claim, error: BaseException) -> Park | None:
        """No run stays with a session that does not drive it: queued if only the database was away, else held."""
        away = is_away(error) or isinstance(error, (PoolTimeout, CommitterClosed))
        if isinstance(error, CommitterClosed):  # torn out of its work: this process can write nothing any more
            self.on_end()
        park = Park("queued", "the database was away") if away else None
        while True:
            try:
                with self.connections.connection() as conn:
                    return give_back(conn, claimed, park, f"the worker failed: {describe(error)}")
            except (psycopg.Error, PoolTimeout):
                log.warning("run %s cannot be given back: the database does not answer", claimed.run_id)
                if self._stopping.wait(1.0) or self.session.ended:
                    return None

    def _give_up_the_stuck(self) -> None:
        """A decision that does not return cannot be stopped: its run is held, its thread fenced and counted as lost."""
        for run_id, piece in list(self.driving.items()):
            began = piece.deciding if piece is not None else None
            if piece is None or began is None or time.monotonic() - began < self.decision_limit:
                continue
            why = f"the agent's code did not decide within {self.decision_limit:g} s (after entry {piece.seen})"
            try:
                with self.connections.connection() as conn:
                    held = give_back(conn, piece.claim, None, why, fence=True)
            except (psycopg.Error, PoolTimeout) as error:
                log.warning("run %s is stuck in a decision and cannot be held yet: %s", run_id, error)
                continue
            piece.deciding = None
            if held is not None:
                log.error("run %s: %s", run_id, why)
                self.calls.abandon()

    def _claim(self, run_id: UUID, release_id: str, may_count: bool, look_urgent: bool) -> Claim | UUID | None:
        assert self.session.id is not None
        at_once = self.agents[release_id].limit
        try:
            with self.connections.connection() as conn:
                crash_point("before-claim")
                answer, gates = claim(conn, self.session.id, run_id, release_id, may_count, at_once, look_urgent)
                crash_point("after-claim")
        except psycopg.errors.LockNotAvailable:
            return None  # a person holds the head; the sweep sends another message
        self.hear(gates)
        if isinstance(answer, UUID):
            return answer
        if isinstance(answer, Claim):
            if answer.crashes < TAKES_TURNS:
                self.turns.over(run_id)
            return answer
        if answer == "counted":
            self.turns.wait(run_id, release_id)
        elif answer == "no session":
            self._lose_session()
        elif answer == "gated here":
            self.pass_on(run_id, release_id)
        return None

    def touched(self, piece: Recorder) -> None:
        """An append was written: watchers hear of it, and a run that made progress is no suspect any more."""
        self.notifier.touch(piece.run_id)
        if piece.progressed:
            self.turns.over(piece.run_id)

    def send(self, run_id: UUID, release_id: str) -> bool:
        crash_point("before-dispatch")
        taken = self.dispatch(run_id, release_id)
        crash_point("after-dispatch")
        return taken

    # -- what a slice asks of the database --------------------------------------------------------------------------

    def read(self, run_id: UUID) -> list[Entry]:
        """The run's entries, large values loaded."""
        with self.connections.connection() as conn:
            entries = read_entries(conn, run_id)
        for entry in entries:
            entry.body = self.store.resolve(entry.body)
        return entries

    def let_go(self, run_id: UUID, epoch: int, seen: int, park: Park) -> bool:
        with self.connections.connection() as conn:
            return let_go(conn, run_id, epoch, seen, park)

    def epoch_of(self, run_id: UUID) -> int:
        with self.connections.connection() as conn:
            row = conn.execute(EPOCH, (run_id,)).fetchone()
        return int(row[0]) if row else -1

    def newborn(self, parent: UUID, first_step: int, moves: Sequence[Move]) -> dict[int, Newborn]:
        """The children that these moves start, by step."""
        spawns = {step: move for step, move in enumerate(moves, first_step) if isinstance(move, Spawn)}
        if not spawns:
            return {}
        now = self.session.now()
        with self.connections.connection() as conn:
            if trees.depth_of(conn, parent) >= trees.DEEPEST:
                return {step: Newborn(step, move.agent, refused=trees.TOO_DEEP) for step, move in spawns.items()}
            born: dict[int, Newborn] = {}
            for step, move in spawns.items():
                child = trees.newborn(conn, parent, step, move, now, self.agents, self.store)
                born[step] = trees.only_one(child, born.values())
            return born

    def born(self, children: Sequence[Newborn]) -> None:
        """They go out to workers. With the broker away the first try is enough: the sweep sends them."""
        for child in children:
            assert child.id is not None and child.release is not None
            if not self.send(child.id, child.release):
                return

    def ended_children(self, children: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
        with self.connections.connection() as conn:
            return trees.ended_children(conn, children, self.store)

    def started_by(self, run_id: UUID) -> str:
        with self.connections.connection() as conn:
            return trees.started_by(run_id, conn)

    def cancel_child(self, child: UUID, why: str, cause: Mapping[str, Any]) -> None:
        """The child and all below it, if it has not ended."""
        crash_point("before-cancel-child")
        with self.connections.connection() as conn, conn.transaction():
            woken = trees.cancel_tree(child, why, drafts.SYSTEM, cause, conn)
        crash_point("after-cancel-child")
        for run_id, release_id in woken:
            self.send(run_id, release_id)

    def tell_parent(self, child: UUID) -> None:
        """A hint that spares the parent a sweep interval."""
        crash_point("before-tell-parent")
        try:
            with self.connections.connection() as conn:
                due = trees.tell_parent(child, conn)
            crash_point("after-tell-parent")
        except psycopg.Error as error:
            log.warning("the parent of run %s hears of its end from the sweep: %s", child, error)
            return
        if due is not None:
            self.send(*due)

    def keep_evidence(self, run_id: UUID, epoch: int, draft: Draft) -> None:
        """Kept as soon as the database answers: nobody else knows of this result."""
        while True:
            try:
                with self.connections.connection() as conn:
                    woken = evidence.keep(conn, run_id, epoch, self.session.id, draft)
                break
            except (psycopg.OperationalError, PoolTimeout, PoolClosed) as error:
                log.warning("a result of run %s step %s is not kept yet: %s", run_id, draft.step, error)
                if self._stopping.wait(1.0):
                    return
        if woken is not None:
            self.dispatch(run_id, woken)

    def late_successes(self, run_id: UUID, slots: list[Slot]) -> list[tuple[Slot, dict[str, Any], dict[str, Any]]]:
        if not slots:
            return []
        by_step = {slot.step: slot for slot in slots}
        with self.connections.connection() as conn:
            found = evidence.late_successes(conn, run_id, list(by_step))
        return [(by_step[step], body, origin) for step, body, origin in found]

    def mark_adopted(self, number: int, seq: int) -> None:
        with self.connections.connection() as conn:
            evidence.adopt(conn, number, seq)

    # -- the session ------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Renew the lease every third of it; hear of people's entries and of gates."""
        while not self._stopping.wait(self.session.lease / 3):
            try:
                beat = self.session.renew(self.connections)
            except SessionEnded:
                self._lose_session()
                return
            except (psycopg.Error, PoolTimeout) as error:
                log.warning("heartbeat of %s failed: %s", self.session.name, error)
                continue
            self.hear(beat.gates)
            self._look_after(beat.holds)
            self._give_up_the_stuck()

    def _look_after(self, holds: Mapping[UUID, tuple[int, str]]) -> None:
        """Tell slices what people wrote. A run that is held but not driven (its lease seemed over just before an effect
        or the answer to its claim was lost) is taken up again: nobody else would while this session lives."""
        for run_id, (steered, _) in holds.items():
            piece = self.driving.get(run_id)
            if piece is not None and steered > piece.seen:
                piece.inbox.put(STEERED)
        left = [(run_id, release_id) for run_id, (_, release_id) in holds.items() if run_id not in self.driving]
        if left and not self.draining:  # in a thread: a broker that is away must not cost the lease
            threading.Thread(target=self._take_up, args=(left,), name="take up", daemon=True).start()

    def _take_up(self, left: Sequence[tuple[UUID, str]]) -> None:
        """By a message; a child of a prefork pool drives it itself, for the message would go to any of them."""
        for run_id, release_id in left:
            log.warning("run %s is held but not driven: taken up again", run_id)
            try:
                (self.advance if self.session.pool == "prefork" else self.dispatch)(run_id, release_id)
            except (psycopg.Error, PoolTimeout) as error:
                log.warning("run %s cannot be taken up yet: %s", run_id, error)

    def _lose_session(self) -> None:
        """Somebody ended the session: its runs go on elsewhere. Nothing more is written; results become evidence."""
        log.error("session %s of %s was ended by somebody else", self.session.id, self.session.name)
        self.session.ended = True
        self.draining = True
        self.on_end()

    def pause(self, seconds: float) -> None:
        """Wait for something outside to come back; raises Lost when the lease cannot be trusted any more."""
        if self._stopping.wait(seconds) or not self.session.alive:
            raise Lost

    def drain(self) -> None:
        """Gate the own session: no new attempts. Needs no answer of the database."""
        self.draining = True
        for piece in list(self.driving.values()):
            if piece is not None:
                piece.inbox.put(STEERED)
        threading.Thread(target=self._tell_draining, name="drain", daemon=True).start()

    def _tell_draining(self) -> None:
        """Until the database has heard it: what is still open at the end of the grace is no crash then."""
        while not self._stopping.is_set():
            try:
                self.session.drain(self.connections)
                return
            except (psycopg.Error, PoolTimeout, PoolClosed) as error:
                log.warning("could not say yet that %s drains: %s", self.session.name, error)
            self._stopping.wait(1.0)

    def close(self, reason: str = "stopped") -> None:
        """End the session; what is still under way becomes evidence at most."""
        self._stopping.set()
        try:
            self.session.end(self.connections, reason)
        except (psycopg.Error, PoolTimeout) as error:
            log.warning("could not end session of %s: %s", self.session.name, error)
        self.committer.close()
        self.under_way.close()
        self.notifier.close()
        self.connections.close(timeout=1)
