"""Claims: a run goes to a session under a new epoch, which fences every older holder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

CLAIM = """
SELECT verdict, epoch, last_seq, taken_from, crashes, extract(epoch FROM taken_over_at)::float8
FROM runs_claim_v1(%s, %s, %s)
"""
TAKES_TURNS = 2  # crashes in a row after which a process drives such runs one at a time; also in claim_v1.sql
CRASH_LIMIT = 3


class Lost(Exception):
    """The run belongs to another epoch now."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`taken_from`: the session that ended without letting the run go. `crashes`: counted with no progress between."""

    run_id: UUID
    epoch: int
    last_seq: int
    taken_from: UUID | None
    crashes: int
    taken_over_at: float | None


def claim(conn: Connection[Any], session_id: UUID, run_id: UUID, may_count: bool) -> Claim | str:
    """The claim, or why there is none: held, counted, ended, no session."""
    row = conn.execute(CLAIM, (session_id, run_id, may_count)).fetchone()
    if row is None or row[0] != "claimed":
        return str(row[0]) if row else "ended"
    return Claim(run_id, *row[1:])
