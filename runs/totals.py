"""What worker processes have counted. Each keeps its own numbers and hands them to the database with its heartbeat, in
its session's row; /metrics adds the sessions up. Nothing is shared between processes, and none is asked.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import UTC, date
from typing import Any

from psycopg import Connection

from journal.entries import Draft, Kind
from runs.state import MODEL_ACTOR, RunState
from runs.usage import tokens_of

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
STEPS, FENCED, TOKENS, COST = "steps", "fenced_writes", "tokens", "cost"
STEP_SECONDS, APPEND_SECONDS = "step_seconds", "append_seconds"
LEASES_LOST = "leases_lost"
EFFECTS = "effects"  # `effects:<day>:<agent>`: calls beyond reading that succeeded, by the UTC day
# Ended sessions are added up in one row a name, or the table of sessions would have to be read whole for ever. One
# statement: who reads meanwhile sees either the sessions or their sum.
FOLD = f"""
WITH gone AS (SELECT id, totals, end_reason FROM runs_workersession
               WHERE totals IS NOT NULL AND ended_at < clock_timestamp() - interval '1 minute'
               ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED),
     cleared AS (UPDATE runs_workersession s SET totals = NULL FROM gone WHERE s.id = gone.id),
     parts AS (SELECT key AS name, value::float8 AS total FROM gone, jsonb_each_text(totals)
               UNION ALL SELECT '{LEASES_LOST}', 1 FROM gone WHERE end_reason IN ('lease ran out', 'process died'))
INSERT INTO runs_tally AS t (name, total) SELECT name, sum(total) FROM parts GROUP BY name
    ON CONFLICT (name) DO UPDATE SET total = t.total + excluded.total
"""


class Totals:
    """Counters and histograms of one process. A bucket's name is `histogram:place`, its sum `histogram:sum`."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._lock = threading.Lock()

    def snapshot(self) -> dict[str, float]:
        with self._lock:
            return dict(self._values)

    def fenced(self) -> None:
        with self._lock:
            self._add(FENCED, 1)

    def appended(self, batch: Sequence[Draft], state: RunState, seconds: float) -> None:
        """An append was written, `seconds` after it was handed over; the state has its entries."""
        with self._lock:
            self._observe(APPEND_SECONDS, seconds)
            for draft in batch:
                if draft.settles is not None:
                    self._settled(state, draft.settles)
                elif draft.kind == Kind.PLAN and draft.actor == MODEL_ACTOR:
                    usage = draft.body.get("usage", {})
                    self._add(TOKENS, tokens_of(usage))
                    self._add(COST, usage.get("cost", 0))

    def _settled(self, state: RunState, step: int) -> None:
        self._add(STEPS, 1)
        slot = state.slots.get(step)
        if slot is None or not slot.attempts or slot.obs_at is None:
            return
        self._observe(STEP_SECONDS, (slot.obs_at - slot.attempts[-1].at).total_seconds())
        if slot.outcome == "succeeded" and slot.effect in ("keyed", "probed", "unkeyed"):
            self._add(f"{EFFECTS}:{slot.obs_at.astimezone(UTC):%Y-%m-%d}:{state.agent}", 1)

    def _add(self, name: str, amount: float) -> None:
        self._values[name] = self._values.get(name, 0.0) + amount

    def _observe(self, name: str, seconds: float) -> None:
        self._add(f"{name}:{bisect_left(BOUNDS, seconds)}", 1)
        self._add(f"{name}:sum", max(seconds, 0.0))


def fold_totals(conn: Connection[Any]) -> None:
    conn.execute(FOLD)


# What all sessions counted, those that ended long ago included.
COUNTED = f"""
SELECT name, sum(total) FROM (
    SELECT key AS name, value::float8 AS total FROM runs_workersession, jsonb_each_text(totals) WHERE totals IS NOT NULL
    UNION ALL SELECT '{LEASES_LOST}', 1 FROM runs_workersession
               WHERE totals IS NOT NULL AND end_reason IN ('lease ran out', 'process died')
    UNION ALL SELECT name, total FROM runs_tally) AS every GROUP BY name
"""


def counted(cursor: Any) -> dict[str, float]:
    cursor.execute(COUNTED)
    return dict(cursor.fetchall())


def append_seconds(cursor: Any) -> float | None:
    """How long an append took on average; None if there was none."""
    found = counted(cursor)
    appends = sum(found.get(f"{APPEND_SECONDS}:{place}", 0.0) for place in range(len(BOUNDS) + 1))
    return found.get(f"{APPEND_SECONDS}:sum", 0.0) / appends if appends else None


def effects_since(totals: Mapping[str, float], day: date) -> dict[str, int]:
    """Effects by agent from that day on, out of what `counted` gave."""
    found: dict[str, int] = {}
    for name, total in totals.items():
        kind, _, rest = name.partition(":")
        when, _, agent = rest.partition(":")
        if kind == EFFECTS and when >= day.isoformat():
            found[agent] = found.get(agent, 0) + int(total)
    return found
