from typing import Any
from uuid import UUID

import psycopg
import pytest

from journal.partitions import ensure_partitions, missing_partitions, partition_faults
from tests.journal.cast import draft, new_run, person

type Conn = psycopg.Connection[Any]
LAST = """SELECT max(inhrelid::regclass::text) FROM pg_inherits
    WHERE inhparent = 'journal_entry'::regclass AND inhrelid::regclass::text <> 'journal_entry_default'"""
PLAIN = """CREATE TABLE nope PARTITION OF journal_entry
    FOR VALUES FROM ('ff000000-0000-0000-0000-000000000000') TO (MAXVALUE)"""


def test_a_fresh_database_has_last_month_to_a_year_ahead_and_an_empty_default(conn: Conn) -> None:
    assert missing_partitions(conn) == [] == partition_faults(conn)


def test_a_missing_month_is_named_and_made(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        name = conn.execute(LAST).fetchone()
        assert name is not None
        conn.execute(f"DROP TABLE {name[0]}".encode())
        assert partition_faults(conn) == [f"journal_entry has no partition for {name[0][-7:].replace('_', '-')}"]
        assert ensure_partitions(conn) == [name[0]]
        assert partition_faults(conn) == []
        with pytest.raises(psycopg.errors.RestrictViolation):
            conn.execute(f"TRUNCATE {name[0]}".encode())


def test_rows_in_the_default_partition_are_told(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        run = UUID("0f93a000-0000-7000-8000-0000000000ff")  # some centuries ahead
        conn.execute("INSERT INTO journal_head (run_id) VALUES (%s)", (run,))
        assert person(conn, run, "r", draft("NOTE")) == ("written", 1, 1)
        assert partition_faults(conn) == ["journal_entry_default holds rows: partitions of their months cannot be made"]


def test_a_partition_is_made_while_appends_are_open(conn: Conn, journal_dsn: str) -> None:
    run = new_run(conn)
    with psycopg.connect(journal_dsn) as other:
        person(other, run, "r", draft("NOTE"))  # holds ROW EXCLUSIVE on parent and partition
        conn.execute("SET lock_timeout = 500")
        conn.execute("SELECT journal_make_partition(date '2031-01-01' + (random() * 3000)::int)")
        with pytest.raises(
            psycopg.errors.LockNotAvailable
        ):  # the plain way would wait, and all later appends behind it
            conn.execute(PLAIN)
