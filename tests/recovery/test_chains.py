"""Journals are verified in the background: the one not looked at for longest first, at a bounded cost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import connection

from journal.models import BrokenChain, Head
from recovery import chains
from recovery.chains import Verifying
from recovery.sweep import Sweep
from tests.pages.journals import Story, tampered

pytestmark = pytest.mark.usefixtures("dsn")


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[object]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


def marks() -> dict[object, tuple[int, datetime | None]]:
    return {row[0]: (row[1], row[2]) for row in Head.objects.values_list("run_id", "verified_seq", "verified_at")}


def test_what_was_never_verified_comes_first_and_is_marked(conn: psycopg.Connection[object]) -> None:
    stories = [Story(), Story()]
    stories[0].call(order_id="o-1")
    assert Verifying().once(conn) == []
    assert [marks()[story.run.id][0] for story in stories] == [2, 1]
    assert all(at is not None for _, at in marks().values())


def test_one_that_was_verified_long_ago_is_verified_again_from_its_beginning(conn: psycopg.Connection[object]) -> None:
    story = Story()
    seq = story.call(order_id="o-1")
    Verifying().once(conn)
    tampered(story, seq)
    assert Verifying().once(conn) == []  # looked at a moment ago
    long_ago(story)
    (fault,) = Verifying().once(conn)
    assert (fault.run_id, fault.seq) == (story.run.id, seq)
    assert BrokenChain.objects.get().seq == seq


def test_a_journal_that_is_whole_again_is_no_longer_kept_as_broken(conn: psycopg.Connection[object]) -> None:
    story = Story()
    BrokenChain.objects.create(run_id=story.run.id, seq=1, what="the entry was changed")
    Verifying().once(conn)
    assert not BrokenChain.objects.exists()


def test_a_long_journal_is_read_from_where_it_was_verified_to(
    conn: psycopg.Connection[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story()
    seq = story.call(order_id="o-1")
    Verifying().once(conn)
    monkeypatch.setattr(chains, "WHOLE", 1)
    tampered(story, seq)
    story.result({"id": 1})
    long_ago(story)
    before = datetime.now(UTC)
    assert Verifying().once(conn) == []
    verified, at = marks()[story.run.id]
    assert verified == 3 and at is not None and at >= before - timedelta(seconds=5)


def test_a_round_rests_in_proportion_to_what_it_took(conn: psycopg.Connection[object]) -> None:
    verifying = Verifying()
    Story()
    verifying.once(conn)
    late = Story()
    verifying.once(conn)
    assert marks()[late.run.id][1] is None


def test_two_sweepers_do_not_verify_at_once(conn: psycopg.Connection[object], dsn: str) -> None:
    story = Story()
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (chains.LOCK,))
        Verifying().once(conn)
    assert marks()[story.run.id][1] is None


def long_ago(story: Story) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE journal_head SET verified_at = now() - interval '1 day' WHERE run_id = %s", [story.run.id]
        )


def test_each_round_of_the_sweep_verifies_some(dsn: str) -> None:
    story = Story()
    sweep = Sweep(dsn, lease=3600.0, every=0.05, dispatch=lambda run_id, release_id: True)
    sweep.once()
    sweep.close()
    assert marks()[story.run.id][0] == 1
