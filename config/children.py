"""Processes that `up` keeps alive."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

SETTLED_SECONDS = 20  # a child that lived so long starts anew at once; one that keeps dying waits longer each time
LONGEST_PAUSE = 5.0
LARGEST_LOG = 20 * 2**20

Process = subprocess.Popen[bytes]


def tied(how: signal.Signals = signal.SIGTERM) -> tuple[str, ...]:
    """Words before a command that make it receive `how` when the process that starts it is gone, were it by SIGKILL."""
    return ("setpriv", "--pdeathsig", how.name.removeprefix("SIG"), "--") if shutil.which("setpriv") else ()


def spawn(words: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path) -> Process:
    """Starts a command in a process group of its own, out of reach of the terminal's Ctrl-C, writing to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_suffix(".old"))
    with open(log, "ab") as out:
        return subprocess.Popen(
            [*tied(), *words],
            env=dict(environment), cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip


@dataclass(slots=True)
class Child:
    """One process and when to start it again. `launch` may raise; that counts as a death."""

    name: str
    launch: Callable[[], Process]
    process: Process | None = None
    due: float = 0.0
    _born: float = 0.0
    _deaths: int = 0

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def start(self) -> None:
        self._born = time.monotonic()
        try:
            self.process = self.launch()
        except BaseException:
            self._count_death()
            raise

    def reap(self) -> int | None:
        """The exit code if the process has ended since the last look, else None. What it left running is killed."""
        if self.process is None or (code := self.process.poll()) is None:
            return None
        self.kill_group()
        self.process = None
        self._count_death()
        return code

    def send(self, how: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)

    def kill_group(self) -> None:
        """SIGKILL to the process and its descendants that stayed in its group, such as granian's workers."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass

    def _count_death(self) -> None:
        now = time.monotonic()
        self._deaths = 1 if now - self._born > SETTLED_SECONDS else self._deaths + 1
        self.due = now + (0.0 if self._deaths == 1 else min(0.25 * 2**self._deaths, LONGEST_PAUSE))


@dataclass(slots=True)
class WorkerChild(Child):
    """A worker process: each life of it is a new session, whose id we mint so that we can end it."""

    session: UUID | None = None

    def new_session(self) -> UUID:
        self.session = uuid4()
        return self.session


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"left with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def last_line(log: Path) -> str:
    """The last words of a log, for whoever looks at the terminal only."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    said = [line for line in lines if line and not line.startswith("HINT:")]  # a check's hint says less than its fault
    return said[-1][:500] if said else ""
