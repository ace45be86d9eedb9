"""One embedded PostgreSQL and one broker for a whole test session, shared by its xdist workers.

Migrations run once, into a template; every xdist worker's database is a clone of it, made as new after every test that
commits (tests/rig/databases.py). A watcher ends the servers when the session's
first process is gone, however it went.
"""

import fcntl
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import kombu.pools
import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase
from psycopg.conninfo import make_conninfo

from config.celery import app
from config.embedded import valkey
from config.embedded.postgres import Postgres
from tests.rig.chromium import started_chromium as started_chromium
from tests.rig.databases import Databases
from tests.rig.fixtures import payments as payments
from tests.rig.fleet import nursery as nursery
from tests.rig.providers import providers as providers

FOLDER = "HOLDFAST_TEST_FOLDER"
TEMPLATE = "holdfast_template"
FORGETFUL = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200",
    "autovacuum": "off",  # no database lives so long
    "wal_level": "minimal", "max_wal_senders": "0", "io_method": "sync",
}  # fmt: skip
# Waits until the session's first process lets go of the pipe, then ends whatever servers lie in the folder.
WATCHER = """
cat >/dev/null
for pid in $(head -qn1 "$0"/pg/data/postmaster.pid 2>/dev/null); do kill -QUIT "$pid"; done
for pid in $(cat "$0"/broker/pid 2>/dev/null); do kill -KILL "$pid"; done
sleep 0.3; rm -rf "$0"
"""
_watchers: list[subprocess.Popen[bytes]] = []


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it to what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="hft-")
        os.environ[FOLDER] = folder
        _watchers.append(subprocess.Popen(["sh", "-c", WATCHER, folder], stdin=subprocess.PIPE, start_new_session=True))
    folder = os.environ[FOLDER]
    os.environ["HOLDFAST_DATA"] = f"{folder}/var-{_worker()}"
    settings.HOLDFAST_DATA = Path(os.environ["HOLDFAST_DATA"])
    settings.HOLDFAST_DATA.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["HOLDFAST_ALLOW_NO_FSYNC"] = "tests"
    settings.HOLDFAST_ALLOW_NO_FSYNC = True
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the real one is slow on purpose
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    # A developer's broker is never touched: messages go nowhere unless a test asks for `embedded_broker`.
    app.conf.broker_url = settings.CELERY_BROKER_URL = "memory://"
    os.environ["BROKER_URL"] = f"redis+socket://{folder}/no-broker.sock"


# Seconds of the files that a count of tests would tell wrongly.
HEAVY = {
    "crash/test_matrix_of_waits.py": 200, "api/test_fuzz.py": 100, "faults/test_connections.py": 100,
    "crash/test_matrix_in_process.py": 90, "machine/test_machine.py": 80, "pages/test_everywhere.py": 180,
    "integrations/test_journaled_wire.py": 55, "integrations/test_journaled_kills.py": 40,
    "integrations/test_journaled.py": 28, "faults/test_scale.py": 100, "testing/test_reload.py": 50,
    "crash/test_matrix_of_approvals.py": 120,
    "crash/test_matrix_of_models.py": 90, "crash/test_model_kills.py": 70, "recovery/test_chaos_of_models.py": 60,
}  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files that take long come first, for xdist to give out: then its workers end together."""
    weights: dict[Path, float] = {}
    for item in items:
        weight = 5.0 if item.get_closest_marker("slow") else 0.4
        weights[item.path] = weights.get(item.path, 0.0) + weight
    for name, seconds in HEAVY.items():
        weights[config.rootpath / "tests" / name] = seconds
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (-weights[item.path], str(item.path)))


def pytest_unconfigure(config: pytest.Config) -> None:
    for watcher in _watchers:
        assert watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait(10)


def _worker() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "main")


@contextmanager
def _one_at_a_time() -> Iterator[Path]:
    folder = Path(os.environ[FOLDER])
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture(scope="session")
def postgres() -> dict[str, str]:
    """libpq parameters of the session's server, without a database name."""
    with _one_at_a_time() as folder:
        server = Postgres(folder / "pg", FORGETFUL)
        if server.pid() is None:
            _left_to_watcher(server.start())
    return {"host": str(server.socket), "user": "holdfast"}


@pytest.fixture(scope="session")
def template(postgres: dict[str, str], django_db_blocker: Any) -> str:
    """The name of a database with this version's tables and nothing else in them."""
    with _one_at_a_time() as folder, django_db_blocker.unblock():
        if not (folder / "migrated").exists():
            with psycopg.connect(make_conninfo("", **postgres, dbname="postgres"), autocommit=True) as admin:
                admin.execute(f"CREATE DATABASE {TEMPLATE}".encode())
            _point_django_at(postgres, TEMPLATE)
            call_command("migrate", verbosity=0, interactive=False)
            connection.close()
            (folder / "migrated").touch()
    return TEMPLATE


@pytest.fixture(scope="session")
def databases(postgres: dict[str, str], template: str) -> Databases:
    return Databases(postgres, template)


@pytest.fixture(scope="session")
def django_db_setup(postgres: dict[str, str], databases: Databases) -> None:
    """pytest-django's own name: makes this xdist worker's database."""
    name = f"holdfast_{_worker()}"
    databases.renew(name)
    _point_django_at(postgres, name)

    def renew(self: TransactionTestCase) -> None:
        connection.close()
        databases.renew(name)

    TransactionTestCase._fixture_teardown = renew  # type: ignore[method-assign]


@pytest.fixture
def dsn(transactional_db: None) -> str:
    """Connection string of the database that Django uses in this test, which is as new after it."""
    return str(settings.HOLDFAST_DSN)


@pytest.fixture
def database(databases: Databases) -> str:
    """Connection string of a database that is this test's alone, apart from Django's."""
    name = f"own_{_worker()}"
    databases.renew(name)
    return databases.dsn(name)


@pytest.fixture(scope="session")
def broker_folder() -> Path:
    """Where the session's broker lives."""
    with _one_at_a_time() as folder:
        home = folder / "broker"
        if not (home / "pid").exists():
            server = valkey.start(home)
            (home / "pid").write_text(str(server.pid))
            _left_to_watcher(server)
    return home


@pytest.fixture
def embedded_broker(broker_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty broker, this xdist worker's own; Celery's app and child processes use it too."""
    number = int(_worker().removeprefix("gw")) + 1 if _worker() != "main" else 0
    url = f"redis+socket://{quote(str(valkey.socket_path(broker_folder)))}?virtual_host={number}"
    monkeypatch.setenv("BROKER_URL", url)
    monkeypatch.setattr(settings, "CELERY_BROKER_URL", url)
    monkeypatch.setattr(app.conf, "broker_url", url)
    forget_broker_connections()
    with app.connection_for_write() as broker:
        broker.default_channel.client.flushdb()
    yield url
    forget_broker_connections()


def forget_broker_connections() -> None:
    kombu.pools.reset()
    app._pool = None
    app.amqp._producer_pool = None


def _point_django_at(server: dict[str, str], name: str) -> None:
    connection.close()
    place = {"HOST": server["host"], "USER": server["user"], "NAME": name, "PASSWORD": "", "PORT": ""}
    connection.settings_dict.update(place)
    settings.DATABASES["default"].update(place)
    settings.HOLDFAST_DSN = os.environ["DATABASE_URL"] = make_conninfo("", **server, dbname=name)


def _left_to_watcher(server: subprocess.Popen[bytes]) -> None:
    """Says that nobody will wait for `server`, so that Popen does not warn about it."""
    server.returncode = 0
