"""How a message is published: within a second or so, or not at all. Whoever starts a run does not wait for a broker."""

from __future__ import annotations

from typing import Any


def is_rabbitmq(url: str) -> bool:
    return url.startswith(("amqp://", "amqps://"))


def transport_options(url: str) -> dict[str, Any]:
    """Of Celery, for the broker at this address."""
    options: dict[str, Any] = {"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1}
    if is_rabbitmq(url):  # a message counts as sent when the queue has it
        return options | {"confirm_publish": True, "read_timeout": 1, "write_timeout": 1}
    return options | {"socket_timeout": 1, "socket_connect_timeout": 0.5}


def publishing(url: str) -> dict[str, Any]:
    """The whole configuration of an app of Celery that publishes our messages and does nothing else."""
    queues = {"task_default_queue_type": "quorum", "task_create_missing_queue_type": "quorum"}
    return {
        "broker_url": url,
        "broker_connection_timeout": 1,
        "broker_heartbeat": 0,
        "broker_transport_options": transport_options(url),
        "task_publish_retry": False,
        "task_create_missing_queues": True,
    } | (queues if is_rabbitmq(url) else {})
