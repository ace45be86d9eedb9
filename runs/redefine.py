"""Development only: an agent's content changes under its version, and runs pinned to the old one go on under the new.

What such a run decided is compared with the new code before anything is sent, as after any change of code.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from journal.append import append_person, lock_head
from journal.entries import Draft, Kind
from runs.dispatch import dispatch
from runs.engine.drafts import SYSTEM
from runs.models import ENDED, Release, Run, Status
from runs.registry import agents

log = logging.getLogger("holdfast.redefine")

EVERY = 1.0  # seconds


def repin_for_ever() -> None:
    """In a thread of a worker: a run that another worker still drives is left until that one lets it go."""
    threading.Thread(target=_repin_for_ever, name="redefine", daemon=True).start()


def _repin_for_ever() -> None:
    while True:
        try:
            repin_all()
        except DatabaseError as error:
            log.warning("runs of redefined agents are not looked at: %s", error)
            connection.close()
        time.sleep(EVERY)


def repin_all() -> int:
    """Every open run of an older content of what this process serves; how many there were."""
    repinned = 0
    for release_id, agent in agents().items():
        older = Release.objects.filter(agent=agent.name, version=agent.version).exclude(id=release_id)
        open_runs = Run.objects.filter(release__in=older, session=None).exclude(status__in=ENDED)
        for run_id in open_runs.values_list("id", flat=True):
            repinned += repin(run_id, release_id)
    return repinned


def repin(run_id: UUID, release_id: str) -> bool:
    """PIN by system in the journal, and the row with it. False: it is under way, or over."""
    with transaction.atomic():
        run = Run.objects.filter(id=run_id, input=None).first()
        if run is not None:
            lock_head(run.id)
        row = Run.objects.select_for_update(no_key=True).filter(id=run_id, session=None).first()
        if row is None or row.status in ENDED or row.release_id == release_id:
            return False
        if run is not None:
            body = {"release": release_id, "from": row.release_id, "reason": "redefined in development"}
            append_person(row.id, [Draft(Kind.PIN, body)], request_id=None, actor=SYSTEM)
        moves = row.status in (Status.QUEUED, Status.WAITING_FOR_VERSION)
        if moves:
            row.status, row.reason = Status.QUEUED, "waits for a worker"
        Run.objects.filter(id=row.id).update(release_id=release_id, status=row.status, reason=row.reason)
        if moves:
            transaction.on_commit(functools.partial(dispatch, row.id, release_id))
    return True
