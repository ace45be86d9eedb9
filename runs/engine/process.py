"""This process's worker: made once, when Celery's pool is ready, in the process that executes tasks."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.conf import settings

from journal.payloads import payload_store
from runs.dispatch import dispatch
from runs.engine.loop import load_wire
from runs.engine.sessions import Session
from runs.engine.worker import Worker
from runs.registry import agents

log = logging.getLogger("holdfast.process")

IDLE_LOOKS = 0.2  # seconds
SOON = 2.0

_worker: Worker | None = None
_leaving = threading.Event()  # it is told to stop while it starts


def worker() -> Worker:
    """Raises RuntimeError in a process that is not a worker."""
    if _worker is None:
        raise RuntimeError("this process is not a worker: start one with manage.py worker")
    return _worker


def open_worker(
    name: str, pool: str, concurrency: int, on_end: Callable[[], None], pool_started_at: datetime | None = None
) -> Worker:
    """Register the session (its id is the supervisor's, if there is one) and begin to serve.

    `pool_started_at`: of a child, when its parent began, by the database's clock.
    """
    global _worker
    given = os.environ.get("HOLDFAST_SESSION") if pool == "threads" else None
    session = Session(
        name=name,
        pool=pool,
        concurrency=concurrency,
        region=settings.HOLDFAST_REGION,
        lease=settings.HOLDFAST_LEASE_SECONDS,
        serves=list(agents()),
        codes={release: agent.code_digest for release, agent in agents().items()},
        id=UUID(given) if given else None,
        pool_started_at=pool_started_at,
    )
    connections = 4 if pool == "threads" else 1
    _worker = Worker(settings.HOLDFAST_DSN, session, agents(), payload_store(), dispatch, connections)
    _worker.on_end = on_end
    load_wire(agents().values())
    if _leaving.is_set():
        leave_at_once()
    return _worker


def leave_after_grace() -> None:
    """Drain now; at the end of the grace the process leaves, whatever a call does. Needs no answer of the database."""
    if _worker is not None:
        _worker.drain()
    threading.Thread(target=_leave, args=(settings.HOLDFAST_GRACE_SECONDS,), name="grace", daemon=True).start()


def _leave(seconds: float) -> None:
    time.sleep(seconds)
    log.error("the grace of %.0f s is over with calls still open: leaving", seconds)
    os._exit(1)


def leave_when_idle() -> None:
    """Of a child that is told to stop, not by its parent: as `leave_after_grace`, and sooner if it is idle."""
    leave_after_grace()
    threading.Thread(target=_leave_idle, name="idle", daemon=True).start()


def _leave_idle() -> None:
    while _worker is not None and _worker.driving:
        time.sleep(IDLE_LOOKS)
    time.sleep(IDLE_LOOKS)  # its parent hears how the task ended
    close_worker()
    os._exit(0)


def leave_at_once(*_: object) -> None:
    """A SIGTERM before anything is taken: the session ends, if there is one by then and the database answers soon."""
    _leaving.set()
    threading.Timer(SOON, os._exit, args=(0,)).start()
    if _worker is not None:
        close_worker()
        os._exit(0)


def stop_serving() -> None:
    """The session was ended by somebody else: ask Celery to stop, so that the supervisor starts a new one."""
    os.kill(os.getpid(), signal.SIGTERM)


def close_worker() -> None:
    """At the process's regular end: nothing is driven any more, so the session ends and no crash is counted."""
    global _worker
    if _worker is not None:
        _worker.close()
        _worker = None
