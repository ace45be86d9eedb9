"""PostgreSQL, Redis and RabbitMQ as an operator would have installed them: Debian's, on TCP ports, with passwords."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import kombu
import psycopg
import pytest

from config.children import tied
from config.embedded.postgres import NAMESPACE
from config.installation import free_port
from tests.config.rig import soon

# Debian's own script, not the wrapper that wants the system's user.
RABBIT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


def missing(kind: str, what: str) -> NoReturn:
    """Skips the test, or fails it where HOLDFAST_REQUIRE says that this kind must not be skipped."""
    if kind in os.environ.get("HOLDFAST_REQUIRE", "").split(","):
        pytest.fail(f"{what} is not installed, and HOLDFAST_REQUIRE names {kind}")
    pytest.skip(f"{what} is not installed")


@contextmanager
def installed_postgres(folder: Path) -> Iterator[str]:
    """The URL of an empty database on the oldest PostgreSQL that is installed here."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if not found:
        missing("postgres15", "PostgreSQL")
    binaries, password, port = str(found[0].parent), secrets.token_hex(8), free_port(0)
    before = NAMESPACE if os.geteuid() == 0 else ()
    (folder / "password").write_text(password)
    subprocess.run(
        [*before, f"{binaries}/initdb", "-D", str(folder / "data"), "-U", "owner", "-A", "scram-sha-256", "--no-sync",
         "-E", "UTF8", "--locale=C.UTF-8", "--pwfile", str(folder / "password")],
        check=True, capture_output=True,
    )  # fmt: skip
    words = [f"{binaries}/postgres", "-D", str(folder / "data"), "-h", "127.0.0.1", "-p", str(port), "-k", ""]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen([*before, *tied(signal.SIGQUIT), *words], stdout=log, stderr=log)
    try:
        url = f"postgresql://owner:{password}@127.0.0.1:{port}"
        with soon(lambda: psycopg.connect(f"{url}/postgres", autocommit=True)) as admin:
            admin.execute("CREATE DATABASE orders")
        yield f"{url}/orders"
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(60)


@contextmanager
def installed_redis(folder: Path) -> Iterator[str]:
    """The URL of an empty Redis with a password."""
    program = shutil.which("redis-server")
    if program is None:
        missing("redis", "Redis")
    password, port = secrets.token_hex(8), free_port(0)
    words = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--requirepass", password, "--save", ""]
    with open(folder / "redis.log", "wb") as log:
        server = subprocess.Popen([*tied(), *words, "--dir", str(folder)], stdout=log, stderr=log)
    try:
        yield f"redis://:{password}@127.0.0.1:{port}/3"
    finally:
        server.terminate()
        server.wait(60)


class Rabbit:
    """A RabbitMQ node of its own below a folder: own ports, own cookie, own epmd, so that no other node is touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port, self._password = free_port(0), secrets.token_hex(8)
        self._running: list[subprocess.Popen[bytes]] = []
        epmd, distribution = free_port(0), free_port(0)
        (folder / "plugins").write_text("[].")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{self._port}\ndefault_user = owner\n"
            f"default_pass = {self._password}\ndefault_vhost = orders\n"
        )
        self._environment = os.environ | {
            "HOME": str(folder), "ERL_EPMD_PORT": str(epmd), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"holdfast-{self._port}@localhost", "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia", "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf", "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins", "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RUNNING_UNDER_SYSTEMD": "true",  # no shell between us and the node
        }  # fmt: skip

    @property
    def url(self) -> str:
        return f"amqp://owner:{self._password}@127.0.0.1:{self._port}/orders"

    def start(self) -> None:
        epmd = self._environment["ERL_EPMD_PORT"]
        self._spawn("epmd", "-port", epmd)  # a node that finds none starts one that outlives it
        soon(lambda: socket.create_connection(("127.0.0.1", int(epmd)), 5)).close()
        self._spawn(str(RABBIT))
        soon(self.answers, seconds=120)

    def answers(self) -> bool:
        try:
            with kombu.Connection(self.url, connect_timeout=5) as connection:
                connection.connect()
        except connection.connection_errors:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        for process in reversed(self._running):
            process.send_signal(how)
            process.wait(60)
        self._running.clear()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It holds its connections and answers nothing."""
        self._running[-1].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._running[-1].send_signal(signal.SIGCONT)

    def forget(self) -> None:
        """All queues and messages are gone: only when it is stopped."""
        shutil.rmtree(self.folder / "mnesia")

    def queues(self) -> dict[str, str]:
        """The type of each queue, by name."""
        words = [str(RABBIT.with_name("rabbitmqctl")), "-q", "list_queues", "--vhost", "orders", "name",
                 "type", "--no-table-headers"]  # fmt: skip
        said = subprocess.run(words, env=self._environment, capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said.stdout + said.stderr
        return dict(line.split("\t") for line in said.stdout.splitlines() if "\t" in line)

    def _spawn(self, *words: str) -> None:
        with open(self.folder / "printed", "ab") as log:
            started = subprocess.Popen([*tied(), *words], env=self._environment, stdout=log, stderr=log)
        self._running.append(started)


@contextmanager
def installed_rabbitmq(folder: Path) -> Iterator[Rabbit]:
    if not RABBIT.exists():
        missing("rabbitmq", "RabbitMQ")
    rabbit = Rabbit(folder)
    rabbit.start()
    try:
        yield rabbit
    finally:
        rabbit.stop()
