"""What arrives of an answer is told beside the journal, now and then, and removed behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from runs.loops.under_way import HELD_BACK, MOST, Teller, answer_under_way, clear, clear_stale, tell


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


def shown(conn: psycopg.Connection[Any], run_id: UUID, attempt: int) -> tuple[str, str] | None:
    found = answer_under_way(conn.cursor(), run_id, attempt)
    return None if found is None else (found.text, found.thinking)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_belongs_to_another_attempt_is_not_shown(conn: psycopg.Connection[Any]) -> None:
    run = uuid4()
    tell(conn, run, 1, 4, "Let me", "hm")
    tell(conn, run, 1, 4, "Let me look", "hm")
    assert shown(conn, run, 4) == ("Let me look", "hm")
    assert shown(conn, run, 6) is None


def test_a_lost_workers_word_does_not_cover_its_successors(conn: psycopg.Connection[Any]) -> None:
    run = uuid4()
    tell(conn, run, 2, 6, "new", "")
    tell(conn, run, 1, 4, "old", "")
    assert shown(conn, run, 6) == ("new", "")


def test_only_the_end_of_a_long_answer_is_kept_and_no_character_is_refused(conn: psycopg.Connection[Any]) -> None:
    run = uuid4()
    tell(conn, run, 1, 4, "x" * MOST + "end", "a\0b\ud800")
    found = shown(conn, run, 4)
    assert found is not None and len(found[0]) == MOST and found[0].endswith("end") and found[1] == "a\u2400b?"


def test_what_is_redacted_is_struck_and_a_secret_that_came_by_half_is_not_told(
    conn: psycopg.Connection[Any], settings: Any
) -> None:
    settings.HOLDFAST_REDACT = r"sk-\w{8}"
    run = uuid4()
    tell(conn, run, 1, 4, "the key is sk-12345678 and " + "y" * HELD_BACK + "sk-1234", "sk-12")
    found = shown(conn, run, 4)
    assert found is not None and found[0].startswith("the key is [secret] and ") and "sk-" not in "".join(found)


def test_clearing_leaves_a_later_attempt_alone(conn: psycopg.Connection[Any]) -> None:
    run = uuid4()
    tell(conn, run, 1, 8, "later", "")
    clear(conn, run, 4)
    assert shown(conn, run, 8) == ("later", "")
    clear(conn, run, 8)
    assert shown(conn, run, 8) is None


def test_what_a_dead_worker_left_is_removed_in_time(conn: psycopg.Connection[Any]) -> None:
    run, fresh = uuid4(), uuid4()
    tell(conn, run, 1, 4, "old", "")
    tell(conn, fresh, 1, 4, "new", "")
    conn.execute("UPDATE runs_answer_under_way SET updated_at = now() - interval '2 hours' WHERE run_id = %s", (run,))
    clear_stale(conn)
    assert shown(conn, run, 4) is None and shown(conn, fresh, 4) == ("new", "")


def test_a_process_writes_now_and_then_and_removes_what_is_over(dsn: str, conn: psycopg.Connection[Any]) -> None:
    touched: list[UUID] = []

    @contextmanager
    def borrow() -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(dsn, autocommit=True) as own:
            yield own

    teller, run, other = Teller(borrow, touched.append, period=0.05), uuid4(), uuid4()
    for n in range(200):
        teller.hear(run, 1, 4, "x" * n, "")
    eventually(lambda: shown(conn, run, 4) == ("x" * 199, ""))
    assert 0 < touched.count(run) < 20
    teller.over(run)
    eventually(lambda: shown(conn, run, 4) is None)
    teller.hear(other, 1, 4, "left", "")
    eventually(lambda: shown(conn, other, 4) is not None)
    teller.close()
    assert shown(conn, other, 4) is None
    teller.hear(other, 1, 4, "too late", "")


def test_a_database_that_is_away_costs_no_more_than_what_was_told(conn: psycopg.Connection[Any]) -> None:
    asked: list[int] = []

    @contextmanager
    def away() -> Iterator[psycopg.Connection[Any]]:
        asked.append(1)
        raise psycopg.OperationalError("away")
        yield conn

    teller = Teller(away, lambda run_id: None, period=0.01)
    teller.hear(uuid4(), 1, 4, "x", "")
    eventually(lambda: bool(asked))
    teller.hear(uuid4(), 1, 4, "x", "")
    eventually(lambda: len(asked) > 1)
    teller.close()
