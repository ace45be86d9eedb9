"""Drives `manage.py up` from outside, as a person would: its output, its pages, signals, its database."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

from config.environment import ROOT, embedded_database

UNWANTED = ("DATABASE_URL", "BROKER_URL", "HOLDFAST_DATA", "HOLDFAST_TEST_FOLDER", "DJANGO_SETTINGS_MODULE")


def soon[T](look: Callable[[], T], seconds: float = 60) -> T:
    """The first true answer of `look`; fails when there is none in time. A refused connection is no answer."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := look():
                return found
        except (OSError, psycopg.OperationalError):
            pass
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.05)


def command(*words: str, variables: Mapping[str, str] | None = None, clean: bool = True) -> dict[str, Any]:
    """Arguments for subprocess: `manage.py` with these words, in the environment of a person's shell."""
    environment = {name: value for name, value in os.environ.items() if not (clean and name in UNWANTED)}
    words = (sys.executable, str(ROOT / "manage.py"), *words)
    return {"args": words, "env": environment | dict(variables or {}), "cwd": ROOT, "text": True}


SESSION = "SELECT id FROM runs_workersession WHERE pid = %s AND ended_at IS NULL"


class Up:
    """A running `up`. Leaving the context kills what is left of it."""

    def __init__(self, data: Path, *words: str, variables: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.output = data.with_suffix(".out")
        with open(self.output, "wb") as out:
            words = ("up", "--data", str(data), "--port", "0", *words)
            self.process = subprocess.Popen(**command(*words, variables=variables), stdout=out, stderr=out)

    def __enter__(self) -> "Up":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(90)
            finally:
                self.process.kill()
                for pid in processes_of(self.data):
                    os.kill(pid, signal.SIGKILL)

    def printed(self) -> str:
        return self.output.read_text()

    def wait_until_ready(self, seconds: float = 180) -> "Up":
        def ready() -> bool:
            assert self.process.poll() is None, self.printed()
            return "Ctrl-C stops" in self.printed()

        soon(ready, seconds)
        return self

    def soon[T](self, look: Callable[[], T], seconds: float = 60) -> T:
        """As the function of this name; what `up` printed is told when there is no answer."""
        try:
            return soon(look, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said:\n{self.printed()}") from error

    @property
    def address(self) -> str:
        return re.findall(r"Holdfast runs at (\S+)", self.printed())[-1]

    def page(self, path: str) -> str:
        with urlopen(self.address + path, timeout=20) as answer:
            return str(answer.read().decode())

    def answers(self) -> bool:
        try:
            return bool(self.page("/healthz"))
        except HTTPError as error:
            raise AssertionError(error) from error
        except URLError:
            return False

    def pid_of(self, *words: str) -> int | None:
        """The child whose command line has all these words."""
        found = [pid for pid in processes_of(self.data) if all(word in words_of(pid) for word in words)]
        return min(found) if found else None

    def worker(self, name: str, other_than: int = 0) -> tuple[int, UUID]:
        """Process and open session of the worker, asked anew until both belong together: one that dies is replaced."""

        def look() -> list[tuple[int, UUID]]:
            pid = self.pid_of("worker", name)
            return [(pid, session) for (session,) in self.ask(SESSION, pid)] if pid and pid != other_than else []

        return self.soon(look)[0]

    def replaced(self, child: int, *words: str) -> int:
        """The process that came in the place of the dead `child`."""
        return self.soon(lambda: (pid := self.pid_of(*words)) != child and pid) or 0

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(make_conninfo("", **embedded_database(self.data), connect_timeout=5)) as connection:
            return connection.execute(query, values).fetchall()  # type: ignore[arg-type]


def words_of(pid: int) -> list[str]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").split()
    except OSError:
        return []
    return [part for word in words for part in (word, word.rsplit("/", 1)[-1])]


def processes_of(data: Path) -> list[int]:
    """Every process that works for this data folder, by its environment or its command line; `up` itself excepted."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _belongs(pid, data)]


def _belongs(pid: int, data: Path) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    if b"up" in words.split(b"\0") or not words:
        return False
    return f"HOLDFAST_DATA={data}".encode() in environment or f"{data}/".encode() in words
