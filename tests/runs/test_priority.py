"""Priorities: a worker that is asked for a run first drives a more urgent one of the same release."""

from typing import Any

import psycopg
import pytest

from runs.models import Run
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger


def test_the_more_urgent_run_goes_first_and_the_asked_one_is_sent_again(crew: Crew, ledger: Ledger) -> None:
    low, high, middle = (start("keyed", {}, priority=priority) for priority in (0, 9, 5))
    release_id = Run.objects.get(id=low).release_id
    worker = crew.hire()
    ended = []
    for _ in range(3):
        assert worker.advance(low, release_id) is not None
        ended += [run.id for run in Run.objects.filter(status="done") if run.id not in ended]
    assert ended == [high, middle, low]
    assert list(crew.messages) == [(low, release_id), (low, release_id)]


def test_a_run_of_another_release_is_not_asked_for(crew: Crew, ledger: Ledger) -> None:
    low, other = start("keyed", {}), start("read", {}, priority=9)
    assert crew.advance(low).status == "done"
    assert Run.objects.get(id=other).status == "queued"


def test_an_urgent_run_that_is_held_by_somebody_does_not_stop_the_asked_one(crew: Crew, ledger: Ledger) -> None:
    low, high = start("keyed", {}), start("keyed", {}, priority=3)
    worker = crew.hire()
    worker.driving[high] = None  # as if another thread had just been asked for it
    assert worker.advance(low, Run.objects.get(id=low).release_id) is not None
    assert Run.objects.get(id=low).status == "done" and not crew.messages
    del worker.driving[high]


def test_without_priorities_a_claim_costs_one_look_into_an_empty_index(crew: Crew) -> None:
    run_id = start("keyed", {})
    for _ in range(20):
        start("keyed", {})
    look = """EXPLAIN (FORMAT JSON) SELECT r.id FROM runs_run r WHERE r.release_id = %s AND r.status = 'queued'
              AND r.priority > 0 AND r.priority > 0 AND NOT r.over_limit ORDER BY r.priority DESC, r.id LIMIT 1"""
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        conn.execute("SET enable_seqscan = off")
        row = conn.execute(look, (Run.objects.get(id=run_id).release_id,)).fetchone()
    assert row is not None and "runs_run_urgent" in str(row[0])


@pytest.mark.parametrize("priority", [-1, 10])
def test_a_priority_is_from_0_to_9(crew: Crew, priority: Any) -> None:
    with pytest.raises(Exception, match="riority"):
        start("keyed", {}, priority=priority)
