"""The database itself keeps entries as they were written."""

from hashlib import sha256
from typing import Any

import psycopg
import pytest

from journal.lane import Lane
from journal.models import Head, JournalEntry
from journal.read import read_entries
from journal.verify import verify_run
from tests.journal.cast import append, call, new_run, obs, send
from tests.journal.oracle import check_journal

type Conn = psycopg.Connection[Any]
PARTITIONS = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'journal_entry'::regclass"


def test_nothing_changes_removes_or_truncates_an_entry(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    send(lane, append(run, 1, 1, 0, call(1)))
    parts = [name for (name,) in conn.execute(PARTITIONS)]
    row = conn.execute("SELECT tableoid::regclass::text FROM journal_entry WHERE run_id = %s", (run,)).fetchone()
    assert row is not None and row[0] != "journal_entry_default" and row[0] in parts and len(parts) >= 15
    changes = ("UPDATE {} SET actor = 'x'", "UPDATE {} SET body = '', salt = ''", "DELETE FROM {}")
    for table in ("journal_entry", row[0]):
        for change in changes:
            with pytest.raises(psycopg.errors.RestrictViolation):
                conn.execute(f"{change.format(table)} WHERE run_id = '{run}'".encode())
    for table in ("journal_entry", *parts):
        with pytest.raises(psycopg.errors.RestrictViolation):
            conn.execute(f"TRUNCATE {table}".encode())
    check_journal(conn, run)


def test_only_the_erasing_function_turns_a_body_into_its_tombstone(conn: Conn, lane: Lane) -> None:
    run = new_run(conn)
    send(lane, append(run, 1, 1, 0, call(1), obs(1, secret="x")))
    row = conn.execute("SELECT salt, body FROM journal_entry WHERE run_id = %s AND seq = 2", (run,)).fetchone()
    assert row is not None
    digest = sha256(row[0] + row[1]).hexdigest()
    with conn.transaction(), pytest.raises(psycopg.errors.RestrictViolation), conn.transaction():
        conn.execute(
            "SELECT set_config('holdfast.erasing', %s, true)", (f"{run}:2",)
        )  # not even with the function's word
        conn.execute("UPDATE journal_entry SET body = 'other', salt = '' WHERE run_id = %s AND seq = 2", (run,))
    assert conn.execute("SELECT journal_erase_v1(%s, 2), journal_erase_v1(%s, 2)", (run, run)).fetchone() == (
        True,
        False,
    )
    assert [e.body for e in read_entries(conn, run)] == [{"tool": "refund"}, {"$": "erased", "digest": digest}]
    assert verify_run(run, conn=conn) == []
    assert send(lane, append(run, 1, 2, 2, call(2))) == [("written", 3, 3)]
    assert verify_run(run, conn=conn) == []


@pytest.mark.django_db
def test_the_models_read_and_refuse_to_write() -> None:
    assert list(Head.objects.all()) == list(JournalEntry.objects.filter(kind="START")) == []
    for write in (
        lambda: JournalEntry.objects.create(),
        lambda: JournalEntry.objects.update(kind="x"),
        lambda: JournalEntry.objects.all().delete(),
        lambda: Head().save(),
        lambda: Head().delete(),
    ):
        with pytest.raises(TypeError, match="journal"):
            write()
