"""Development only: an agent's content changes under its version, and runs pinned to the old one go on under the new.

What such a run decided is compared with the new code before anything is sent, as after any change of code.
"""

from __future__ import annotations

import logging
import threading
import time
from uuid import UUID

from django.db import DatabaseError, connection

from runs.commands import locked_run
from runs.dispatch import dispatch
from runs.engine.drafts import SYSTEM
from runs.errors import BusinessIdTaken, RunEnded, StatelessRun
from runs.models import ENDED, Release, Run, Status
from runs.pinning import move_run
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
    try:
        with locked_run(run_id) as held:
            if held.run.session is not None or held.run.release_id == release_id:
                return False
            release = Release.objects.get(id=release_id)
            move_run(held, release, {"reason": "redefined in development"}, SYSTEM, reason="waits for a worker")
        return True
    except StatelessRun:
        return repin_stateless(run_id, release_id)
    except RunEnded:
        return False
    except BusinessIdTaken as error:
        log.warning("run %s stays under its older content: %s", run_id, error)
        return False


def repin_stateless(run_id: UUID, release_id: str) -> bool:
    """It has no journal: the row alone."""
    waiting = (Status.QUEUED, Status.WAITING_FOR_VERSION)
    waits = Run.objects.filter(id=run_id, session=None, status__in=waiting).exclude(release=release_id)
    moved = waits.update(release_id=release_id, status=Status.QUEUED, reason="waits for a worker") > 0
    if moved:
        dispatch(run_id, release_id)
    return moved
