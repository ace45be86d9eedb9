"""One data folder and the commands that run on it."""

import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path

from config.children import tied
from config.environment import ROOT, Environment, secret_key_file
from demo import model

ROOM_NEEDED = 300 * 2**20  # bytes


class InstallationError(Exception):
    """Holdfast cannot run here."""


@dataclass(slots=True)
class Installation:
    """Paths, words and variables of one `up`. `say` prints a line of progress."""

    environment: Environment
    say: Callable[[str], None]
    show: Callable[[str], None]
    _lock: TextIOWrapper | None = field(init=False, default=None)

    @property
    def data(self) -> Path:
        return self.environment.data

    def log(self, name: str) -> Path:
        """Where a child writes; the embedded servers keep theirs beside their data."""
        return self.data / {"database": "pg/log", "broker": "broker/log"}.get(name, f"logs/{name}.log")

    def open(self, address: str) -> None:
        """Makes the data folder this process's own until it ends. Raises InstallationError if that cannot be."""
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            free = shutil.disk_usage(self.data).free
            if free < ROOM_NEEDED:
                room = f"{ROOM_NEEDED >> 20} MB are needed in {self.data}, {free >> 20} MB are free"
                raise InstallationError(f"The disk is full: {room}.")
            self._take_lock(address)
            _keep(secret_key_file(self.data), lambda: secrets.token_urlsafe(50))
        except OSError as error:
            raise InstallationError(f"The data folder {self.data} cannot be used: {error.strerror}.") from error

    def _take_lock(self, address: str) -> None:
        self._lock = open(self.data / "up.lock", "a+")  # noqa: SIM115 - held until this process ends
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            words = f"Holdfast already runs on {self.data}: {self._lock.read().strip()}. It was left alone."
            raise InstallationError(words) from None
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()}, {address}")
        self._lock.flush()

    def demo_password(self) -> str:
        return _keep(self.data / "demo-password", lambda: secrets.token_urlsafe(9))

    def variables(self, port: int, payments_port: int | None, models_port: int | None) -> dict[str, str]:
        """The environment of every child: ours, and where this installation is. The ports are the demo's, if it runs.

        What the user's own agents read, keys and addresses of providers, is left as it is.
        """
        ours = {"HOLDFAST_DATA": str(self.data), "HOLDFAST_PORT": str(port), "PYTHONUNBUFFERED": "1"}
        ours["HOLDFAST_DEMO"] = "0" if payments_port is None else "1"
        if payments_port is not None:
            ours["HOLDFAST_PAYMENTS_URL"] = f"http://127.0.0.1:{payments_port}"
        if models_port is not None:
            ours |= {model.URL: f"http://127.0.0.1:{models_port}", model.KEY: "scripted"}
        return dict(os.environ) | ours

    def manage_words(self, *words: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *words]

    def payments_words(self, port: int) -> list[str]:
        storage = str(self.data / "payments.sqlite3")
        return self.manage_words("payments", "--port", str(port), "--storage", storage)

    def models_words(self, port: int) -> list[str]:
        """The scripted model of the demo's support agent, behind a provider's protocols."""
        words = [sys.executable, "-m", "demo.providers", "--port", str(port)]
        return [*words, "--scenario", f"{model.SCRIPTED}=demo.support_model:decide"]

    def web_words(self, port: int) -> list[str]:
        words = [sys.executable, "-m", "granian", "--interface", "asginl", "--host", "127.0.0.1", "--port", str(port)]
        words += ["--no-ws", "--log-level", "warning", "--workers", "1", "--backpressure", "1024"]
        words += ["--workers-kill-timeout", "2"]  # without it open event streams keep it alive for ever
        words += ["--static-path-route", "/static", "--static-path-mount", str(self.data / "static")]
        return [*words, "config.asgi:application"]

    def prepare(self, variables: dict[str, str]) -> None:
        """Migrations, static files, roles, demo users. Raises InstallationError with what the command said."""
        words = [*tied(), *self.manage_words("prepare")]
        variables = variables | {"HOLDFAST_DEMO_PASSWORD": self.demo_password()}
        done = subprocess.run(words, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InstallationError(
                f"The database could not be prepared:\n{(done.stdout + done.stderr)[-2000:].strip()}"
            )

    def announce(self, address: str, demo: Mapping[str, str]) -> None:
        """`demo`: where its parts are, by what they are."""
        lines = [f"Holdfast runs at {address}", f"Login: olga, ada, victor or max, password {self.demo_password()}"]
        lines += ["       (olga operates, ada approves, victor views, max administers)"]
        lines += [f"Demo {what}: {where}" for what, where in demo.items()]
        lines += [f"Data and logs: {self.data}", "Ctrl-C stops everything."]
        for line in lines:
            self.show(line)


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(wanted: int) -> int:
    """`wanted` if nobody listens there, else any free one."""
    if wanted and port_is_free(wanted):
        return wanted
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _keep(file: Path, make: Callable[[], str]) -> str:
    """The text of a private file that is written once."""
    try:
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as new:
            new.write(make())
    except FileExistsError:
        pass
    return file.read_text().strip()
