"""Trees of runs: how children are born, what is known of their end, and how a whole tree is cancelled.

A child never writes its parent's journal: its end makes the parent due, and the parent's own worker records it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from journal.append import Conn, append_person, new_run_id
from journal.encoding import decode, encode, problems
from journal.entries import Draft, Kind, seal
from journal.payloads import PayloadStore
from journal.read import read_entries
from runs.agents import Agent
from runs.inputs import input_refusal
from runs.moves import Spawn
from runs.secrets import sealed_by
from runs.texts import plain_text

CONTRACT = """
SELECT id, content ->> 'unique', (content ->> 'deadline')::float8, content ->> 'input', stage FROM runs_release
"""
NAMED = f"{CONTRACT} WHERE agent = %s AND (version = %s OR id = %s) ORDER BY created_at DESC, id DESC LIMIT 1"
CHOSEN = f"{CONTRACT} WHERE id = (SELECT runs_release_for_v1(%s, %s))"
RETIRED = "retired"  # as Stage says it, which needs Django: agents are tried without
KNOWN = "SELECT EXISTS (SELECT FROM runs_release WHERE agent = %s)"
ENDED = """
SELECT id, status, reason, ending FROM runs_run WHERE id = ANY (%s) AND ended_at IS NOT NULL
"""
# Counts no further than it matters: a tree is made a level at a time.
DEPTH = """
WITH RECURSIVE above AS (
    SELECT parent_id, 0 AS depth FROM runs_run WHERE id = %(run)s
    UNION ALL
    SELECT r.parent_id, a.depth + 1 FROM above a JOIN runs_run r ON r.id = a.parent_id WHERE a.depth < %(deepest)s
) SELECT max(depth) FROM above
"""
STARTED_BY = """
WITH RECURSIVE above AS (
    SELECT id, parent_id FROM runs_run WHERE id = %s
    UNION ALL
    SELECT r.id, r.parent_id FROM above a JOIN runs_run r ON r.id = a.parent_id
) SELECT e.actor FROM above a JOIN journal_entry e ON e.run_id = a.id AND e.seq = 1 WHERE a.parent_id IS NULL
"""
DEEPEST = 32  # levels of children below a root
TOO_DEEP = f"a tree has at most {DEEPEST} levels of children: does this agent start itself without end?"
TELL_PARENT = "SELECT parent, release_id FROM runs_tell_parent_v1(%s)"
OPEN_RUN = "SELECT id FROM runs_run WHERE agent = %s AND business_id = %s AND ended_at IS NULL"
OUTCOMES = {"done": "succeeded", "failed": "failed", "cancelled": "cancelled"}


@dataclass(frozen=True, slots=True)
class Newborn:
    """A child that is to be started with its parent's CHILD entry; or why it cannot be: `refused`."""

    step: int
    agent: str
    id: UUID | None = None
    release: str | None = None
    labels: str = "{}"
    deadline: float = 0.0
    business_id: str = ""
    sealed: tuple[bytes, bytes, bytes] = (b"", b"", b"")
    refused: str = ""
    input: Any = None  # as the parent's journal keeps it, once the child's agent is known

    def as_columns(self) -> Mapping[str, Any]:
        salt, digest, body = self.sealed
        return {
            "step": self.step, "id": self.id, "agent": self.agent, "release": self.release, "labels": self.labels,
            "deadline": self.deadline, "business": self.business_id, "salt": salt, "digest": digest, "body": body,
        }  # fmt: skip


def newborn(
    conn: Conn, parent: UUID, step: int, move: Spawn, now: float, own: Mapping[str, Agent], store: PayloadStore
) -> Newborn:
    """What the child will be: its id, release and START. `own`: this process's agents by release id; `now`: POSIX."""
    row = _release(conn, parent, step, move)
    if isinstance(row, str):
        return Newborn(step, move.agent, refused=row)
    if lost := problems({"input": move.input}, "child"):
        return Newborn(step, move.agent, refused=f"{lost[0]} cannot be journaled: give JSON values, dates or bytes")
    release, unique, seconds, written, _ = row
    takes = None if written is None else json.loads(written)
    input = sealed_by(takes, move.input)
    if refusal := input_refusal(takes, move.input):
        return Newborn(step, move.agent, refused=refusal, input=input)
    labels = dict(move.labels or {})
    business = business_id_of(unique, labels)
    if business and (holder := _row(conn, OPEN_RUN, (move.agent, business))) is not None:
        return Newborn(step, move.agent, refused=f"{business} belongs to the open run {holder[0]}", input=input)
    lasts = move.deadline or seconds
    deadline = now + lasts if lasts else 0.0
    code = own[release].code_digest if release in own else ""
    body: dict[str, Any] = {"agent": move.agent, "input": input, "release": release, "code": code}
    body |= {"parent": {"run": str(parent), "step": step}}
    body |= {"labels": labels} if labels else {}
    body |= {"deadline": deadline} if deadline else {}
    child = new_run_id(conn)
    if len(encode(body)) > store.limit:
        body = store.offload(child, body)
    (sealed,) = seal([Draft(Kind.START, body)])
    return Newborn(step, move.agent, child, release, json.dumps(labels), deadline, business or "", sealed, input=input)


def _release(conn: Conn, parent: UUID, step: int, move: Spawn) -> tuple[Any, ...] | str:
    """By stage and share, as any start: the same child falls to the same side when its birth is tried again. Or why
    there is none. A release that the parent's code names is still good while it is retiring: the parent was written for
    it, is under way, and nobody could correct it."""
    if move.release is not None:
        row = _row(conn, NAMED, (move.agent, move.release, move.release))
        if row is None:
            return f"no agent {move.agent!r} in version {move.release} is announced by any worker"
        return f"{move.agent}@{move.release} is retired" if row[4] == RETIRED else tuple(row)
    row = _row(conn, CHOSEN, (move.agent, f"{parent}:{step}"))
    if row is not None:
        return tuple(row)
    if _row(conn, KNOWN, (move.agent,))[0]:
        return f"no release of {move.agent} takes new runs: one has to be promoted"
    return f"no agent {move.agent!r} is announced by any worker"


def depth_of(conn: Conn, run_id: UUID) -> int:
    """How many runs are above it, up to `DEEPEST`."""
    return int(_row(conn, DEPTH, {"run": run_id, "deepest": DEEPEST})[0])


def started_by(run_id: UUID, conn: Conn | None = None) -> str:
    """Who started the root of the run's tree."""
    row = _row(conn, STARTED_BY, (run_id,))
    return str(row[0]) if row is not None else ""


def only_one(child: Newborn, before: Iterable[Newborn]) -> Newborn:
    """The child, or its refusal if one of those that are born with it has its business id."""
    for other in before:
        if (
            child.business_id
            and not other.refused
            and (other.agent, other.business_id) == (child.agent, child.business_id)
        ):
            return Newborn(
                child.step,
                child.agent,
                refused=f"{child.business_id} belongs to its sibling {other.id}",
                input=child.input,
            )
    return child


def business_id_of(unique: str | None, labels: Mapping[str, str]) -> str | None:
    """`label:value`, if the agent declares the label to be unique and the run has it."""
    return f"{unique}:{labels[unique]}" if unique and unique in labels else None


def ended_children(conn: Conn, children: Sequence[UUID], store: PayloadStore) -> dict[UUID, dict[str, Any]]:
    """Outcome, and result or error, of those of them that have ended."""
    with (conn or connection).cursor() as cursor:
        cursor.execute(ENDED, (list(children),))
        rows = cursor.fetchall()
    found = {}
    for child, status, reason, ending in rows:
        done = decode(bytes(ending)) if ending is not None else _done_of(conn, child)
        found[child] = outcome_of_child(status, reason, store.resolve(done))
    return found


def _done_of(conn: Conn, child: UUID) -> dict[str, Any]:
    done = read_entries(conn, child, kinds=[Kind.DONE])
    return done[-1].body if done else {}


def outcome_of_child(status: str, reason: str, done: Mapping[str, Any]) -> dict[str, Any]:
    outcome = OUTCOMES[status]
    if outcome == "succeeded":
        return {"outcome": outcome, "result": done.get("result")}
    if outcome == "cancelled":
        return {"outcome": outcome, "error": str(done.get("cancelled") or reason or "cancelled")}
    error = done.get("error")
    return {"outcome": outcome, "error": str(error.get("reason") if isinstance(error, Mapping) else error or reason)}


def tell_parent(child: UUID, conn: Conn | None = None) -> tuple[UUID, str] | None:
    """The child has ended: the parent's id and release if it is due now and has to be sent to a worker."""
    row = _row(conn, TELL_PARENT, (child,))
    return (row[0], row[1]) if row is not None else None


# -- cancel ----------------------------------------------------------------------------------------------------------

LOCK_HEADS = "SELECT run_id FROM journal_head WHERE run_id = ANY (%s) ORDER BY run_id FOR NO KEY UPDATE"
CHILDREN = "SELECT id FROM runs_run WHERE parent_id = ANY (%s) AND ended_at IS NULL ORDER BY id"
STILL_OPEN = "SELECT id FROM runs_run WHERE id = ANY (%s) AND ended_at IS NULL AND input IS NULL ORDER BY id"
WAKE = """
UPDATE runs_run r SET status = 'queued', reason = %(why)s, since = clock_timestamp(), wake_at = NULL, intents = '[]',
       dispatches = 0, dispatched_at = NULL
 WHERE r.id = %(run)s AND NOT EXISTS (SELECT FROM runs_workersession s WHERE s.id = r.session_id AND s.ended_at IS NULL)
RETURNING r.id, r.release_id
"""
NEVER_BEGUN = """
UPDATE runs_run SET status = 'cancelled', reason = %(why)s, since = clock_timestamp(), ended_at = clock_timestamp(),
       wake_at = NULL
 WHERE parent_id = ANY (%(parents)s) AND ended_at IS NULL AND input IS NOT NULL AND session_id IS NULL
"""


def cancel_descendants(
    root: UUID, why: str, actor: str, cause: Mapping[str, Any], conn: Conn | None = None
) -> list[tuple[UUID, str]]:
    """CONTROL(cancel) in every open run below `root`, whose head the caller holds; in the caller's transaction.

    Heads are locked from the root down, a level at a time: a parent whose head is held spawns no more children, so none
    is missed. Returns the runs that nobody drives, with their releases: they are to be sent to workers.
    """
    woken: list[tuple[UUID, str]] = []
    level = [root]
    while level:
        _rows(conn, NEVER_BEGUN, {"why": plain_text(why), "parents": level}, fetch=False)
        below = [row[0] for row in _rows(conn, CHILDREN, (level,))]
        if below:
            _rows(conn, LOCK_HEADS, (below,))
        level = [row[0] for row in _rows(conn, STILL_OPEN, (below,))] if below else []
        for run_id in level:
            woken += cancel_one(run_id, why, actor, cause, conn)
    return woken


def cancel_tree(
    root: UUID, why: str, actor: str, cause: Mapping[str, Any], conn: Conn | None = None
) -> list[tuple[UUID, str]]:
    """The same with `root` itself, unless it has ended."""
    _rows(conn, LOCK_HEADS, ([root],))
    if not _rows(conn, STILL_OPEN, ([root],)):
        return []
    return cancel_one(root, why, actor, cause, conn) + cancel_descendants(root, why, actor, cause, conn)


def cancel_one(
    run_id: UUID, why: str, actor: str, cause: Mapping[str, Any] | None, conn: Conn | None
) -> list[tuple[UUID, str]]:
    body: dict[str, Any] = {"verb": "cancel", "reason": why} | ({"cause": cause} if cause else {})
    append_person(run_id, [Draft(Kind.CONTROL, body)], request_id=None, actor=actor, conn=conn)
    return [(row[0], row[1]) for row in _rows(conn, WAKE, {"run": run_id, "why": plain_text(f"cancelled by {actor}")})]


def _rows(conn: Conn | None, sql: str, given: Any, fetch: bool = True) -> list[Any]:
    with (conn or connection).cursor() as cursor:
        cursor.execute(sql, given)
        return cursor.fetchall() if fetch else []


def _row(conn: Conn | None, sql: str, given: Any) -> Any:
    return next(iter(_rows(conn, sql, given)), None)
