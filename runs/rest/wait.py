"""Waiting for a run to come to rest: it ended, or it is parked until somebody or something far off releases it."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.utils import timezone

from runs.models import ENDED, Run, Status

PARKED = frozenset({Status.AWAITING_APPROVAL, Status.NEEDS_RECONCILIATION, Status.HELD, Status.QUARANTINED})
PATIENCE = 60.0  # seconds; a timer further away than this counts as parked
UNSERVED = timedelta(seconds=10)  # without a worker that serves it, a run counts as parked: one may be starting now
FIRST_LOOK, SLOWEST_LOOK = 0.02, 0.25


def wait_for_rest(run_id: UUID, seconds: float | None = None) -> Run:
    """The run as it is when it rests, or after `seconds` (None: however long it takes)."""
    deadline = None if seconds is None else time.monotonic() + seconds
    pause = FIRST_LOOK
    while True:
        run = Run.objects.select_related("release", "session").get(id=run_id)
        left = PATIENCE if deadline is None else deadline - time.monotonic()
        if left <= 0 or at_rest(run, min(left, PATIENCE)):
            return run
        if not connection.in_atomic_block:
            connection.close()  # a waiting request keeps none of the few connections that all requests share
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, SLOWEST_LOOK)


def at_rest(run: Run, patience: float = PATIENCE) -> bool:
    """Whether nothing will happen to it within `patience` seconds unless somebody acts."""
    if run.status in ENDED or run.status in PARKED:
        return True
    if run.status == Status.WAITING_FOR_VERSION:
        return timezone.now() - run.since > UNSERVED
    if run.status != Status.WAITING:
        return False
    return run.wake_at is None or run.wake_at - timezone.now() > timedelta(seconds=patience)
