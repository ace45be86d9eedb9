"""What a drain handed over at its deadline, and what has become of it since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from journal.encoding import decode
from recovery.in_flight import InFlight
from recovery.models import Drain
from runs.access import Person, sees
from runs.models import Run

SETTLED = """
SELECT e.run_id, e.settles, e.recorded_at, e.body
  FROM unnest(%s::uuid[], %s::int[]) AS asked (run, step)
  JOIN journal_entry e ON e.run_id = asked.run AND e.settles = asked.step
"""
# The call's own answer, or the model's, is no step further; neither is an intent that a gate holds. Of each journal the
# end is looked at: what goes on keeps writing.
WENT_ON = """
SELECT r.id FROM runs_run r
 WHERE r.id = ANY (%(runs)s)
   AND (r.ended_at > %(since)s
        OR EXISTS (SELECT FROM (SELECT e.kind, e.body, e.recorded_at FROM journal_entry e WHERE e.run_id = r.id
                                 ORDER BY e.seq DESC LIMIT 200) AS late
                    WHERE late.recorded_at > %(since)s
                      AND (late.kind IN ('ATTEMPT', 'ASK', 'TIMER', 'CHILD', 'DONE')
                           OR late.kind = 'TOOL_CALL' AND position('"gate":"gate"'::bytea IN late.body) = 0)))
"""
OPEN = "open"


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A run that was at no checkpoint when the drain ended. `age`: seconds that its call was open then; `lost`: whether
    its worker was gone by then.

    `outcome`: of the call, by now: open, in doubt, pending, or how it was settled; empty: there was none. `status`: of
    the run, by now.
    """

    run_id: UUID
    agent: str
    version: str
    worker: str
    doing: str
    since: datetime
    age: float
    seq: int | None
    step: int | None
    key: str
    effect: str
    lost: bool
    status: str
    outcome: str
    settled_at: datetime | None


def reported(one: InFlight, now: datetime, lost: bool = False) -> dict[str, Any]:
    """As the drain's report keeps it."""
    call = one.call
    return {
        "run": str(one.run_id),
        "agent": one.agent,
        "version": one.version,
        "worker": one.worker,
        "doing": one.doing,
        "since": one.since.isoformat(),
        "age": round((now - one.since).total_seconds(), 1),
        "seq": call.seq if call else None,
        "step": call.step if call else None,
        "key": call.key if call else "",
        "effect": call.effect if call else "",
        "lost": lost,
    }


def handed_over(drain: Drain, user: Person | None = None) -> list[HandedOver]:
    """Runs within the user's scope, those first that had been at it longest."""
    told = [one for one in drain.report.get("runs", ()) if sees(user, one["agent"])]
    return list(became(told)) if told else []


def went_on(drain: Drain, told: Sequence[Mapping[str, Any]]) -> set[UUID]:
    """Those of the runs that were handed over which did something past the call that they were in."""
    if not told or drain.ended_at is None:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(WENT_ON, {"runs": [UUID(one["run"]) for one in told], "since": drain.ended_at})
        return {run_id for (run_id,) in cursor.fetchall()}


def became(told: Sequence[dict[str, Any]]) -> Iterator[HandedOver]:
    runs = Run.objects.select_related("session").defer("input", "ending").in_bulk([UUID(one["run"]) for one in told])
    calls = [(one["run"], one["step"]) for one in told if one["step"] is not None]
    with connection.cursor() as cursor:
        cursor.execute(SETTLED, [[run for run, _ in calls], [step for _, step in calls]])
        settled = {(run_id, step): (at, bytes(body)) for run_id, step, at, body in cursor.fetchall()}
    for one in told:
        run = runs[UUID(one["run"])]
        at, body = settled.get((run.id, one["step"]), (None, b""))
        outcome = ""
        if one["step"] is not None:
            outcome = str(decode(body).get("outcome", "settled")) if at else unsettled(run, one["step"])
        yield HandedOver(
            run.id, one["agent"], one["version"], one["worker"], one["doing"], datetime.fromisoformat(one["since"]),
            one["age"], one["seq"], one["step"], one["key"], one["effect"],
            bool(one.get("lost")), run.status, outcome, at,
        )  # fmt: skip


def unsettled(run: Run, step: int) -> str:
    """Open while a worker holds the run; else what the run's row says of the intent."""
    if run.session is not None and run.session.ended_at is None:
        return OPEN
    state = next((record["state"] for record in run.intents if record["step"] == step), "in_doubt")
    return str(state).replace("_", " ")
