"""What the tests of the journal append, and how."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from journal.append import append_person
from journal.committer import Append
from journal.entries import Answer, Draft
from journal.lane import Lane, Ticket

type Told = tuple[str, int | None, int | None]


def new_run(conn: psycopg.Connection[Any], epoch: int = 1) -> UUID:
    sql = "INSERT INTO journal_head (run_id, epoch) VALUES (holdfast_uuid7(), %s) RETURNING run_id"
    row = conn.execute(sql, (epoch,)).fetchone()
    assert row is not None
    run: UUID = row[0]
    return run


def obs(step: int, **more: Any) -> Draft:
    return Draft("OBS", {"outcome": "succeeded", **more}, step, step)


def call(step: int) -> Draft:
    return Draft("TOOL_CALL", {"tool": "refund"}, step, decision=True)


def draft(kind: str) -> Draft:
    return Draft(kind, {})


def append(
    run: UUID, epoch: int, number: int, seen: int, *entries: Draft, then: Mapping[str, Any] | None = None
) -> Append:
    return Append(run, epoch, number, seen, list(entries), then)


def send(lane: Lane, *appends: Append) -> list[Told | Exception]:
    """What each append of one batch was answered, in their order."""
    tickets = [Ticket(a) for a in appends]
    answers = {id(ticket): answer for ticket, answer in lane.send(tickets)}
    return [told(answers[id(ticket)]) for ticket in tickets]


def told(answer: Answer | Exception) -> Any:
    return answer if isinstance(answer, Exception) else answer[1:4]


def person(conn: psycopg.Connection[Any], run: UUID, request: str, *entries: Draft, actor: str = "olga") -> Told:
    return append_person(run, entries, request_id=request, actor=actor, conn=conn)[1:4]


def kinds(rows: Sequence[Any]) -> list[str]:
    return [row[1] for row in rows]
