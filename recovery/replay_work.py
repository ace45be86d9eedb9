"""A worker decides a journal again for whoever ordered it. No call, and no write but to the order's own row.

1. The row is taken under the worker's session: of two workers with the same message one goes on.
2. The agent's code decides in a thread that can be given up: it may not return.
3. What was found is written if the row is still this session's. A worker that dies in between leaves a row of an ended
   session, which the sweep sends to another; one at which two workers died is given up, and so are those after it as
   long as the release has the same code. What else a worker that died so had in hand counts no crash: a trigger of
   runs_workersession sees to it, whoever ends the session.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb
from psycopg_pool import PoolTimeout

from journal.crash import Crashed, crash_point
from journal.encoding import decode
from journal.entries import Entry
from journal.errors import PayloadAltered, PayloadMissing, PayloadStoreDown
from recovery.deciding import GivenUp, decide_within
from recovery.redecided import Result, column_text, decided_again
from recovery.replays import LONGEST, NOBODYS
from runs.agents import Agent
from runs.asked_otherwise import releases_in
from runs.edits import CannotEdit
from runs.engine.claims import Lost
from runs.engine.worker import Worker
from runs.outcomes import describe
from runs.redeciding import Watch

log = logging.getLogger("holdfast.replays")

MOST_DEATHS = 2
DEADLY = f"{MOST_DEATHS} workers died or stood still over it"
DEADLY_BEFORE = "not tried: workers died or stood still over another replay under this code within the last hour"
LOADING = 30.0  # seconds
SHARE = 4  # of a process's runs at a time, one in so many may be replays
TAKE = f"""
UPDATE recovery_replay r SET taken_by = %(session)s, taken_at = clock_timestamp(), takes = r.takes + 1
 WHERE r.id = %(id)s AND r.release_id = ANY (%(serves)s) AND {NOBODYS}
RETURNING r.run_id, r.release_id, r.purpose, r.at, r.edits, r.asks_model, r.takes
"""
GIVE_BACK = """
UPDATE recovery_replay SET taken_by = NULL, taken_at = NULL, takes = takes - 1, dispatched_at = NULL, dispatches = 0
 WHERE id = %(id)s AND taken_by = %(session)s AND ended_at IS NULL
"""
# A bulk act orders some at a time: when these are almost made, a sweep orders the next.
FINISH = """
WITH made AS (
    UPDATE recovery_replay SET ended_at = clock_timestamp(), as_of_seq = %(as_of)s, verdict = %(verdict)s,
           result = %(result)s, error = %(error)s
     WHERE id = %(id)s AND taken_by = %(session)s AND ended_at IS NULL
    RETURNING id, bulk_id)
SELECT pg_notify('holdfast_sweep', '') FROM made
 WHERE (SELECT count(*) FROM recovery_replay o
         WHERE o.bulk_id = made.bulk_id AND o.ended_at IS NULL AND o.id <> made.id) <= 2 AND made.bulk_id IS NOT NULL
"""
CONTENTS = "SELECT id, content FROM runs_release WHERE id = ANY (%(ids)s)"
# The last orders are enough: the primary key finds them.
KILLED = """
SELECT EXISTS (SELECT FROM recovery_replay o JOIN runs_workersession w ON w.id = o.taken_by
                 JOIN runs_workersession me ON me.id = %(session)s
                WHERE o.id > %(id)s - 10000 AND o.release_id = %(release)s AND o.error = %(deadly)s
                  AND o.ended_at > clock_timestamp() - interval '1 hour'
                  AND w.codes -> %(release)s IS NOT DISTINCT FROM me.codes -> %(release)s)
"""

_places: dict[UUID | None, threading.BoundedSemaphore] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Ordered:
    """A row as it was taken."""

    id: int
    run_id: UUID
    release_id: str
    purpose: str
    at: int | None
    edits: list[dict[str, Any]]
    asks_model: bool
    takes: int


def carry_out(worker: Worker, replay_id: int) -> None:
    """Take the order, decide, write what was found. What cannot be done now is left to the next message."""
    places = places_of(worker)
    if worker.draining or worker.session.ended or not places.acquire(blocking=False):
        return
    try:
        ordered = take(worker, replay_id)
        if ordered is not None:
            work_on(worker, ordered)
    except (psycopg.Error, PoolTimeout, Lost) as error:
        log.warning("replay %s is left to another: %s", replay_id, error)
    finally:
        places.release()


def places_of(worker: Worker) -> threading.BoundedSemaphore:
    """Replays that this process decides at once: the threads are the runs'."""
    with _lock:
        own = _places.get(worker.session.id)
        if own is None:
            _places.clear()
            own = _places[worker.session.id] = threading.BoundedSemaphore(max(1, worker.session.concurrency // SHARE))
        return own


def take(worker: Worker, replay_id: int) -> Ordered | None:
    given = {"id": replay_id, "session": worker.session.id, "serves": list(worker.agents), "longest": LONGEST + 60}
    with worker.connections.connection() as conn:
        row = conn.execute(TAKE, given).fetchone()
    crash_point("after-replay-taken")
    return Ordered(replay_id, *row) if row is not None else None


def work_on(worker: Worker, ordered: Ordered) -> None:
    if ordered.takes > MOST_DEATHS:
        return finish(worker, ordered, None, DEADLY)
    if has_killed(worker, ordered):
        return finish(worker, ordered, None, DEADLY_BEFORE)
    agent = worker.agents[ordered.release_id]
    try:
        found = decide(worker, agent, ordered)
    except Crashed:
        raise
    except (GivenUp, CannotEdit, PayloadMissing, PayloadAltered, PayloadStoreDown) as error:
        return finish(worker, ordered, None, str(error))
    except (psycopg.Error, PoolTimeout, Lost):
        raise
    except Exception as error:
        log.exception("replay %s failed", ordered.id)
        return finish(worker, ordered, None, f"the worker could not decide it again: {describe(error)}")
    if found is None:  # the worker drains
        with worker.connections.connection() as conn:
            conn.execute(GIVE_BACK, {"id": ordered.id, "session": worker.session.id})
        return None
    return finish(worker, ordered, found, "")


def has_killed(worker: Worker, ordered: Ordered) -> bool:
    """Whether an order under the same code of the release was given up because workers died: a bulk act of a thousand
    runs is not to kill a worker for each."""
    given = {"id": ordered.id, "release": ordered.release_id, "session": worker.session.id, "deadly": DEADLY}
    with worker.connections.connection() as conn:
        row = conn.execute(KILLED, given).fetchone()
    return bool(row and row[0])


def decide(worker: Worker, agent: Agent, ordered: Ordered) -> Result | None:
    """None: the worker drains and has given it up. Raises GivenUp, and what reading or editing the journal raises."""
    entries = worker.read(ordered.run_id)
    edits = decode(json.dumps(ordered.edits).encode())
    releases = releases_of(worker, entries)

    def again(watch: Watch) -> Result:
        return decided_again(
            agent, entries, ordered.purpose, at=ordered.at, edits=edits, asks_model=ordered.asks_model, watch=watch,
            releases=releases,
        )  # fmt: skip

    return decide_within(
        worker.calls,
        limit_of(agent, worker.decision_limit, ordered.asks_model),
        again,
        lambda: worker.draining or not worker.session.alive,
    )


def releases_of(worker: Worker, entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """What those hold that the run was pinned to and that this worker does not serve itself, by id."""
    named = releases_in(entries)
    known = {id: agent.content for id, agent in worker.agents.items() if id in named}
    if missing := named - known.keys():
        with worker.connections.connection() as conn:
            known |= dict(conn.execute(CONTENTS, {"ids": list(missing)}).fetchall())
    return known


def limit_of(agent: Agent, limit: float, asks_model: bool) -> float:
    """Seconds for one decision. A model that is asked has its own timeout, and its client is loaded first."""
    return max(limit, agent.model.timeout + LOADING) if asks_model and agent.model is not None else limit


def finish(worker: Worker, ordered: Ordered, found: Result | None, error: str) -> None:
    """Written as soon as the database answers, for as long as the session lives."""
    crash_point("before-replay-written")
    given = {
        "id": ordered.id, "session": worker.session.id, "error": column_text(error),
        "as_of": found["as_of_seq"] if found is not None else None,
        "verdict": found["verdict"] if found is not None else "",
        "result": Jsonb(found) if found is not None else None,
    }  # fmt: skip
    while True:
        try:
            with worker.connections.connection() as conn:
                conn.execute(FINISH, given)
            return
        except (psycopg.OperationalError, PoolTimeout) as away:
            log.warning("replay %s is not written yet: %s", ordered.id, away)
            worker.pause(1.0)
