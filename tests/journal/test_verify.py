"""A superuser who switches the triggers off can change anything, and is found out."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command

from journal.committer import Committer
from journal.entries import Draft
from journal.errors import NoSuchRun
from journal.payloads import PayloadStore, payload_store
from journal.verify import Fault, all_runs, verify_from_mark, verify_run
from tests.journal.cast import append, call, draft, new_run, obs, person

type Conn = psycopg.Connection[Any]


@pytest.fixture
def superuser(database: str) -> Iterator[Conn]:
    """On a database of its own, with triggers off."""
    with psycopg.connect(database, autocommit=True, options="-c session_replication_role=replica") as conn:
        yield conn


@pytest.fixture
def run(superuser: Conn, database: str) -> UUID:
    """Entries 1–3, 4–6 and 7–9 are an append each, 10 is a person's."""
    run, committer = new_run(superuser), Committer(database)
    for number in range(1, 4):
        committer.append(append(run, 1, number, 0, call(number), draft("NOTE"), obs(number, result="x" * 50)))
    committer.close()
    person(superuser, run, "r", draft("SIGNAL"))
    return run


def faults(conn: Conn, run: UUID) -> list[tuple[int, str]]:
    return [(fault.seq, fault.what.split(":")[0]) for fault in verify_run(run, conn=conn, payloads=False)]


def test_a_journal_as_written_has_no_fault(superuser: Conn, run: UUID) -> None:
    assert verify_run(run, conn=superuser, payloads=False) == []
    assert list(all_runs(superuser)) == [run]
    with pytest.raises(NoSuchRun):
        verify_run(UUID(int=7), conn=superuser)


@pytest.mark.parametrize(
    "change",
    [
        "body = set_byte(body, 3, get_byte(body, 3) # 1)",
        "salt = set_byte(salt, 0, get_byte(salt, 0) # 1)",
        "spot = '\\x00000000'",
        "kind = 'PLAN'",
        "v = 2",
        "step = 9",
        "settles = NULL",
        "epoch = 0",
        "actor = 'olga'",
        """body = '{"$":"erased"}', salt = ''""",
    ],
)
def test_a_changed_field_is_found_at_its_entry(superuser: Conn, run: UUID, change: str) -> None:
    superuser.execute(f"UPDATE journal_entry SET {change} WHERE run_id = '{run}' AND seq = 6".encode())
    assert faults(superuser, run) == [(6, "the entry was changed")]


def test_each_byte_of_a_body_counts(superuser: Conn, run: UUID) -> None:
    row = superuser.execute("SELECT length(body) FROM journal_entry WHERE run_id = %s AND seq = 3", (run,)).fetchone()
    flip = """UPDATE journal_entry SET body = set_byte(body, %(n)s, get_byte(body, %(n)s) # 1)
        WHERE run_id = %(run)s AND seq = 3"""
    assert row is not None
    for n in range(0, row[0], 7):
        superuser.execute(flip, {"n": n, "run": run})
        assert faults(superuser, run) == [(3, "the entry was changed")]
        superuser.execute(flip, {"n": n, "run": run})
    assert faults(superuser, run) == []


@pytest.mark.parametrize("seq", [1, 2, 5, 6, 7])
def test_a_missing_row_is_named(superuser: Conn, run: UUID, seq: int) -> None:
    superuser.execute("DELETE FROM journal_entry WHERE run_id = %s AND seq = %s", (run, seq))
    assert faults(superuser, run)[0] == (seq, "the entry is missing")


def test_missing_last_rows_are_named(superuser: Conn, run: UUID) -> None:
    superuser.execute("DELETE FROM journal_entry WHERE run_id = %s AND seq >= 9", (run,))
    assert faults(superuser, run) == [
        (8, "the chain is broken"), (9, "the entry is missing"), (10, "the entry is missing"),
    ]  # fmt: skip


def test_a_broken_chain_is_told_once_where_it_breaks(superuser: Conn, run: UUID) -> None:
    superuser.execute("UPDATE journal_entry SET link = sha256('') WHERE run_id = %s AND seq = 6", (run,))
    assert faults(superuser, run) == [(6, "the chain is broken")]


def test_a_changed_time_breaks_the_chain(superuser: Conn, run: UUID) -> None:
    later = "UPDATE journal_entry SET recorded_at = recorded_at + interval '1 us' WHERE run_id = %s AND seq = 6"
    superuser.execute(later, (run,))
    assert faults(superuser, run) == [(6, "the chain is broken")]


def test_a_time_unlike_its_appends_is_found(superuser: Conn, run: UUID) -> None:
    later = "UPDATE journal_entry SET recorded_at = recorded_at + interval '1 us' WHERE run_id = %s AND seq = 5"
    superuser.execute(later, (run,))
    assert faults(superuser, run) == [(5, "the entry was changed")]


def test_a_whole_append_cut_out_with_its_seqs_closed_up_breaks_the_chain(superuser: Conn, run: UUID) -> None:
    superuser.execute("DELETE FROM journal_entry WHERE run_id = %s AND seq BETWEEN 4 AND 6", (run,))
    for seq in range(7, 11):
        superuser.execute("UPDATE journal_entry SET seq = seq - 3 WHERE run_id = %s AND seq = %s", (run, seq))
    superuser.execute("UPDATE journal_head SET last_seq = 7 WHERE run_id = %s", (run,))
    assert faults(superuser, run)[0] == (6, "the chain is broken")


def test_a_head_that_does_not_match_is_told(superuser: Conn, run: UUID) -> None:
    superuser.execute("UPDATE journal_head SET last_hash = sha256('') WHERE run_id = %s", (run,))
    assert faults(superuser, run) == [(10, "the journal's head has another hash than the chain")]
    superuser.execute("UPDATE journal_head SET last_seq = 9 WHERE run_id = %s", (run,))
    assert (10, "the journal's head does not know this entry") in faults(superuser, run)
    superuser.execute("DELETE FROM journal_head WHERE run_id = %s", (run,))
    assert (0, "the journal's head is missing") in faults(superuser, run)


def test_a_missing_or_altered_payload_is_found(superuser: Conn, run: UUID, database: str, tmp_path: Path) -> None:
    store, committer = PayloadStore(tmp_path.as_uri()), Committer(database)
    body = store.offload(run, {"result": "x" * 50_000})
    committer.append(append(run, 1, 4, 10, Draft("OBS", body, 9, 9)))
    committer.close()
    assert verify_run(run, conn=superuser, store=store) == []
    (object_,) = (tmp_path / str(run)).iterdir()
    object_.write_bytes(b"y" * 50_000)
    (altered,) = verify_run(run, conn=superuser, store=store)
    object_.unlink()
    (missing,) = verify_run(run, conn=superuser, store=store)
    assert altered.seq == missing.seq == 11
    assert altered.what.startswith("A stored payload is not what was written.") and object_.name in altered.what
    assert missing.what.startswith("A stored payload is missing.") and object_.name in missing.what


def test_pages_verify_from_the_mark(superuser: Conn, run: UUID) -> None:
    mark = verify_from_mark(run, conn=superuser)
    assert (mark.seq, mark.ok) == (10, True) and mark.at is not None
    assert verify_from_mark(run, conn=superuser) == mark, "nothing new: the mark says when"
    person(superuser, run, "s", draft("NOTE"))
    later = verify_from_mark(run, conn=superuser)
    assert (later.seq, later.ok) == (11, True) and later.at is not None and later.at > mark.at
    person(superuser, run, "t", draft("NOTE"))
    superuser.execute("UPDATE journal_entry SET body = '{}x' WHERE run_id = %s AND seq = 12", (run,))
    assert verify_from_mark(run, conn=superuser)[:] == (11, later.at, False)


def test_a_held_head_only_keeps_the_mark_where_it_is(superuser: Conn, run: UUID, database: str) -> None:
    with psycopg.connect(database) as other:
        other.execute("SELECT FROM journal_head WHERE run_id = %s FOR UPDATE", (run,))
        assert verify_from_mark(run, conn=superuser)[:] == (10, None, True)


@pytest.mark.django_db(transaction=True)
def test_the_command_names_run_and_seq_on_a_line_for_each_fault(dsn: str) -> None:
    payload_store.cache_clear()
    said = StringIO()
    with psycopg.connect(dsn, autocommit=True, options="-c session_replication_role=replica") as conn:
        run, whole = new_run(conn), new_run(conn)
        for one in (run, whole):
            person(conn, one, "r", draft("START"), draft("NOTE"), draft("NOTE"))
        call_command("journal", "verify", "--all", stdout=said)
        assert said.getvalue() == "2 journals are what was written\n"
        conn.execute("UPDATE journal_entry SET body = '{ }' WHERE run_id = %s AND seq <> 2", (run,))
    for which in (["--all"], [str(run)]):
        said = StringIO()
        with pytest.raises(SystemExit) as exit:
            call_command("journal", "verify", *which, stdout=said)
        assert exit.value.code == 1
        lines = said.getvalue().splitlines()
        assert [line.split()[:2] for line in lines] == [[str(run), "1"], [str(run), "3"]]
    call_command("journal", "verify", str(whole), stdout=StringIO())
    assert dsn == settings.HOLDFAST_DSN and str(Fault(run, 7, "x")) == f"{run} 7 x"
