"""`up`: everything on one machine, kept alive until it is told to stop.

The order is the safety argument. Start: database, broker, migrations, then whatever uses them. Stop: web (no new work),
workers (they let their runs go), sweeper and demo, broker, database.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from urllib.error import URLError
from urllib.request import urlopen
from uuid import UUID

from config.children import Child, Process, WorkerChild, how_it_ended, last_line, spawn, tied
from config.embedded import EmbeddedError, valkey
from config.embedded.postgres import Postgres
from config.environment import ROOT
from config.installation import Installation
from config.reload import SourceWatch
from config.session_watch import SessionWatch
from demo import model

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RELOAD_EVERY = 0.3  # seconds between two looks at the agents' files
RECOVERY_PATIENCE = 600  # seconds: a database that was killed under load replays its log before it answers


@dataclass(frozen=True, slots=True)
class Plan:
    """What `up` was asked for. Ports are real ones, never 0."""

    port: int
    workers: int
    demo: bool
    payments_port: int
    models_port: int
    reload: bool = False


class Supervisor:
    def __init__(self, place: Installation, plan: Plan) -> None:
        self.place = place
        self.plan = plan
        demo_ports = (plan.payments_port, plan.models_port) if plan.demo else (None, None)
        self.variables = place.variables(plan.port, *demo_ports)
        self.postgres = Postgres(place.data / "pg", tied=tied(signal.SIGINT))
        self.watch = SessionWatch(place.environment.dsn, place.environment.lease_seconds, self._lapsed)
        self.servers: list[Child] = []
        self.web = self._command("web", place.web_words(plan.port))
        self.workers = [self._worker(f"w{number}") for number in range(1, plan.workers + 1)]
        self.others = [self._command("sweeper", place.manage_words("sweep"))]
        self.outside: list[Child] = []  # what the demo's agents talk to
        if plan.demo:
            self.outside = [self._command("payments", place.payments_words(plan.payments_port))]
            self.outside.append(self._command("models", place.models_words(plan.models_port)))
            self.others.append(self._command("demo", place.manage_words("demo")))
        self._stops = 0
        self._overdue: set[UUID] = set()
        self.sources = SourceWatch(place.environment.agents) if plan.reload else None
        self._renewed: set[str] = set()  # children that were told to leave so that they start with changed sources
        self._reader, self._writer = os.pipe()

    @property
    def children(self) -> list[Child]:
        return [*self.servers, *self.outside, *self.workers, *self.others, self.web]

    def run(self) -> None:
        """Returns when everything has stopped. Raises EmbeddedError or InstallationError if the start fails."""
        self._listen_to_signals()
        try:
            self._start_servers()
            if not self._stops:
                self.place.say("preparing the database and the pages")
                self.place.prepare(self.variables)
            if not self._stops:
                self.watch.start()
                self._tend()
                self._announce_when_ready()
            while not self._stops:
                self._tend()
                self._sleep()
        finally:
            self._stop_everything()

    # Starting

    def _start_servers(self) -> None:
        if self.place.environment.database_is_embedded:
            self.place.say("starting PostgreSQL")
            self.postgres.stop()  # one that outlived a killed `up` and that nobody watches
            self.servers.append(Child("database", self._start_postgres))
        if self.place.environment.broker_is_embedded:
            self.servers.append(Child("broker", lambda: valkey.start(self.place.data / "broker", tied())))
        for server in self.servers:
            server.start()

    def _start_postgres(self) -> Process:
        return self.postgres.start(RECOVERY_PATIENCE, wanted=lambda: not self._stops)

    def _command(self, name: str, words: list[str]) -> Child:
        return Child(name, lambda: spawn(words, self.variables, self.place.log(name), ROOT))

    def _worker(self, name: str) -> WorkerChild:
        words = self.place.manage_words("worker", "--name", name)

        def launch() -> Process:
            session = child.new_session()
            variables = self.variables | {"HOLDFAST_SESSION": str(session)}
            process = spawn(words, variables, self.place.log(name), ROOT)
            self.watch.begin(session)
            return process

        child = WorkerChild(name, launch)
        return child

    def _announce_when_ready(self) -> None:
        address = f"http://127.0.0.1:{self.plan.port}"
        while not self._stops:
            self._tend()
            try:
                with urlopen(f"{address}/healthz", timeout=1):
                    break
            except (URLError, OSError):
                self._sleep(0.1)
        if not self._stops:
            self.place.announce(address, self._demo_places() if self.plan.demo else {})

    def _demo_places(self) -> dict[str, str]:
        scripted = f"scripted at http://127.0.0.1:{self.plan.models_port}; {model.VARIABLE} names a real one"
        return {
            "payments service": f"http://127.0.0.1:{self.plan.payments_port}",
            "support agent's model": model.real_model_or_none() or scripted,
        }

    # Keeping alive

    def _reload(self) -> None:
        """Workers let their runs go, as at any stop; the web process knows the agents too."""
        changed = self.sources.changed() if self.sources is not None else []
        if not changed or self._stops:
            return
        self.place.say(f"{changed[0].name} has changed: workers and web start anew")
        for child in (*self.workers, self.web):
            self._renewed.add(child.name)
            child.due = 0.0
            child.send(signal.SIGTERM)

    def _tend(self) -> None:
        self._reload()
        for session in self._take_overdue():
            for worker in self.workers:
                if worker.session == session and worker.process is not None:
                    self.place.say(f"{worker.name} (process {worker.pid}) has let its lease lapse: killing it")
                    worker.kill_group()
        for child in self.children:
            pid = child.pid
            code = child.reap()
            if code is not None:
                log = self.place.log(child.name)
                self.place.say(f"{child.name} (process {pid}) {how_it_ended(code)}; its log: {log}")
                if code > 0 and (last := last_line(log)):
                    self.place.say(f"{child.name} said at last: {last}")
                self._bury(child)
                if child.name in self._renewed:
                    self._renewed.discard(child.name)
                    child.due = 0.0
            if child.process is None and time.monotonic() >= child.due and not self._stops:
                self._start(child)

    def _bury(self, child: Child) -> None:
        if isinstance(child, WorkerChild) and child.session is not None:
            self.watch.end(child.session)

    def _start(self, child: Child) -> None:
        try:
            child.start()
        except (EmbeddedError, OSError) as error:
            self.place.say(f"{child.name} does not start: {error}")

    def _lapsed(self, session: UUID) -> None:
        self._overdue.add(session)
        self._wake()

    def _take_overdue(self) -> list[UUID]:
        return [self._overdue.pop() for _ in range(len(self._overdue))]

    # Stopping

    def _stop_everything(self) -> None:
        self._stops = self._stops or 1
        grace = self.place.environment.grace_seconds
        self.place.say("stopping: web, workers, sweeper, broker, database")
        self._stop([self.web], 3)
        self._stop([*self.workers, *self.others], grace + 2)
        if self.watch.is_alive():
            self.watch.close(1)
        database = [server for server in self.servers if server.name == "database"]
        self._stop([*self.outside, *(server for server in self.servers if server not in database)], 3)
        self._stop(database, 4, signal.SIGINT, then=signal.SIGQUIT)
        self.place.say("everything has stopped")

    def _stop(
        self,
        children: Iterable[Child],
        patience: float,
        how: signal.Signals = signal.SIGTERM,
        then: signal.Signals = signal.SIGKILL,
    ) -> None:
        """Waits at most `patience` seconds, or until a second Ctrl-C; then ends what is left at once."""
        remaining = [child for child in children if child.process is not None]
        for child in remaining:
            child.send(how)
        deadline = time.monotonic() + patience
        while remaining and time.monotonic() < deadline and self._stops < 2:
            remaining = [child for child in remaining if not self._has_ended(child)]
            if remaining:
                self._sleep(0.1)
        for child in remaining:
            self.place.say(f"{child.name} has to be ended by {then.name}")
            child.send(then)
            if child.process is not None:
                child.process.wait(5)
            self._has_ended(child)

    def _has_ended(self, child: Child) -> bool:
        if child.reap() is not None:
            self._bury(child)
        return child.process is None

    # Signals: a handler only counts and wakes the loop

    def _listen_to_signals(self) -> None:
        for which in STOP_SIGNALS:
            signal.signal(which, self._asked_to_stop)
        signal.signal(signal.SIGCHLD, lambda _which, _frame: self._wake())

    def _asked_to_stop(self, _which: int, _frame: FrameType | None) -> None:
        self._stops += 1
        self._wake()

    def _wake(self) -> None:
        os.write(self._writer, b"!")

    def _sleep(self, seconds: float = 1.0) -> None:
        seconds = min(seconds, RELOAD_EVERY) if self.sources is not None else seconds
        if select.select([self._reader], [], [], seconds)[0]:
            os.read(self._reader, 4096)


def print_line(words: str) -> None:
    print(f"holdfast: {words}", file=sys.stderr, flush=True)
