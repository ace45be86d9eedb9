"""The machine under test: one PostgreSQL with everything on that makes it durable, one broker, one folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.tools import LINES
from config.children import tied
from config.embedded import valkey
from config.embedded.postgres import Postgres
from config.environment import ROOT

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "300",
           "max_wal_size": "4GB"}  # fmt: skip


NOTHING: Mapping[str, str] = {}


class SideFailed(Exception):
    """A process of the benchmark failed; the words are its last ones."""


@dataclass(slots=True)
class World:
    """`env`: the variables of every process of ours in this folder."""

    home: Path
    postgres: Postgres
    env: dict[str, str]

    def dsn(self, database: str = "holdfast") -> str:
        return f"host={self.postgres.socket} user=holdfast dbname={database}"

    @property
    def dbos_url(self) -> str:
        return f"postgresql://holdfast@/dbos?host={self.postgres.socket}"

    def lines(self, name: str) -> Path:
        """A new, empty file for the tools' lines."""
        path = self.home / f"{name}.lines"
        path.unlink(missing_ok=True)
        return path

    def start(
        self, *words: str, lines: Path | None = None, env: Mapping[str, str] = NOTHING, stdin: int | None = None
    ) -> subprocess.Popen[str]:
        """A Python process of the benchmark, which is gone when this one is."""
        whole = self.env | dict(env) | ({LINES: str(lines)} if lines else {})
        log = open(self.home / "side.log", "a")  # noqa: SIM115 - the child's
        with log:
            return subprocess.Popen(
                [*tied(signal.SIGKILL), sys.executable, *words],
                cwd=ROOT, env=whole, stdin=stdin, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def measure(self, *words: str, lines: Path | None = None, env: Mapping[str, str] = NOTHING) -> dict[str, Any]:
        """What the process prints on its last line, as JSON."""
        side = self.start(*words, lines=lines, env=env)
        out, _ = side.communicate(timeout=600)
        if side.returncode != 0:
            said = (self.home / "side.log").read_text()[-3000:]
            raise SideFailed(f"{' '.join(words)}: exit {side.returncode}\n{said}")
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found


@contextmanager
def world() -> Iterator[World]:
    """Both servers up, Holdfast's tables and DBOS's database made; all of it gone at the end."""
    home = Path(tempfile.mkdtemp(prefix="hfb-"))
    postgres = Postgres(home / "pg", DURABLE, tied(signal.SIGINT))
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("HOLDFAST_") and name not in ("DATABASE_URL", "BROKER_URL")}  # fmt: skip
    env |= {"HOLDFAST_DATA": str(home), "HOLDFAST_DEMO": "0", "HOLDFAST_AGENTS": "bench.agents", "SECRET_KEY": "bench",
            "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONUNBUFFERED": "1"}  # fmt: skip
    server = postgres.start()
    broker = valkey.start(home / "broker", tied(signal.SIGKILL))
    try:
        made = World(home, postgres, env)
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
        with psycopg.connect(made.dsn("postgres"), autocommit=True) as conn:
            conn.execute("CREATE EXTENSION pg_walinspect")
            conn.execute("CREATE DATABASE dbos")
        yield made
    finally:
        broker.kill()
        broker.wait()
        postgres.stop()
        server.wait()
        shutil.rmtree(home, ignore_errors=True)
