"""The test rig itself: databases are clones, and what a test commits is gone in the next."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from config.celery import app
from config.environment import ROOT
from tests.config.rig import processes_of, soon
from tests.rig.databases import Databases


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


DAMAGES = [
    "CREATE TABLE more (n int)",
    "ALTER TABLE runs_run DISABLE TRIGGER ALL",
    "CREATE OR REPLACE FUNCTION journal_refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE INDEX ON runs_run (reason)",
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone TO %L', current_database(), 'Asia/Kathmandu'); END $$",
    "ANALYZE runs_release",
    "UPDATE django_content_type SET model = 'other' WHERE model = 'run'",
    "SELECT nextval('auth_user_id_seq'), setval('auth_permission_id_seq', 9000)",
    "DROP TABLE auth_user_groups",
]


def test_whatever_a_test_did_to_a_database_the_next_finds_it_as_new(databases: Databases) -> None:
    for damage in DAMAGES:
        databases.renew("damaged")
        with psycopg.connect(databases.dsn("damaged"), autocommit=True) as conn:
            new = looks(conn)
            conn.execute("INSERT INTO runs_release (id, agent, version, content) VALUES ('r', 'a', '1', '{}')")
            conn.execute(damage.encode())
        databases.renew("damaged")
        with psycopg.connect(databases.dsn("damaged")) as conn:
            assert looks(conn) == new, damage


def looks(conn: psycopg.Connection[Any]) -> list[Any]:
    """What a test may notice of a database."""
    asked = (
        "SELECT relname FROM pg_class ORDER BY 1",
        "SELECT proname, md5(prosrc) FROM pg_proc WHERE oid > 16000 ORDER BY 1",
        "SELECT tgname, tgenabled FROM pg_trigger ORDER BY tgname, oid",
        "SELECT count(*) FROM runs_release",
        "SELECT current_setting('timezone')",
        "SELECT count(*) FROM pg_statistic WHERE starelid > 16000",
        "SELECT id, model FROM django_content_type ORDER BY 1",
        "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1",
    )
    return [conn.execute(query).fetchall() for query in asked]


def test_a_database_whose_rows_alone_were_changed_is_not_made_anew(databases: Databases) -> None:
    def number() -> Any:
        with psycopg.connect(databases.dsn("rows")) as conn:
            conn.execute("INSERT INTO runs_release (id, agent, version, content) VALUES ('r', 'a', '1', '{}')")
            return conn.execute("SELECT oid FROM pg_database WHERE datname = 'rows'").fetchone()

    databases.renew("rows")
    first = number()
    databases.renew("rows")
    assert number() == first


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
    # Not by -p: that would take it in before there are settings.
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    words = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), str(inner)]
    with open(tmp_path / "out", "wb") as out:
        session = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=out, stderr=out)
    soon(lambda: (tmp_path / "folder").exists() or session.poll() is not None, 90)
    assert session.poll() is None, (tmp_path / "out").read_text()
    folder = Path((tmp_path / "folder").read_text())
    assert processes_of(folder)
    session.kill()
    session.wait()
    soon(lambda: not processes_of(folder) and not folder.exists())
