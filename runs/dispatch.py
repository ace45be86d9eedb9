"""Messages: a run id, sent to the queue of its release. A message is a hint: losing one costs a sweep interval."""

from __future__ import annotations

import logging
from uuid import UUID

from amqp.exceptions import AMQPError
from celery import current_app
from kombu.exceptions import OperationalError

from journal.crash import crash_point

log = logging.getLogger("holdfast.dispatch")

ADVANCE = "runs.advance"


def queue_of(release_id: str) -> str:
    """Queues carry the pin: a worker takes only what it serves."""
    return f"holdfast.{release_id[:24]}"


def dispatch(run_id: UUID, release_id: str) -> bool:
    """Send the run to a worker. False: the broker is away, and the sweep sends it later."""
    try:
        crash_point("before-message")
        current_app.send_task(ADVANCE, args=[str(run_id), release_id], queue=queue_of(release_id), ignore_result=True)
        crash_point("after-message")
    except (OperationalError, OSError, AMQPError) as error:  # the last: RabbitMQ refused the message
        log.warning("run %s: the broker does not answer, the sweep will send it: %s", run_id, error)
        return False
    return True
