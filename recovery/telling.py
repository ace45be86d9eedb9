"""Telling open pages that something other than an entry has changed what they show of runs."""

from __future__ import annotations

from django.db import connection

from journal.feed import CHANNEL
from recovery.in_flight import held_runs, reach_of

MOST_TOLD = 500  # pages of others read on within half a minute by themselves


def tell_held(scope: str) -> None:
    """Pages that show runs in flight in the scope mark them as draining, or no more."""
    ids = list(held_runs(reach_of(scope)).values_list("id", flat=True)[:MOST_TOLD])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, id::text) FROM unnest(%s::uuid[]) AS id", [CHANNEL, ids])
