"""What keeping a journal costs a run of an agent, measured on the runs that ended last."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from runs.totals import append_seconds

SAMPLE = 50  # runs
MEASURED = """
SELECT count(*), coalesce(avg(commits), 0)::float8, coalesce(avg(bytes), 0)::float8, coalesce(avg(entries), 0)::float8
  FROM (SELECT id FROM runs_run WHERE agent = %s AND ended_at IS NOT NULL ORDER BY id DESC LIMIT %s) AS run,
       LATERAL (SELECT count(link) AS commits, sum(pg_column_size(e)) AS bytes, count(*) AS entries
                  FROM journal_entry AS e WHERE e.run_id = run.id) AS journal
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run on average: commits, entries and their bytes in the table, and the milliseconds that its worker waited
    for those commits (at the mean of all workers' appends; None if none has told). `runs`: how many were measured."""

    runs: int
    commits: float
    entries: float
    bytes: float
    milliseconds: float | None


def journaling_cost(agent: str) -> Cost:
    with connection.cursor() as cursor:
        cursor.execute(MEASURED, [agent, SAMPLE])
        runs, commits, size, entries = cursor.fetchone()
        seconds = append_seconds(cursor)
    return Cost(
        runs, round(commits, 1), round(entries, 1), round(size), round(commits * seconds * 1000, 1) if seconds else None
    )
