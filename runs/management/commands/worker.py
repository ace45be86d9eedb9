"""manage.py worker: executes agents' steps until it is told to stop."""

from __future__ import annotations

import os
import socket
from typing import Any

from celery import Celery, current_app, signals
from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs import process
from runs.dispatch import queue_of
from runs.registry import AgentsUnusable, announce


class Command(BaseCommand):
    help = "Execute agents' steps until SIGTERM; then finish open calls, let the runs go, and leave."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", choices=("threads", "prefork"), default="threads")
        parser.add_argument("--concurrency", type=int, default=50, help="runs at a time (default 50)")
        parser.add_argument("--name", default=f"{socket.gethostname()}-{os.getpid()}")

    def handle(self, *args: Any, **options: Any) -> None:
        name, pool, concurrency = options["name"], options["pool"], options["concurrency"]
        if not 1 <= concurrency <= 500:
            raise CommandError("--concurrency is a number from 1 to 500")
        try:
            releases = announce()
        except AgentsUnusable as error:
            raise CommandError(str(error)) from error
        if not releases:
            raise CommandError("no agents to serve: name their modules in HOLDFAST_AGENTS")
        serve(name, pool, concurrency)
        self.stdout.write(f"{name} serves {', '.join(str(release) for release in releases)}")
        self.stdout.flush()
        queues = ",".join(queue_of(release.id) for release in releases)
        app: Celery = current_app._get_current_object()  # type: ignore[attr-defined]
        app.worker_main([
            "worker", "--pool", pool, "--concurrency", str(concurrency), "--queues", queues, "--hostname", f"{name}@%h",
            "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING",
        ])  # fmt: skip


def serve(name: str, pool: str, concurrency: int) -> None:
    """Hang the worker on Celery's own moments: one session a process that executes tasks."""
    if pool == "threads":
        process.open_worker(name, pool, concurrency, process.stop_serving)
        signals.worker_shutting_down.connect(lambda **_: process.leave_after_grace(), weak=False)
        signals.worker_shutdown.connect(lambda **_: process.close_worker(), weak=False)
        return

    def open_child(**_: Any) -> None:
        process.open_worker(f"{name}-{os.getpid()}", pool, 1, process.stop_serving)

    signals.worker_process_init.connect(open_child, weak=False)
    signals.worker_process_shutdown.connect(lambda **_: process.close_worker(), weak=False)
