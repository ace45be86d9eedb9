"""The last entries of many runs without their bodies: what a list draws of a journal."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection


class Outline(NamedTuple):
    seq: int
    kind: str
    epoch: int
    step: int | None
    settles: int | None
    recorded_at: datetime


_OUTLINES = """SELECT asked.run, e.seq, e.kind, e.epoch, e.step, e.settles, e.recorded_at
    FROM unnest(%s::uuid[]) AS asked (run),
    LATERAL (SELECT * FROM journal_entry WHERE run_id = asked.run ORDER BY seq DESC LIMIT %s) AS e
    ORDER BY asked.run, e.seq"""


def read_outlines(run_ids: Collection[UUID], most: int) -> dict[UUID, list[Outline]]:
    """The last `most` entries of each run, in order, by one statement. A run without a journal is left out."""
    found: dict[UUID, list[Outline]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_OUTLINES, (list(run_ids), most))
        for run_id, *row in cursor.fetchall():
            found.setdefault(run_id, []).append(Outline(*row))
    return found
