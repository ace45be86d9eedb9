"""Claims: a run goes to a session under a new epoch, which fences every older holder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from runs.open_gates import OpenGates

CLAIM = """
SELECT verdict, urgent, gates, heard_at, epoch, last_seq, taken_from, crashes, extract(epoch FROM taken_over_at)::float8
FROM runs_claim_v4(%s, %s, %s, %s, %s, %s)
"""
NEXT = "SELECT run_id, release_id FROM runs_next_in_flight_v1(%s, %s)"
OVER_LIMIT = "SELECT DISTINCT agent FROM runs_run WHERE status = 'queued' AND over_limit"
TAKES_TURNS = 2  # crashes in a row after which a process drives such runs one at a time; also in claim_v2.sql
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


def claim(
    conn: Connection[Any],
    session_id: UUID,
    run_id: UUID,
    release_id: str,
    may_count: bool,
    at_once: int | None,
    look_urgent: bool,
) -> tuple[Claim | UUID | str, OpenGates]:
    """The claim, or a more urgent run of the release, or why there is none: held, counted, limited, ended, no session,
    pinned elsewhere, gated (it says so), gated here (another worker may take it). With the gates that are open.

    `at_once`: how many runs of the agent may be in flight.
    """
    row = conn.execute(CLAIM, (session_id, run_id, release_id, may_count, at_once, look_urgent)).fetchone()
    assert row is not None
    verdict, urgent, gates, heard_at, *claimed = row
    heard = OpenGates(gates or {}, heard_at)
    if verdict == "claimed":
        return Claim(run_id, *claimed), heard
    return urgent or verdict, heard


def next_in_flight(conn: Connection[Any], agent: str, spacing: float = 10.0) -> list[tuple[UUID, str]]:
    """Queued runs (with their releases) that have a place now among the agent's runs in flight: to be sent.

    Each is given but once in `spacing` seconds.
    """
    return conn.execute(NEXT, (agent, spacing)).fetchall()


def agents_over_limit(conn: Connection[Any]) -> list[str]:
    """Agents of which runs wait for a place among those in flight."""
    return [agent for (agent,) in conn.execute(OVER_LIMIT).fetchall()]
