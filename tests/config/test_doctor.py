"""`manage.py doctor`: prints where the database is, and names what must be put right."""

from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command

from config.doctor import database_url


def looked() -> str:
    out = StringIO()
    try:
        call_command("doctor", stdout=out)
    except CommandError as error:
        out.write(str(error))
    return out.getvalue()


def test_it_prints_a_database_url_that_leads_to_the_database(dsn: str) -> None:
    url = looked().split("database: ")[1].split()[0]
    with psycopg.connect(url) as given, psycopg.connect(dsn) as own:
        query = "SELECT current_database()"
        assert given.execute(query).fetchone() == own.execute(query).fetchone()


def test_a_database_that_forgets_is_a_fault(dsn: str) -> None:
    assert "FAULT  durability: fsync is off" in looked()


def test_missing_partitions_are_named(dsn: str) -> None:
    assert "ok     partitions:" in looked()
    with psycopg.connect(dsn) as connection:
        (name,) = connection.execute(
            "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'journal_entry'::regclass"
            " AND inhrelid::regclass::text <> 'journal_entry_default'"
        ).fetchone() or ("",)
        connection.execute(f"DROP TABLE {name}")  # type: ignore[arg-type]
    assert "FAULT  partitions: journal_entry has no partition for" in looked()


def test_a_broker_that_is_away_is_a_fault(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from config.celery import app

    monkeypatch.setattr(app.conf, "broker_url", "redis+socket:///nowhere/valkey.sock")
    assert "FAULT  broker: does not answer" in looked()


@pytest.mark.parametrize(
    ("conninfo", "url"),
    [
        ("host=/tmp/x user=holdfast dbname=holdfast", "postgresql://holdfast@/holdfast?host=/tmp/x"),
        ("host=db user=o password='p w@' dbname=d port=6432", "postgresql://o:********@db:6432/d"),
        ("host=db dbname=d sslmode=require", "postgresql://db/d?sslmode=require"),
    ],
)
def test_the_url_keeps_every_part_but_the_password(settings, conninfo: str, url: str) -> None:  # type: ignore[no-untyped-def]
    settings.HOLDFAST_DSN = conninfo
    assert database_url() == url
