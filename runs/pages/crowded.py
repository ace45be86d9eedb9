"""Why a queued run is not taken: every slot of the workers that serve it is taken by others."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from django.db.models.functions import Now
from django.utils import timezone

from runs.models import Run, Status, WorkerSession

SOON = timedelta(seconds=2)  # a run that was queued just now is only on its way


def crowd_before(run: Run) -> str:
    """A sentence; empty where a slot is free, or nobody serves it. A model that is asked holds one until it answers."""
    if run.status != Status.QUEUED or timezone.now() - run.since < SOON:
        return ""
    live = WorkerSession.objects.filter(ended_at=None, draining_at=None, expires_at__gt=Now())
    serving = dict(live.filter(serves__contains=[run.release_id]).values_list("id", "concurrency"))
    held = Run.objects.filter(session__in=list(serving), status=Status.RUNNING).values_list("session", "agent")
    by_session, by_agent = Counter(row[0] for row in held), Counter(row[1] for row in held)
    if not serving or any(by_session[session] < slots for session, slots in serving.items()):
        return ""
    total, [(_, most)] = by_agent.total(), by_agent.most_common(1)
    taken = "the only slot" if total == 1 else f"all {total} slots"
    one = f", {most} of them by runs of one agent" if most < total else " by runs of one agent" if total > 1 else ""
    return f"Just now {taken} of the workers that serve it {'is' if total == 1 else 'are'} taken{one}."
