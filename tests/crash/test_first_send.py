"""A worker process dies by SIGKILL at each point of a run's first send, for each effect class; another one goes on."""

import pytest

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
@pytest.mark.parametrize("effect", EFFECTS)
def test_killed_on_the_first_send(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> None:
    victim = fleet.worker(crash=point)
    run_id = start(effect, {})
    fleet.bury(victim)
    fleet.worker()
    fleet.sweeper()
    run = fleet.rests(run_id)
    if effect == "unkeyed" and point in INTENDED + ACTED:
        assert_parked_in_doubt(ledger, run, acted=int(point in ACTED))
    else:
        assert_done_once(ledger, run)
    if point in RECORDED:
        assert run.epoch == 1, "nothing was left to do"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-approval", "after-approval"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_killed_while_asking_for_approval(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> None:
    victim = fleet.worker(crash=point)
    run_id = start("approval", {"effect": effect})
    fleet.bury(victim)
    fleet.worker()
    fleet.sweeper()
    assert fleet.rests(run_id).status == "awaiting_approval"
    assert ledger.effects() == []
    approve(run_id)
    assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
@pytest.mark.parametrize("effect", EFFECTS)
def test_killed_before_letting_go_at_a_gate(fleet: Fleet, ledger: Ledger, effect: str) -> None:
    fleet.execute("INSERT INTO runs_gate (scope, reason, actor) VALUES (%s, 'a test', 'olga')", f"agent:{effect}")
    victim = fleet.worker(crash="before-let-go")
    fleet.await_gates(victim)
    run_id = start(effect, {})
    fleet.bury(victim)
    fleet.execute("UPDATE runs_gate SET lifted_at = clock_timestamp()")
    fleet.worker()
    fleet.sweeper()
    assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
@pytest.mark.parametrize("effect", EFFECTS)
def test_killed_with_nobody_to_see_it(fleet: Fleet, ledger: Ledger, effect: str) -> None:
    """No supervisor: the session ends when its lease has run out for everybody to see."""
    victim = fleet.worker(crash="after-effect")
    fleet.sweeper()
    run_id = start(effect, {})
    victim.dies()
    fleet.worker()
    run = fleet.rests(run_id)
    assert run.epoch == 2
    if effect == "unkeyed":
        assert_parked_in_doubt(ledger, run, acted=1)
    else:
        assert_done_once(ledger, run)
