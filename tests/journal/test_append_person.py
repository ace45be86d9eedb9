"""People's appends: on a psycopg connection, and on Django's inside the caller's transaction."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction

from journal.append import append_person, create_head, lock_head, new_run_id, raise_epoch
from journal.entries import Draft
from journal.errors import NoSuchRun
from journal.read import read_entries, read_head
from tests.journal.cast import draft, new_run, obs, person
from tests.journal.oracle import check_journal


def test_asking_twice_is_written_once(conn: psycopg.Connection[Any]) -> None:
    run = new_run(conn)
    assert person(conn, run, "same", draft("RECONCILE"), draft("NOTE")) == ("written", 1, 2)
    assert person(conn, run, "same", draft("RECONCILE"), draft("NOTE")) == ("already", 1, 2)
    assert person(conn, run, "other", obs(1)) == ("written", 3, 3)
    assert person(conn, run, "third", obs(1)) == ("settled", None, None)
    check_journal(conn, run)


@pytest.mark.django_db
def test_a_run_is_begun_with_its_first_entry_in_one_transaction() -> None:
    with transaction.atomic():
        run = new_run_id()
        create_head(run)
        answer = append_person(run, [Draft("START", {"input": {"a": 1}})], request_id=None, actor="olga")
        raise_epoch(run)
        head = lock_head(run)
    assert answer[:4] == (run, "written", 1, 1)
    assert (head.epoch, head.last_seq, head.last_steering_seq, head.last_recorded_at) == (1, 1, 0, answer.recorded_at)
    (entry,) = read_entries(connection, run)
    assert (entry.kind, entry.seq, entry.actor, entry.epoch, entry.body) == ("START", 1, "olga", 0, {"input": {"a": 1}})
    assert read_head(connection, run) == head


@pytest.mark.django_db
def test_the_actor_is_the_person_unless_the_entry_names_another() -> None:
    create_head(run := new_run_id())
    drafts = [Draft("RECONCILE", {}), Draft("OBS", {}, 1, 1, actor="system")]
    append_person(run, drafts, request_id=None, actor="ada")
    assert [entry.actor for entry in read_entries(None, run)] == ["ada", "system"]


@pytest.mark.django_db
def test_a_run_that_is_not_there_is_said_so() -> None:
    nobody = UUID(int=7)
    for ask in (lock_head, raise_epoch, lambda run: append_person(run, [draft("NOTE")], request_id=None, actor="olga")):
        with transaction.atomic(), pytest.raises(NoSuchRun, match=r"There is no run with this id\. 0000"):
            ask(nobody)


def test_a_rollback_leaves_nothing(conn: psycopg.Connection[Any], journal_dsn: str) -> None:
    run = new_run(conn)
    with psycopg.connect(journal_dsn) as other:
        person(other, run, "r", draft("NOTE"))
        other.rollback()
    assert person(conn, run, "r", draft("NOTE")) == ("written", 1, 1)
    check_journal(conn, run)
