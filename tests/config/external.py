"""PostgreSQL and Redis as an operator would have installed them: Debian's, on TCP ports, with passwords."""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from config.children import tied
from config.embedded.postgres import NAMESPACE
from config.installation import free_port
from tests.config.rig import soon


def missing(kind: str, what: str) -> None:
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
        server.wait(20)


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
        server.wait(20)
