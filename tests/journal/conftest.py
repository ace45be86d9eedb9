"""One database for all tests of the journal that need no fresh one: each makes runs of its own."""

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from journal.committer import Committer
from journal.lane import Lane
from tests.journal.projection import Projected


@pytest.fixture(scope="session")
def journal_dsn(postgres: dict[str, str], template: str, worker_id: str) -> Iterator[str]:
    name = sql.Identifier(f"journal_{worker_id}")
    with psycopg.connect(make_conninfo("", **postgres, dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(template)))
        dsn = make_conninfo("", **postgres, dbname=f"journal_{worker_id}")
        with psycopg.connect(dsn) as conn:
            conn.execute(
                "CREATE TABLE projected (run uuid PRIMARY KEY, status text, as_of_seq bigint NOT NULL DEFAULT 0)"
            )
        yield dsn
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture
def conn(journal_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(journal_dsn, autocommit=True, options="-c TimeZone=UTC") as conn:
        yield conn


@pytest.fixture
def lane(journal_dsn: str) -> Iterator[Lane]:
    lane = Lane(journal_dsn, 100, Projected(), threading.Event())
    yield lane
    lane.close()


@pytest.fixture
def committer(journal_dsn: str) -> Iterator[Committer]:
    committer = Committer(journal_dsn, Projected())
    yield committer
    committer.close()
