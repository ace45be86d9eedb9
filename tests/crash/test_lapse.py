"""A run that a live worker holds and does not drive: nobody else would take it up, so the worker does."""

import psycopg
import pytest

from journal import crash
from tests.crash.proof import assert_done_once
from tests.rig.crew import Crew, start
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
