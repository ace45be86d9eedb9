"""manage.py worker: executes agents' steps until it is told to stop."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from celery import signals
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from journal.durability import durability_faults
from runs.broker import WORKING
from runs.dispatch import messenger, queue_of
from runs.engine import process
from runs.engine.worker import Worker
from runs.model_contracts import unset_variables
from runs.models import Release, Stage
from runs.redefine import repin_for_ever
from runs.registry import AgentsUnusable, agents, announce
from runs.tasks import advance as advance

log = logging.getLogger("holdfast.process")


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Execute agents' steps until SIGTERM; then finish open calls, let the runs go, and leave."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", choices=("threads", "prefork"), default="threads")
        parser.add_argument("--concurrency", type=int, default=50, help="runs at a time (default 50)")
        parser.add_argument("--name", default=f"{socket.gethostname()}-{os.getpid()}")

        parser.add_argument(
            "--allow-redefine", action="store_true", help="development: other content under an agent's known version"
        )
        parser.add_argument("--promote", action="store_true", help="what it announces anew takes the new runs at once")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["allow_redefine"]:
            settings.HOLDFAST_ALLOW_REDEFINE = True
        if options["promote"]:
            settings.HOLDFAST_PROMOTE = True
        name, pool, concurrency = options["name"], options["pool"], options["concurrency"]
        if not 1 <= concurrency <= 500:
            raise CommandError("--concurrency is a number from 1 to 500")
        app = messenger()
        if app is None:
            raise CommandError("no broker to take messages from: set HOLDFAST_BROKER_URL")
        app.conf.update(WORKING)
        if not settings.HOLDFAST_ALLOW_NO_FSYNC and (faults := durability_faults()):
            raise CommandError(f"the database may forget what is committed: {'; '.join(faults)}")
        self.check()  # first: what cannot be served is not announced either
        os.environ["CELERY_SKIP_CHECKS"] = "true"  # Celery would make the same once more
        try:
            releases = announce()
        except AgentsUnusable as error:
            raise CommandError(str(error)) from error
        if not releases:
            raise CommandError("no agents to serve: name their modules in HOLDFAST_AGENTS")
        longest = max((t.timeout for a in agents().values() for t in a.toolbox.values()), default=0.0)
        if longest > settings.HOLDFAST_GRACE_SECONDS:
            grace = f"the grace of {settings.HOLDFAST_GRACE_SECONDS:g} s is shorter than the longest timeout of a tool"
            self.stderr.write(f"{grace} ({longest:g} s): a stop may leave such a call in doubt")
        for agent in agents().values():
            if missing := unset_variables(agent):
                self.stderr.write(f"{agent.name}@{agent.version} cannot ask its model: {', '.join(missing)} not set")
        signal.signal(signal.SIGTERM, process.leave_at_once)  # until Celery has its own
        serve(name, pool, concurrency)
        if settings.HOLDFAST_ALLOW_REDEFINE:
            repin_for_ever()
        self.stdout.write(f"{name} serves {', '.join(map(in_words, releases))}")
        self.stdout.flush()
        queues = ",".join(queue_of(release.id) for release in releases)
        try:
            app.worker_main([
                "worker", "--pool", pool, "--concurrency", str(concurrency), "--queues", queues, "--hostname",
                f"{name}@%h", "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING",
            ])  # fmt: skip
        finally:  # a SIGTERM while Celery starts: it goes without a word
            process.close_worker()


class Intake:
    """What Celery takes from the queues. Shut while a gate is over this worker: others take the messages then.

    What comes all the same is passed on by whoever executes it, a second later.
    """

    def __init__(self, releases: Sequence[str]) -> None:
        self.queues = [queue_of(release) for release in releases]
        self.consumer: Any = None
        self.gated = self.shut = False

    def is_ready(self, consumer: Any) -> None:
        self.consumer = consumer
        self.turn(self.gated)

    def turn(self, shut: bool) -> None:
        self.gated = shut
        if self.consumer is not None and shut != self.shut:
            self.shut = shut
            self.consumer.call_soon(self._shut_all if shut else self._open_all)

    def _shut_all(self) -> None:
        for queue in self.queues:
            self.consumer.cancel_task_queue(queue)

    def _open_all(self) -> None:
        for queue in self.queues:
            self.consumer.add_task_queue(queue)


class Hearsay:
    """By which a prefork parent, which asks the database nothing, hears of gates: a byte of a child at each change."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def tell_of(self, worker: Worker) -> None:
        """In a child. A gate over this one child alone is its own affair."""

        def tell(_: bool) -> None:
            over_all = worker.gates.over_place((self.name,), worker.session.region) is not None
            with suppress(OSError):  # the parent is gone, or has long not looked
                os.write(self._writer, bytes([over_all]))

        worker.on_gate = tell

    def listen(self, intake: Intake) -> None:
        """In the parent, from when it takes messages: the last word is what counts."""

        def loop() -> None:
            while told := os.read(self._reader, 1024):
                intake.turn(bool(told[-1]))

        threading.Thread(target=loop, name="gates", daemon=True).start()


def in_words(release: Release) -> str:
    """With what it is to new runs, unless it takes them all."""
    share = f" {release.share}%" if release.stage == Stage.CANARY else ""
    return str(release) if release.stage == Stage.CURRENT else f"{release} ({release.stage}{share})"


def serve(name: str, pool: str, concurrency: int) -> None:
    """Hang the worker on Celery's own moments: one session a process that executes tasks."""
    intake = Intake(list(agents()))
    signals.worker_ready.connect(lambda sender, **_: intake.is_ready(sender), weak=False)
    if pool == "prefork":
        serve_by_children(name, intake)
        return
    worker = process.open_worker(name, pool, concurrency, process.stop_serving)
    worker.on_gate = intake.turn
    signals.worker_shutting_down.connect(lambda **_: process.leave_after_grace(), weak=False)
    signals.worker_shutdown.connect(lambda **_: process.close_worker(), weak=False)


def serve_by_children(name: str, intake: Intake) -> None:
    closing: list[bool] = []
    reader, writer = os.pipe()  # closed by the parent when it shuts down, or dies: then its children drain
    hearsay = Hearsay(name)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        began = cursor.fetchone()[0]
    connection.close()  # no child may inherit it

    def open_child(**_: Any) -> None:
        os.close(writer)
        try:
            worker = process.open_worker(f"{name}-{os.getpid()}", "prefork", 1, process.stop_serving, began)
        except BaseException:  # Celery would keep the child, which took messages and drove nothing: let it start anew
            log.exception("a child of %s cannot serve", name)
            time.sleep(1)
            os._exit(1)
        hearsay.tell_of(worker)
        threading.Thread(target=leave_at_end_of, args=(reader,), name="parent", daemon=True).start()

    def listen(**_: Any) -> None:  # a manager may tell each of a group; Celery's own handler would break off the call
        signal.signal(signal.SIGTERM, lambda *_: process.leave_when_idle())

    def shut_down(**_: Any) -> None:
        if not closing:  # at a second SIGTERM the number may be another file's
            closing.append(True)
            os.close(writer)
            process.leave_after_grace()

    signals.worker_ready.connect(lambda **_: hearsay.listen(intake), weak=False)
    signals.worker_process_init.connect(open_child, weak=False)
    signals.task_prerun.connect(listen, weak=False)  # it sets that one after the process's init
    signals.worker_process_shutdown.connect(lambda **_: process.close_worker(), weak=False)
    signals.worker_shutting_down.connect(shut_down, weak=False)


def leave_at_end_of(pipe: int) -> None:
    """Celery's parent ends its children when they are idle; one that is not leaves at the end of its grace."""
    os.read(pipe, 1)
    process.leave_after_grace()
