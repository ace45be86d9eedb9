"""A run that a live worker holds and does not drive: nobody else would take it up, so the worker does."""

from collections.abc import Callable
from threading import Barrier, Thread

import psycopg
import pytest

from journal import crash
from runs.models import Run
from runs.queries import entries_of
from tests.crash.proof import assert_done_once
from tests.rig.crew import CrashHere, Crew, start
from tests.rig.ledger import Ledger, wait_until


def test_a_lease_that_lapsed_before_the_effect_stops_it_and_the_run_is_taken_up_again(
    crew: Crew, ledger: Ledger
) -> None:
    worker = crew.hire(lease=1.0)
    run_id = start("keyed", {})
    crew.messages.clear()

    def lapse(point: str) -> None:
        if point == "after-intent":
            worker.session._until = 0.0

    crash.hook = lapse
    (release_id,) = [r for r, agent in worker.agents.items() if agent.name == "keyed"]
    worker.advance(run_id, release_id)
    crash.hook = None
    assert ledger.calls(f"{run_id}:1") == 0, "nothing is sent without a lease"
    wait_until(lambda: worker.session.alive, "the lease is renewed")
    wait_until(lambda: (run_id, release_id) in crew.messages, "the run is sent again")
    assert_done_once(ledger, crew.drive(run_id, worker))


def test_a_run_whose_claim_was_committed_but_not_answered_is_taken_up_again(crew: Crew, ledger: Ledger) -> None:
    worker = crew.hire(lease=1.0)
    run_id = start("keyed", {})
    (release_id,) = [r for r, agent in worker.agents.items() if agent.name == "keyed"]

    def cut(point: str) -> None:
        if point == "after-claim":
            raise psycopg.OperationalError("the connection is lost")

    crash.hook = cut
    with pytest.raises(psycopg.OperationalError):
        worker.advance(run_id, release_id)
    crash.hook = None
    wait_until(lambda: (run_id, release_id) in crew.messages, "the run is sent again")
    run = crew.drive(run_id, worker)
    assert_done_once(ledger, run)
    assert (run.epoch, run.crashes) == (2, 0)


def test_a_child_of_a_prefork_pool_drives_what_it_holds_itself(crew: Crew, ledger: Ledger) -> None:
    """A message would go to any child, and most surely to one that has nothing to do."""
    worker = crew.hire(lease=1.0)
    worker.session.pool = "prefork"
    run_id = start("keyed", {})
    (release_id,) = [r for r, agent in worker.agents.items() if agent.name == "keyed"]
    crew.messages.clear()

    def cut(point: str) -> None:
        if point == "after-claim":
            crash.hook = None
            raise psycopg.OperationalError("the connection is lost")

    crash.hook = cut
    with pytest.raises(psycopg.OperationalError):
        worker.advance(run_id, release_id)
    wait_until(lambda: Run.objects.get(id=run_id).status == "done", "it is done")
    assert_done_once(ledger, Run.objects.get(id=run_id))
    assert (run_id, release_id) not in crew.messages


def test_runs_that_wait_their_turn_after_a_crash_are_noted_as_taken_over_all_the_same(
    crew: Crew, ledger: Ledger
) -> None:
    """Two claims at the same moment: one run is driven, the other waits, and neither forgets where it came from."""
    runs = [start("keyed-probe", {}), start("keyed-probe", {})]
    release_id = Run.objects.get(id=runs[0]).release_id
    crash.hook = die_at("after-effect")
    first = crew.hire()
    for run_id in runs:
        with pytest.raises(CrashHere):
            first.advance(run_id, release_id)
    crew.lose(first)
    second, together = crew.hire(), Barrier(2)
    crash.hook = lambda point: together.wait(60) and None if point == "before-claim" else None
    threads = [Thread(target=second.advance, args=(run_id, release_id)) for run_id in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    crash.hook = None
    for run_id in runs:
        assert_done_once(ledger, crew.drive(run_id, second))
        assert [e.body["text"] for e in entries_of(run_id) if e.kind == "NOTE"] == ["taken over"]


def die_at(where: str) -> Callable[[str], None]:
    def die(point: str) -> None:
        if point == where:
            raise CrashHere

    return die
