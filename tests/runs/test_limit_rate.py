"""Rates: never more than so many sends in any so many seconds, whoever sends; who waits holds no worker."""

import time
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal import crash
from runs.commands import cancel_run
from runs.limits import Rate
from runs.models import Permit, Run
from runs.registry import agents, announce
from tests.rig.crew import CrashHere, Crew, start, state


@pytest.fixture
def crew(crew: Crew, settings: Any) -> Crew:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited",)
    agents.cache_clear()
    announce()
    return crew


@given(st.integers(1, 10_000), st.floats(0.01, 1e6))
def test_a_fast_rate_is_counted_over_a_shorter_time_and_is_never_more(calls: int, per: float) -> None:
    counted, seconds = Rate(calls, per).counted
    assert 1 <= counted <= 100
    assert counted / seconds == pytest.approx(calls / per)
    windows = -(-per // seconds)  # so many of the shorter cover the longer
    assert counted * windows <= calls + counted


def test_sends_keep_their_distance_in_every_window(crew: Crew) -> None:
    runs = [start("rated") for _ in range(8)]
    ended = [crew.drive(run_id, seconds=30) for run_id in runs]
    assert {run.status for run in ended} == {"done"}
    sent = sorted(slot.attempts[-1].at.timestamp() for slot in (state(run_id).slots[1] for run_id in runs))
    for first, fourth in zip(sent, sent[3:], strict=False):
        assert fourth - first >= 1.4, "at most 3 in any 1.5 s (less what lies between asking and sending)"
    assert sent[-1] - sent[0] < 60, "and it goes on"


def test_who_must_wait_says_until_when_and_each_has_a_time_of_its_own(crew: Crew) -> None:
    assert crew.advance(start("seldom", {"city": "Rome"})).status == "done"
    first, second = (crew.advance(start("seldom", {"city": "Rome"})) for _ in range(2))
    assert first.status == "waiting" and first.session_id is None
    assert first.reason.startswith("look_seldom is limited to 1 in 600 s for city Rome; its turn comes again at ")
    assert first.wake_at is not None and second.wake_at is not None
    assert 500 < first.wake_at.timestamp() - time.time() <= 600
    assert (second.wake_at - first.wake_at).total_seconds() == pytest.approx(600, abs=1)
    assert crew.advance(start("seldom", {"city": "Oslo"})).status == "done", "another value, another count"


def test_a_newcomer_does_not_overtake_who_waits(crew: Crew) -> None:
    crew.advance(start("seldom", {"city": "Rome"}))
    waits = crew.advance(start("seldom", {"city": "Rome"}))
    with psycopg.connect(crew.dsn, autocommit=True) as conn:  # the window is over, and its turn has just come
        conn.execute("UPDATE runs_throttle SET sent = '{}' WHERE scope = 'rate:look_seldom'")
        now = "extract(epoch FROM clock_timestamp())"
        conn.execute(f"UPDATE runs_permit SET not_before = {now} - 0.1 WHERE run_id = %s", (waits.id,))
    late = crew.advance(start("seldom", {"city": "Rome"}))
    assert late.status == "waiting", "the one slot is his who came first"
    Run.objects.filter(id=waits.id).update(wake_at=waits.since)
    assert crew.advance(waits.id).status == "done"


def test_a_crash_before_the_send_wastes_one_at_most(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, worker = start("rated"), crew.hire()

    def die(point: str) -> None:
        if point == "after-permit":
            raise CrashHere

    monkeypatch.setattr(crash, "hook", die)
    with pytest.raises(CrashHere):
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    monkeypatch.setattr(crash, "hook", None)
    crew.lose(worker)
    assert counted(crew) == 1
    assert crew.drive(run_id).status == "done"
    assert counted(crew) == 2
    assert not Permit.objects.exists()


def counted(crew: Crew) -> int:
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        row = conn.execute("SELECT cardinality(sent) FROM runs_throttle WHERE scope = 'rate:look_rated'").fetchone()
    assert row is not None
    return int(row[0])


def test_what_gives_up_its_turn_leaves_it_to_others(crew: Crew) -> None:
    crew.advance(start("seldom", {"city": "Rome"}))
    waits = [crew.advance(start("seldom", {"city": "Rome"})).id for _ in range(3)]
    for run_id in waits[1:]:
        give_up(crew, run_id)
    fresh = crew.advance(start("seldom", {"city": "Rome"}))
    first = Run.objects.get(id=waits[0])
    assert fresh.wake_at is not None and first.wake_at is not None
    assert (fresh.wake_at - first.wake_at).total_seconds() == pytest.approx(600, abs=1)


def give_up(crew: Crew, run_id: UUID) -> None:
    cancel_run(run_id=run_id, reason="not needed", actor="olga")
    assert crew.drive(run_id).status == "cancelled"
