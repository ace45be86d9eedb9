"""A worker process dies by SIGKILL at each point of a run's first send, for each effect class; another one goes on.

Each class has a victim of its own. Nobody sweeps while they die, so that a victim meets its own run only; then one
survivor takes all the runs.
"""

import signal

import pytest

from runs.commands import hold_run, resume_run
from tests.crash.proof import EFFECTS, approve, assert_done_once, assert_parked_in_doubt
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

# What the journal and the world know at each point. The first commit is the intent's, the second the outcome's.
NOTHING_SENT = ("before-claim", "after-claim", "before-plan", "before-intent", "before-commit")
INTENDED = ("after-commit", "after-plan", "after-intent", "before-effect")
ACTED = ("after-effect", "before-outcome", "before-done", "before-commit:2")
RECORDED = ("after-commit:2", "after-outcome", "after-done")


@pytest.mark.slow
@pytest.mark.parametrize("point", [*NOTHING_SENT, *INTENDED, *ACTED, *RECORDED])
def test_killed_on_the_first_send(fleet: Fleet, ledger: Ledger, point: str) -> None:
    runs = {}
    for effect in EFFECTS:
        victim = fleet.worker(crash=point)
        runs[effect] = start(effect, {})
        fleet.bury(victim)
    fleet.worker()
    fleet.sweeper()
    for effect, run_id in runs.items():
        run = fleet.rests(run_id)
        if effect == "unkeyed" and point in INTENDED + ACTED:
            assert_parked_in_doubt(ledger, run, acted=int(point in ACTED))
        else:
            assert_done_once(ledger, run)
        if point in RECORDED:
            assert run.epoch == 1, "nothing was left to do"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-approval", "after-approval"])
def test_killed_while_asking_for_approval(fleet: Fleet, ledger: Ledger, point: str) -> None:
    runs = []
    for effect in EFFECTS:
        victim = fleet.worker(crash=point)
        runs.append(start("approval", {"effect": effect}))
        fleet.bury(victim)
    fleet.worker()
    fleet.sweeper()
    for run_id in runs:
        assert fleet.rests(run_id).status == "awaiting_approval"
    assert [ledger.acted(f"{run_id}:1") for run_id in runs] == [0] * len(runs)
    for run_id in runs:
        approve(run_id)
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
def test_killed_before_letting_go_of_what_has_nothing_to_do_yet(fleet: Fleet, ledger: Ledger) -> None:
    """Woken by a person, it finds that it still waits for approval: it is let go with nothing to write."""
    first = fleet.worker()
    runs = [start("approval", {"effect": effect}) for effect in EFFECTS]
    for run_id in runs:
        assert fleet.rests(run_id).status == "awaiting_approval"
    first.send(signal.SIGTERM)
    assert first.dies(20) == 0
    for run_id in runs:
        victim = fleet.worker(crash="before-let-go")
        fleet.await_session(victim)
        hold_run(run_id=run_id, reason="a test", actor="olga")
        resume_run(run_id=run_id, reason="a test", actor="olga")
        fleet.bury(victim)
    fleet.worker()
    fleet.sweeper()
    for run_id in runs:
        approve(run_id)
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
def test_killed_with_nobody_to_see_it(fleet: Fleet, ledger: Ledger) -> None:
    """No supervisor: a session ends when the sweep sees that its lease has run out."""
    runs = {}
    for effect in EFFECTS:
        victim = fleet.worker(crash="after-effect")
        runs[effect] = start(effect, {})
        victim.dies()
    fleet.worker()
    fleet.sweeper()
    for effect, run_id in runs.items():
        run = fleet.rests(run_id)
        assert run.epoch >= 2
        if effect == "unkeyed":
            assert_parked_in_doubt(ledger, run, acted=1)
        else:
            assert_done_once(ledger, run)
