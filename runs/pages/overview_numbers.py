"""What the overview says, each number measured: by index, capped where many may match, never over the whole table.

`agents` is the viewer's scope, None for all. Times are of the database's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from runs import totals
from runs.models import DOUBT_STANDS_SQL
from runs.repeated import LATE

type Scope = Sequence[str] | None

MOST_RUNS = 1_000  # with intents, the oldest first
MOST_COUNTED = 10_000  # of each status
MOST_TAKEN_OVER = 20_000
MOST_AGENTS = 20
DAYS = 30
LOST = ("lease ran out", "process died")
SCOPED = "(%(agents)s::text[] IS NULL OR agent = ANY (%(agents)s))"
OPEN = ("needs_reconciliation", "awaiting_approval", "running", "waiting", "queued", "held", "waiting_for_version",
        "quarantined")  # fmt: skip


def rows(sql: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())


# -- what needs a person -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting:
    """Intents of one state. `oldest`: since when. Of approvals also the nearest `deadline` that is still to come, and
    whose it is; `expired` is how many nobody can decide any more, and if all are, the deadline is one that passed."""

    state: str
    count: int
    oldest: datetime
    run_id: UUID
    agent: str
    tool: str
    since: datetime
    deadline: datetime | None
    expired: int


# As the inbox lists it: a question back to an approver waits among the questions.
INTENTS = f"""
WITH item AS (
    SELECT CASE WHEN i ->> 'state' = 'awaiting_approval' AND jsonb_typeof(i -> 'question') = 'object' THEN 'asked'
                ELSE i ->> 'state' END AS state, r.id, r.agent, coalesce(i ->> 'tool', '') AS tool,
           (i ->> 'since')::timestamptz AS since, (i ->> 'deadline')::timestamptz AS deadline,
           coalesce((i ->> 'expired')::boolean, false) AS expired
      FROM (SELECT id, agent, status, intents FROM runs_run
             WHERE NOT intents = '[]' AND ended_at IS NULL AND {SCOPED} ORDER BY id LIMIT %(most)s) AS r,
           jsonb_array_elements(r.intents) AS i
     WHERE i ->> 'state' IN ('awaiting_approval', 'asked')
        OR i ->> 'state' = 'in_doubt' AND r.status IN ({DOUBT_STANDS_SQL})
)
SELECT DISTINCT ON (state) state, count(*) OVER w, min(since) OVER w, id, agent, tool, since, deadline,
       count(*) FILTER (WHERE expired) OVER w
  FROM item
WINDOW w AS (PARTITION BY state)
 ORDER BY state, state = 'awaiting_approval' AND expired,
          CASE WHEN state = 'awaiting_approval' THEN deadline END NULLS LAST, since
"""


def waiting_intents(agents: Scope) -> dict[str, Waiting]:
    return {row[0]: Waiting(*row) for row in rows(INTENTS, agents=agents, most=MOST_RUNS)}


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run that stands longest in this status."""

    status: str
    run_id: UUID
    agent: str
    reason: str
    since: datetime


STOPPED = f"""
SELECT s.status, r.id, r.agent, r.reason, r.since
  FROM unnest(%(statuses)s::text[]) AS s (status),
       LATERAL (SELECT id, agent, reason, since FROM runs_run
                 WHERE status = s.status AND {SCOPED} ORDER BY id LIMIT 1) AS r
"""


def longest_stopped(statuses: Sequence[str], agents: Scope) -> dict[str, Stopped]:
    """By status: the one that was started first, of each."""
    return {row[0]: Stopped(*row) for row in rows(STOPPED, statuses=list(statuses), agents=agents)}


BROKEN = f"""
SELECT b.run_id, b.seq, b.what, b.found_at, r.agent FROM journal_brokenchain b JOIN runs_run r ON r.id = b.run_id
 WHERE {SCOPED} ORDER BY b.found_at, b.run_id LIMIT 100
"""


@dataclass(frozen=True, slots=True)
class Broken:
    run_id: UUID
    seq: int
    what: str
    found_at: datetime
    agent: str


def broken_chains(agents: Scope) -> list[Broken]:
    return [Broken(*row) for row in rows(BROKEN, agents=agents)]


# -- in flight ---------------------------------------------------------------------------------------------------------

COUNTS = f"""
SELECT r.agent, s.status, count(*)
  FROM unnest(%(statuses)s::text[]) AS s (status),
       LATERAL (SELECT agent FROM runs_run WHERE status = s.status AND {SCOPED}
                 ORDER BY id DESC LIMIT %(most)s) AS r
 GROUP BY r.agent, s.status
"""


def open_runs(agents: Scope) -> dict[str, dict[str, int]]:
    """Open runs by agent and status; of each status the newest MOST_COUNTED at most."""
    found: dict[str, dict[str, int]] = {}
    for agent, status, count in rows(COUNTS, statuses=list(OPEN), agents=agents, most=MOST_COUNTED):
        found.setdefault(agent, {})[status] = count
    return found


# The runs of an agent that were started last; those of them that ended tell what one costs.
COSTS = """
SELECT a.agent, avg(r.cost), count(r.cost)
  FROM unnest(%(agents)s::text[]) AS a (agent),
       LATERAL (SELECT cost FROM (SELECT cost, ended_at FROM runs_run WHERE runs_run.agent = a.agent
                                   ORDER BY id DESC LIMIT 1000) AS newest
                 WHERE ended_at IS NOT NULL LIMIT 200) AS r
 GROUP BY a.agent
"""


def cost_a_run(agents: Sequence[str]) -> dict[str, float]:
    """On average over the last 200 that ended; an agent without any is left out."""
    return {agent: float(cost) for agent, cost, count in rows(COSTS, agents=list(agents)) if count}


SERVED = """
SELECT r.agent, r.version, coalesce(r.content #>> '{model,name}', ''), bool_or(r.id = ANY (live.serves)) AS served
  FROM runs_release r LEFT JOIN (SELECT serves FROM runs_workersession
                                  WHERE ended_at IS NULL AND expires_at > clock_timestamp()) AS live
       ON r.id = ANY (live.serves)
 WHERE r.agent = ANY (%(agents)s) GROUP BY r.id ORDER BY r.created_at DESC, r.id
"""


def releases_served(agents: Sequence[str]) -> dict[str, tuple[list[str], str]]:
    """By agent: the versions that live workers serve, the newest first (none: its newest), and the newest's model."""
    found: dict[str, tuple[list[str], str]] = {}
    newest: dict[str, str] = {}
    for agent, version, model, served in rows(SERVED, agents=list(agents)):
        versions, _ = found.setdefault(agent, ([], model))
        newest.setdefault(agent, version)
        if served and version not in versions:
            versions.append(version)
    return {agent: (versions or [newest[agent]], model) for agent, (versions, model) in found.items()}


SERVING = """
SELECT count(*) FROM runs_workersession
 WHERE ended_at IS NULL AND expires_at > clock_timestamp() AND draining_at IS NULL
"""


def serving_workers() -> int:
    return int(rows(SERVING)[0][0])


# -- recoveries --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recovered:
    """Take-overs from workers that were lost; `p95` in seconds, from the end of the session."""

    runs: int
    p95: float | None


# The system's take-over notes alone: what a person wrote is never read as JSON here, and what a fork copied (epoch
# 0) is its source's.
TAKEN = """
taken AS (
    SELECT n.run_id, n.recorded_at, (n.body ->> 'from')::uuid AS source, (n.body ->> 'session')::uuid AS taker
      FROM (SELECT run_id, recorded_at,
                   CASE WHEN actor = 'system' THEN convert_from(body, 'UTF8')::jsonb END AS body
              FROM journal_entry WHERE kind = 'NOTE' AND recorded_at > %(since)s AND epoch > 0
             ORDER BY recorded_at DESC LIMIT %(most)s) AS n
     WHERE n.body ->> 'text' = 'taken over' AND n.body ? 'from'
)
"""
RESUMED = f"""
WITH {TAKEN}
SELECT r.agent, count(*), percentile_disc(0.95) WITHIN GROUP (
           ORDER BY extract(epoch FROM greatest(t.recorded_at - s.ended_at, interval '0'))::float8)
  FROM taken t JOIN runs_workersession s ON s.id = t.source AND s.end_reason = ANY (%(lost)s)
       JOIN runs_run r ON r.id = t.run_id
 WHERE {SCOPED}
 GROUP BY GROUPING SETS ((), (r.agent))
"""


def resumed_after_loss(agents: Scope) -> dict[str | None, Recovered]:
    """Over the last 30 days, by agent; under None of all."""
    since = datetime.now(UTC) - timedelta(days=DAYS)
    found = rows(RESUMED, since=since, most=MOST_TAKEN_OVER, lost=list(LOST), agents=agents)
    return {agent: Recovered(count, p95) for agent, count, p95 in found}


ORPHANS = f"""
SELECT count(*) FROM runs_run r JOIN runs_workersession s ON s.id = r.session_id
 WHERE r.session_id IS NOT NULL AND s.ended_at IS NOT NULL AND {SCOPED}
"""


def not_yet_resumed(agents: Scope) -> int:
    return int(rows(ORPHANS, agents=agents)[0][0])


@dataclass(frozen=True, slots=True)
class Loss:
    """A worker that was lost: when its session ended, and what became of its runs. `seconds`: until the last one."""

    session: UUID
    name: str
    at: datetime
    why: str
    runs: int = 0
    takers: Sequence[str] = ()
    seconds: float | None = None
    in_doubt: int = 0


LOSSES = """
SELECT id, name, ended_at, end_reason FROM runs_workersession
 WHERE ended_at > %(since)s AND end_reason = ANY (%(lost)s) ORDER BY ended_at DESC LIMIT %(most)s
"""
BECAME = f"""
WITH {TAKEN}
SELECT t.source, count(DISTINCT t.run_id), array_agg(DISTINCT s.name), max(t.recorded_at),
       count(DISTINCT t.run_id) FILTER (WHERE r.status = 'needs_reconciliation')
  FROM taken t JOIN runs_run r ON r.id = t.run_id LEFT JOIN runs_workersession s ON s.id = t.taker
 WHERE t.source = ANY (%(sessions)s) AND {SCOPED}
 GROUP BY t.source
"""


def losses(since: datetime, most: int, agents: Scope = None) -> list[Loss]:
    """The workers that were lost, the newest first, with their runs within the scope."""
    found = [Loss(*row) for row in rows(LOSSES, since=since, lost=list(LOST), most=most)]
    return became(found, agents)


def became(found: Sequence[Loss], agents: Scope = None) -> list[Loss]:
    """With what became of their runs."""
    if not found:
        return []
    ids, first = [loss.session for loss in found], min(loss.at for loss in found)
    told = {row[0]: row[1:] for row in rows(BECAME, since=first, most=MOST_TAKEN_OVER, sessions=ids, agents=agents)}
    return [with_runs(loss, told.get(loss.session)) for loss in found]


def with_runs(loss: Loss, told: Sequence[Any] | None) -> Loss:
    if told is None:
        return loss
    count, names, last, doubt = told
    seconds = max((last - loss.at).total_seconds(), 0.0)
    takers = sorted(name for name in names if name)
    return Loss(loss.session, loss.name, loss.at, loss.why, count, takers, seconds, doubt)


# -- is it holding -----------------------------------------------------------------------------------------------------


def effects(agents: Scope) -> dict[str, int]:
    """Calls beyond reading that succeeded in the last 30 days, by agent, as workers counted them."""
    with connection.cursor() as cursor:
        counted = totals.counted(cursor)
    since = datetime.now(UTC).date() - timedelta(days=DAYS)
    found = totals.effects_since(counted, since)
    return {agent: count for agent, count in found.items() if agents is None or agent in agents}


REPEATED = f"""
SELECT r.agent, count(*) FROM ({LATE.format(more="AND l.recorded_at > %(since)s")} LIMIT 1000) AS late
  JOIN runs_run r ON r.id = late.run_id WHERE {SCOPED} GROUP BY r.agent
"""


def repeated_effects(agents: Scope) -> dict[str, int]:
    since = datetime.now(UTC) - timedelta(days=DAYS)
    return dict(rows(REPEATED, since=since, agents=agents))


@dataclass(frozen=True, slots=True)
class Chains:
    """Journals, how many of them were verified at least once, and when one was last. `about`: told from statistics."""

    journals: int
    verified: int
    at: datetime | None
    about: bool

    @property
    def percent(self) -> float:
        """Rounded down: 100 is all of them."""
        return 100.0 if not self.journals else int(1000 * self.verified / self.journals) / 10


HEADS = "SELECT count(*) FROM (SELECT 1 FROM journal_head ORDER BY run_id LIMIT %(most)s) AS heads"
UNVERIFIED = """
SELECT count(*) FROM (SELECT 1 FROM journal_head WHERE verified_at IS NULL ORDER BY verified_at LIMIT %(most)s) AS new
"""
ESTIMATE = """
SELECT c.reltuples, s.null_frac, (SELECT max(verified_at) FROM journal_head)
  FROM pg_class c LEFT JOIN pg_stats s ON s.tablename = 'journal_head' AND s.attname = 'verified_at'
       AND s.schemaname = current_schema()
 WHERE c.oid = 'journal_head'::regclass
"""


def chains() -> Chains:
    most = MOST_COUNTED + 1
    heads, new = int(rows(HEADS, most=most)[0][0]), int(rows(UNVERIFIED, most=most)[0][0])
    guessed, share, at = rows(ESTIMATE)[0]
    if heads < most:
        return Chains(heads, heads - new, at, about=False)
    journals = max(int(guessed), heads)
    if new == most and share is not None:
        new = max(new, int(journals * share))
    return Chains(journals, max(journals - new, 0), at, about=True)


def counted(number: int, most: int = MOST_COUNTED) -> str:
    """10,000+ where counting stopped."""
    return f"{number:,}+" if number >= most else f"{number:,}"
