"""People's appends, on the caller's connection and inside its transaction.

The order of a command: take the head, look at the run again, append, update the run row, commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from journal.entries import Answer, Draft, seal
from journal.errors import NoSuchRun

type Conn = psycopg.Connection[Any] | BaseDatabaseWrapper

_LOCK = """SELECT epoch, last_seq, last_steering_seq, last_recorded_at
    FROM journal_head WHERE run_id = %s FOR NO KEY UPDATE"""
_APPEND = """SELECT run_id, verdict, first_seq, last_seq, recorded_at FROM journal_append_person_v1(
    %s, %s, %s::text[], %s::int[], %s::int[], %s::int[], %s::text[], %s::bytea[], %s::bytea[], %s::bytea[])"""


@dataclass(frozen=True, slots=True)
class Head:
    """The row an append is judged on, as locked."""

    run_id: UUID
    epoch: int
    last_seq: int
    last_steering_seq: int
    last_recorded_at: datetime | None


def new_run_id(conn: Conn | None = None) -> UUID:
    """A UUIDv7 from the database's clock."""
    run_id: UUID = _row(conn, "SELECT holdfast_uuid7()", ())[0]
    return run_id


def create_head(run_id: UUID, conn: Conn | None = None) -> None:
    """Begins an empty journal. IntegrityError if there is one."""
    with (conn or connection).cursor() as cursor:
        cursor.execute("INSERT INTO journal_head (run_id) VALUES (%s)", (run_id,))


def lock_head(run_id: UUID, conn: Conn | None = None) -> Head:
    """Holds the run's journal until the transaction ends. Raises NoSuchRun."""
    row = _row(conn, _LOCK, (run_id,))
    if row is None:
        raise NoSuchRun(str(run_id))
    return Head(run_id, *row)


def append_person(
    run_id: UUID, entries: Sequence[Draft], *, request_id: str | None, actor: str, conn: Conn | None = None
) -> Answer:
    """written, already (this request_id was written before: its seqs) or settled (nothing written). Raises NoSuchRun.

    `actor` is the person; a draft whose actor is not "worker" keeps its own.
    """
    salts, digests, bodies = (list(column) for column in zip(*seal(entries), strict=True))
    row = _row(conn, _APPEND, (
        run_id, request_id, [e.kind for e in entries], [e.v for e in entries], [e.step or 0 for e in entries],
        [e.settles or 0 for e in entries], [actor if e.actor == "worker" else e.actor for e in entries],
        salts, digests, bodies,
    ))  # fmt: skip
    answer = Answer(*row)
    if answer.verdict == "no such run":
        raise NoSuchRun(str(run_id))
    return answer


def raise_epoch(run_id: UUID, conn: Conn | None = None) -> int:
    """Fences whoever drives the run: its next append is `lost`. Returns the new epoch. Raises NoSuchRun."""
    row = _row(conn, "SELECT epoch FROM journal_raise_epochs_v1(ARRAY[%s::uuid])", (run_id,))
    if row is None:
        raise NoSuchRun(str(run_id))
    epoch: int = row[0]
    return epoch


def _row(conn: Conn | None, sql: str, given: Sequence[Any]) -> Any:
    with (conn or connection).cursor() as cursor:
        cursor.execute(sql, given)
        return cursor.fetchone()
