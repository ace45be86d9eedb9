"""Counts that stay cheap: nobody counts further than to MOST, and all counts of a page are one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

MOST = 10_000


def capped_counts(sets: Sequence[QuerySet[Any]], most: int = MOST) -> list[int]:
    """How many rows each has; `most` + 1 where it has more."""
    parts: list[str] = []
    given: list[Any] = []
    for number, rows in enumerate(sets):
        try:
            sql, params = rows.order_by().values("pk")[: most + 1].query.sql_with_params()
        except EmptyResultSet:  # nothing can be in it
            continue
        parts.append(f"SELECT {number}, count(*) FROM ({sql}) AS found")
        given += params
    if not parts:
        return [0] * len(sets)
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), given)
        found = dict(cursor.fetchall())
    return [found.get(number, 0) for number in range(len(sets))]


def counted(number: int, most: int = MOST) -> str:
    """1,191 or, of what nobody counted further, 10,000+."""
    return f"{number:,}" if number <= most else f"{most:,}+"
