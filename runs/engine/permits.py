"""Permits: whether a call of a limited tool may be sent now. Judged in PostgreSQL (sql/permits_v1.sql), by its clock.

A permit belongs to (run, step). It is asked for just before an ATTEMPT, and kept until that one's outcome is written or
the run parks for a person; a crashed attempt in doubt keeps it. What a crash leaves behind is put in order by the run's
next holder, or by the sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.errors import LockNotAvailable
from psycopg_pool import ConnectionPool, PoolTimeout

from journal.crash import crash_point
from runs.engine.rules import Act, Send, WaitUntil
from runs.limits import at_once_text, ordinal, rate_text

if TYPE_CHECKING:
    from runs.engine.projections import Park
    from runs.slots import Slot
    from runs.state import RunState
    from runs.tools import Tool

log = logging.getLogger("holdfast.permits")

SHORT = 0.2  # seconds that a rate is waited for in place, instead of parking
KEEP_PLACES = ("queued", "waiting", "awaiting_approval", "needs_reconciliation")

ACQUIRE = "SELECT verdict, place, at, woken FROM runs_acquire_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
FREE = "SELECT runs_free_v1(%s, %s::int[])"
HELD = "SELECT step, attempt FROM runs_permit WHERE run_id = %s"
GRANTED = "SELECT EXISTS (SELECT FROM runs_permit WHERE run_id = %s AND granted_at IS NOT NULL AND NOT taken)"
# The head first.
WAKE = """
WITH head AS (SELECT run_id FROM journal_head WHERE run_id = %s FOR NO KEY UPDATE)
UPDATE runs_run r SET wake_at = clock_timestamp(), dispatched_at = clock_timestamp(), dispatches = r.dispatches + 1
  FROM head WHERE r.id = head.run_id AND r.session_id IS NULL
   AND r.status IN ('waiting', 'awaiting_approval', 'needs_reconciliation')
RETURNING r.release_id
"""

# Granted, but the run has not heard of it: its waker died, or found the head busy.
UNHEARD = """
SELECT DISTINCT p.run_id FROM runs_permit p JOIN runs_run r ON r.id = p.run_id
 WHERE p.granted_at < clock_timestamp() - interval '0.2 seconds' AND NOT p.taken AND r.session_id IS NULL
   AND r.status IN ('waiting', 'awaiting_approval', 'needs_reconciliation')
   AND (r.wake_at IS NULL OR r.wake_at > clock_timestamp())
"""
# Kept by a run that nobody drives and that will not use it: it ended, waits for a person, or the step is settled.
LEFT_BEHIND = """
SELECT p.run_id, p.step FROM runs_permit p JOIN runs_run r ON r.id = p.run_id
 WHERE r.session_id IS NULL AND (%(run)s::uuid IS NULL OR p.run_id = %(run)s)
   AND (r.status IN ('done', 'failed', 'cancelled', 'held', 'quarantined', 'waiting_for_version')
        OR p.taken AND p.not_before IS NULL AND (r.status IN ('awaiting_approval', 'needs_reconciliation')
            OR EXISTS (SELECT FROM journal_entry e WHERE e.run_id = p.run_id AND e.settles = p.step)))
"""
LOCK_HEAD = "SELECT run_id FROM journal_head WHERE run_id = %s FOR NO KEY UPDATE SKIP LOCKED"

Dispatch = Callable[[UUID, str], Any]


class Permits(Protocol):
    """What a slice asks of the worker's process."""

    def ask(self, run_id: UUID, slot: Slot, attempt: int, tool: Tool) -> WaitUntil | None:
        """None: it may be sent now. Else until when, or for what, it waits."""

    def held(self, run_id: UUID) -> dict[int, int]:
        """The run's steps that have a permit or a place in line, with the attempt that it is for."""

    def free(self, run_id: UUID, steps: Collection[int] | None) -> None:
        """Give up those of these steps, or all; who is next in line is woken."""

    def parked_in_line(self, run_id: UUID) -> None:
        """The run has let go of its worker. What it was granted just before, nobody could tell it: it is woken."""


@dataclass(frozen=True, slots=True)
class DatabasePermits:
    connections: ConnectionPool
    dispatch: Dispatch

    def ask(self, run_id: UUID, slot: Slot, attempt: int, tool: Tool) -> WaitUntil | None:
        limit, rate = tool.limit, tool.rate
        limit_value, rate_value = tool.limit_value(slot.args), tool.rate_value(slot.args)
        calls, per = rate.counted if rate else (None, None)
        asked = (run_id, slot.step, attempt, tool.name, limit_value, limit.at_once if limit else None,
                 rate_value if rate else None, calls, per)  # fmt: skip
        crash_point("before-permit")
        with self.connections.connection() as conn:
            row = conn.execute(ACQUIRE, asked).fetchone()
            assert row is not None
            verdict, place, at, woken = row
            crash_point("after-permit")
            wake(conn, woken, self.dispatch)
        if verdict == "in line":
            assert limit is not None
            return WaitUntil(None, f"{at_once_text(tool.name, limit, limit_value)}; {ordinal(place)} in line")
        if verdict == "not before":
            assert rate is not None
            return WaitUntil(at, f"{rate_text(tool.name, rate, rate_value)}; its turn comes again")
        return None

    def held(self, run_id: UUID) -> dict[int, int]:
        with self.connections.connection() as conn:
            return dict(conn.execute(HELD, (run_id,)).fetchall())

    def free(self, run_id: UUID, steps: Collection[int] | None) -> None:
        crash_point("before-free")
        with self.connections.connection() as conn:
            freed = conn.execute(FREE, (run_id, None if steps is None else list(steps))).fetchall()
            crash_point("after-free")
            wake(conn, (given for (given,) in freed), self.dispatch)

    def parked_in_line(self, run_id: UUID) -> None:
        with self.connections.connection() as conn:
            row = conn.execute(GRANTED, (run_id,)).fetchone()
            if row is not None and row[0]:
                wake(conn, [run_id], self.dispatch)


def wake(conn: Connection[Any], run_ids: Iterable[UUID], dispatch: Dispatch) -> None:
    """Make runs that were granted a permit due, each in a transaction of its own, and send them.

    One whose head stays busy is left to the sweep, which looks for granted permits that nobody has heard of.
    """
    for run_id in run_ids:
        try:
            row = conn.execute(WAKE, (run_id,)).fetchone()
        except LockNotAvailable:
            continue
        if row is not None:
            dispatch(run_id, row[0])


def repair(conn: Connection[Any], dispatch: Dispatch) -> None:
    """The sweep's part: whatever died in between, no permit is lost, and none is kept for nothing."""
    wake(conn, [run_id for (run_id,) in conn.execute(UNHEARD).fetchall()], dispatch)
    for run_id in {run_id for run_id, _ in conn.execute(LEFT_BEHIND, {"run": None}).fetchall()}:
        with conn.transaction():  # nobody can claim the run meanwhile, and then find its permit gone
            if conn.execute(LOCK_HEAD, (run_id,)).fetchone() is None:
                continue
            steps = [step for _, step in conn.execute(LEFT_BEHIND, {"run": run_id}).fetchall()]
            freed = conn.execute(FREE, (run_id, steps)).fetchall()
        wake(conn, (given for (given,) in freed), dispatch)


@dataclass(slots=True)
class Admission:
    """A slice's part: which of its steps may be sent, and which permits it has to give up.

    `mine`: steps with a permit or a place in line, and the attempt that it is for. `granted`: those of them that may be
    sent, so that an ATTEMPT which was refused asks for nothing twice.
    """

    permits: Permits
    run_id: UUID
    pause: Callable[[float], None]
    now: Callable[[], float]
    mine: dict[int, int] = field(default_factory=dict)
    granted: dict[int, int] = field(default_factory=dict)

    def put_in_order(self, state: RunState) -> None:
        """At the beginning of a slice: permits that the last holder did not come to give up."""
        self.mine = self.permits.held(self.run_id)
        self.settle(state)

    def admit(
        self, ready: Mapping[int, Act], slots: Mapping[int, Slot], tools: Mapping[str, Tool]
    ) -> dict[int, WaitUntil]:
        """The sends among these that may not go now, and why."""
        kept: dict[int, WaitUntil] = {}
        for step, act in ready.items():
            slot = slots[step]
            tool = tools.get(slot.tool) if slot.kind == "call" else None
            if not isinstance(act, Send) or tool is None or not tool.limited:
                continue
            if (wait := self._ask(slot, tool)) is not None:
                kept[step] = wait
        return kept

    def _ask(self, slot: Slot, tool: Tool) -> WaitUntil | None:
        attempt = len(slot.attempts) + 1
        if self.granted.get(slot.step) == attempt:
            return None
        self.mine[slot.step] = attempt
        while (wait := self.permits.ask(self.run_id, slot, attempt, tool)) is not None:
            if wait.at is None or wait.at - self.now() > SHORT:
                return wait
            self.pause(max(0.001, wait.at - self.now()))
        self.granted[slot.step] = attempt
        return None

    def settle(self, state: RunState) -> None:
        """After an append: what is settled, or surely was not done, needs its permit no more."""
        if self.mine:
            self._give_up([step for step, attempt in self.mine.items() if not is_needed(state.open.get(step), attempt)])

    def parked(self, park: Park, state: RunState) -> None:
        """After the run was let go. What waits for a person gives up its permit; what stands in line keeps its place,
        unless the run will not go on by itself."""
        if not self.mine:
            return
        if park.status not in KEEP_PLACES:
            self._give_up(list(self.mine))
        elif park.status in ("awaiting_approval", "needs_reconciliation"):
            self._give_up([step for step in self.mine if step in state.open and state.open[step].in_doubt])
        if park.status in KEEP_PLACES and self.mine.keys() - self.granted.keys():
            with left_to_the_sweep(self.run_id):
                self.permits.parked_in_line(self.run_id)

    def _give_up(self, steps: list[int]) -> None:
        if not steps:
            return
        with left_to_the_sweep(self.run_id):
            self.permits.free(self.run_id, steps)
            for step in steps:
                self.mine.pop(step)
                self.granted.pop(step, None)


@contextmanager
def left_to_the_sweep(run_id: UUID) -> Iterator[None]:
    """A permit that cannot be given up now is given up after the next append, or by the sweep."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        log.warning("permits of run %s are left to the sweep: %s", run_id, error)


def is_needed(slot: Slot | None, attempt: int) -> bool:
    """Whether this attempt is not sent yet, or may be acting. What is asked about anew is in nobody's way meanwhile: a
    relative may have done the same while it stood in line."""
    if slot is None or slot.state == "awaiting_approval":
        return False
    return slot.in_doubt or len(slot.attempts) < attempt
