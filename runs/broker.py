"""How messages are published (within a second or so, or not at all: who starts a run waits for no broker) and taken."""

from __future__ import annotations

from typing import Any

# Of a worker, whoever's app of Celery it serves by. A message is a hint, acknowledged early: the sweep finds what it
# should have woken.
WORKING: dict[str, Any] = {
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "task_acks_late": False,
    "task_ignore_result": True,
    "accept_content": ["json"],
    "worker_prefetch_multiplier": 1,
    "worker_enable_remote_control": False,
    "worker_send_task_events": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_hijack_root_logger": False,
}


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
