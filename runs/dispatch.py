"""Messages: a run id, sent to the queue of its release. A message is a hint: losing one costs a sweep interval."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any
from uuid import UUID

from amqp.exceptions import AMQPError
from celery import Celery, current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from journal.crash import crash_point
from runs.broker import publishing

log = logging.getLogger("holdfast.dispatch")

ADVANCE = "runs.advance"


def queue_of(release_id: str) -> str:
    """Queues carry the pin: a worker takes only what it serves."""
    return f"holdfast.{release_id[:24]}"


def dispatch(run_id: UUID, release_id: str) -> bool:
    """Send the run to a worker. False: the broker is away, or there is none; the sweep sends it later."""
    app = messenger()
    if app is None:
        return False
    order: dict[str, Any] = {"args": [str(run_id), release_id], "queue": queue_of(release_id), "ignore_result": True}
    try:
        crash_point("before-message")
        app.send_task(ADVANCE, **order, serializer="json", retry=False)
        crash_point("after-message")
    except (OperationalError, OSError, AMQPError) as error:  # the last: RabbitMQ refused the message
        log.warning("run %s: the broker does not answer, the sweep will send it: %s", run_id, error)
        return False
    return True


def messenger() -> Celery | None:
    """Whoever publishes: the process's own app of Celery, or in another project one on HOLDFAST_BROKER_URL. None: no
    broker is known here."""
    if settings.HOLDFAST_BROKER_URL:
        return _publisher(settings.HOLDFAST_BROKER_URL)
    app: Celery = current_app._get_current_object()  # type: ignore[attr-defined]
    return app if app.conf.broker_url or app.conf.broker_write_url else None


@cache
def _publisher(url: str) -> Celery:
    app = Celery("holdfast-messages", set_as_current=False)
    app.conf.update(publishing(url))
    return app
