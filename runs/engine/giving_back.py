"""Runs that a worker cannot drive on are given back, so that none stays with a session that does nothing for it."""

from __future__ import annotations

from typing import Any

from psycopg import Connection, OperationalError

from journal.append import append_person, lock_head, raise_epoch
from runs.engine import drafts
from runs.engine.claims import Claim
from runs.engine.projections import Park, let_go

GONE = ("08", "53", "57")  # SQLSTATE classes: the connection, resources, an operator's intervention
FENCED = "UPDATE runs_run SET epoch = %s WHERE id = %s"


def give_back(conn: Connection[Any], claim: Claim, park: Park | None, why: str, fence: bool = False) -> Park | None:
    """As `park` says, else held by the system for `why`. `fence`: a thread may still drive it, and must write no more.

    None: the run belongs to another epoch.
    """
    with conn.transaction():
        head = lock_head(claim.run_id, conn)
        if head.epoch != claim.epoch:
            return None
        seen = head.last_seq
        if park is None:
            hold = drafts.control("hold", why)
            append_person(claim.run_id, [hold], request_id=None, actor=drafts.SYSTEM, conn=conn)
            seen += 1
        given = park or Park("held", why)
        let_go(conn, claim.run_id, claim.epoch, seen, given)
        if fence:
            conn.execute(FENCED, (raise_epoch(claim.run_id, conn), claim.run_id))
        return given


def is_away(error: BaseException) -> bool:
    """Whether the database could not be asked at all, so that trying again helps."""
    state = getattr(error, "sqlstate", None)
    return isinstance(error, OperationalError) and (state is None or state[:2] in GONE)
