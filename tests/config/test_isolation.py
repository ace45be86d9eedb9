"""The test rig itself: databases are clones, and what a test commits is gone in the next."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from config.celery import app
from config.environment import ROOT
from tests.config.rig import processes_of, soon


@pytest.mark.parametrize("turn", [1, 2])
def test_what_a_test_commits_is_gone_in_the_next(dsn: str, turn: int) -> None:
    assert User.objects.count() == 0
    User.objects.create(username="olga")
    with psycopg.connect(dsn) as other:
        assert other.execute("SELECT username FROM auth_user").fetchall() == [("olga",)]


@pytest.mark.django_db
def test_an_ordinary_test_is_rolled_back() -> None:
    assert User.objects.count() == 0
    User.objects.create(username="ada")


@pytest.mark.parametrize("turn", [1, 2])
def test_a_database_of_its_own_is_empty_and_apart(database: str, turn: int) -> None:
    with psycopg.connect(database) as own:
        assert own.execute("SELECT count(*) FROM auth_user").fetchall() == [(0,)]
        own.execute("INSERT INTO auth_group (name) VALUES ('x')")


def test_the_server_is_postgresql_18_on_a_socket(dsn: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int, current_setting('listen_addresses')")
        version, addresses = cursor.fetchone()
    assert version >= 180000 and addresses == ""


@pytest.mark.parametrize("turn", [1, 2])
def test_the_broker_is_empty_at_the_start_of_each_test(embedded_broker: str, turn: int) -> None:
    with app.connection_for_write() as broker:
        assert broker.default_channel.client.dbsize() == 0
    app.send_task("nothing", queue="somewhere")
    with app.connection_for_write() as broker:
        assert broker.default_channel.client.llen("somewhere") == 1


def test_the_servers_end_with_a_killed_test_session(tmp_path: Path) -> None:
    inner = tmp_path / "test_inner.py"
    inner.write_text(
        "import os, pathlib, time\n"
        "def test_inner(dsn, embedded_broker):\n"
        f"    pathlib.Path({str(tmp_path / 'folder')!r}).write_text(os.environ['HOLDFAST_TEST_FOLDER'])\n"
        "    time.sleep(600)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "tests.conftest",
        str(inner),
    ]
    with open(tmp_path / "out", "wb") as out:
        session = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=out, stderr=out)
    soon(lambda: (tmp_path / "folder").exists() or session.poll() is not None, 90)
    assert session.poll() is None, (tmp_path / "out").read_text()
    folder = Path((tmp_path / "folder").read_text())
    assert processes_of(folder)
    session.kill()
    session.wait()
    soon(lambda: not processes_of(folder) and not folder.exists())
