"""Reading journals, on a psycopg connection or on Django's."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from journal.append import Conn, Head
from journal.encoding import decode
from journal.entries import VERSIONS, Entry
from journal.errors import NoSuchRun
from journal.upcasters import upcast

_COLUMNS = "seq, kind, v, step, settles, epoch, actor, recorded_at, body"
_ENTRIES = f"""SELECT {_COLUMNS} FROM journal_entry
    WHERE run_id = %(run)s AND seq > %(after)s {{}} ORDER BY seq LIMIT %(limit)s"""
_OF_KINDS = "AND kind = ANY (%(kinds)s::text[])"
_TAILS = f"""SELECT e.run_id, {_COLUMNS} FROM unnest(%(runs)s::uuid[]) AS asked (run),
    LATERAL (SELECT coalesce((SELECT seq FROM journal_entry WHERE run_id = asked.run AND kind = 'PLAN'
                               ORDER BY seq DESC LIMIT 1), %(else)s::bigint) AS first) AS decided,
    LATERAL (SELECT * FROM journal_entry WHERE run_id = asked.run AND seq >= decided.first) AS e
    ORDER BY e.run_id, e.seq"""
_REQUEST = f"SELECT {_COLUMNS} FROM journal_entry WHERE run_id = %s AND request_id = %s"
_HEAD = """SELECT epoch, last_seq, last_steering_seq, last_recorded_at
    FROM journal_head WHERE run_id = %s"""


def read_entries(
    conn: Conn | None, run_id: UUID, *, after: int = 0, limit: int | None = None, kinds: Collection[str] | None = None
) -> list[Entry]:
    """The entries behind seq `after`, in order. None for the connection means Django's default one."""
    given: dict[str, Any] = {
        "run": run_id,
        "after": after,
        "limit": limit,
        "kinds": None if kinds is None else list(kinds),
    }
    with _cursor(conn) as cursor:
        cursor.execute(_ENTRIES.format("" if kinds is None else _OF_KINDS), given)
        return [_entry(run_id, *row) for row in cursor.fetchall()]


def read_tails(conn: Conn | None, run_ids: Collection[UUID], undecided: bool = False) -> dict[UUID, list[Entry]]:
    """Each run's entries from its last decision on: all that can be unsettled. One without a decision is left out;
    if `undecided`, it is there with all its entries."""
    found: dict[UUID, list[Entry]] = {}
    with (conn or connection).cursor() as cursor:
        cursor.execute(_TAILS, {"runs": list(run_ids), "else": 1 if undecided else None})
        for run_id, *row in cursor.fetchall():
            found.setdefault(run_id, []).append(_entry(run_id, *row))
    return found


def read_entry(conn: Conn | None, run_id: UUID, seq: int) -> Entry | None:
    found = read_entries(conn, run_id, after=seq - 1, limit=1)
    return found[0] if found and found[0].seq == seq else None


def read_request(conn: Conn | None, run_id: UUID, request_id: str) -> Entry | None:
    """The first entry of the append that went under this request."""
    with _cursor(conn) as cursor:
        cursor.execute(_REQUEST, (run_id, request_id))
        row = cursor.fetchone()
    return _entry(run_id, *row) if row is not None else None


def read_head(conn: Conn | None, run_id: UUID) -> Head:
    """The head as committed, without holding it. Raises NoSuchRun."""
    with (conn or connection).cursor() as cursor:
        cursor.execute(_HEAD, (run_id,))
        row = cursor.fetchone()
    if row is None:
        raise NoSuchRun(str(run_id))
    return Head(run_id, *row)


def _entry(
    run_id: UUID, seq: int, kind: str, v: int, step: int | None, settles: int | None, epoch: int, actor: str,
    recorded_at: datetime, data: bytes,
) -> Entry:  # fmt: skip
    body = decode(bytes(data))
    if VERSIONS.get(kind) != v:
        body = upcast(kind, v, body)
    return Entry(run_id, seq, kind, v, step, settles, epoch, actor, recorded_at.astimezone(UTC), body)


def _cursor(conn: Conn | None) -> Any:
    """Binary where it can be: bodies come as they are, not as twice as many hexadecimal digits."""
    return conn.cursor(binary=True) if isinstance(conn, psycopg.Connection) else (conn or connection).cursor()
