"""The other ways to send a call, each preceded by an ATTEMPT: killed after that is committed, and after the effect.

Each class has a victim of its own, whose lease is long and whose death is told last of all, so that a victim meets its
own run only; then one survivor takes all the runs.
"""

from collections.abc import Callable
from uuid import UUID

import pytest

from tests.crash.proof import ACTIONS, EFFECTS, approve, assert_done_once, assert_parked_in_doubt, reconcile, sources
from tests.rig.crew import start
from tests.rig.fleet import Fleet, Hand
from tests.rig.ledger import Ledger

Scene = Callable[[Fleet, Ledger, str, str], tuple[UUID, Hand]]
MORE_THAN_AT_ONCE = 17


def approval(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> tuple[UUID, Hand]:
    victim = fleet.worker(crash=point)
    run_id = start("approval", {"effect": effect})
    assert fleet.rests(run_id).status == "awaiting_approval"
    approve(run_id)
    return run_id, victim


def retry(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> tuple[UUID, Hand]:
    ledger.fault(ACTIONS[effect], "rate_limit", times=1, retry_after=0)
    victim = fleet.worker(crash=point)
    return start(effect, {}), victim


def resume(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> tuple[UUID, Hand]:
    """A probe answers for what has acted: only the class without one is sent again after it did."""
    first = fleet.worker(crash="after-effect" if effect == "keyed" else "before-effect")
    run_id = start(effect, {})
    fleet.bury(first)
    return run_id, fleet.worker(crash=point)


def operator(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> tuple[UUID, Hand]:
    first = fleet.worker(crash="before-effect")
    run_id = start(effect, {})
    fleet.bury(first)
    reconcile(run_id, "never_happened")
    return run_id, fleet.worker(crash=point)


def worker(fleet: Fleet, ledger: Ledger, effect: str, point: str) -> tuple[UUID, Hand]:
    """Siblings: the last of them waits until a thread is free."""
    victim = fleet.worker(crash=point)
    return start("siblings", {"effects": [effect] * MORE_THAN_AT_ONCE}), victim


SCENES: tuple[Scene, ...] = (approval, retry, resume, operator, worker)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after-attempt", "after-effect"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_killed_when_sent_for(fleet: Fleet, ledger: Ledger, scene: Scene, point: str) -> None:
    fleet.environment["HOLDFAST_LEASE_SECONDS"] = "60"
    fleet.sweeper()
    runs, victims = {}, []
    for effect in EFFECTS:
        if (scene, effect) == (resume, "unkeyed"):
            continue  # never sent again on resume: see test_first_send
        runs[effect], victim = scene(fleet, ledger, effect, point)
        victim.dies()
        victims.append(victim)
        if (scene, point) != (worker, "after-effect"):
            assert sources(runs[effect])[-1] == scene.__name__
    for victim in victims:
        fleet.bury(victim)
    fleet.worker()
    for effect, run_id in runs.items():
        run = fleet.rests(run_id)
        if effect != "unkeyed":
            assert_done_once(ledger, run)
        elif scene is worker:
            assert_parked_in_doubt(ledger, run)
        else:
            assert_parked_in_doubt(ledger, run, acted=int(point == "after-effect"))


# The model is asked three times: for the look-up, for the act, for the end. Whoever dies before an answer was committed
# has it asked again; whoever dies later never.
ASKED = {"before-attempt:2": 3, "after-attempt:2": 3, "before-model:2": 3, "after-model:2": 4, "after-effect:2": 3}


@pytest.mark.slow
@pytest.mark.parametrize("point", ASKED)
def test_killed_around_a_model_request(fleet: Fleet, ledger: Ledger, point: str) -> None:
    runs = {}
    for effect in EFFECTS:
        victim = fleet.worker(crash=point)
        runs[effect] = start("model", {"effect": effect})
        fleet.bury(victim)
    fleet.worker()
    fleet.sweeper()
    for effect, run_id in runs.items():
        run = fleet.rests(run_id)
        if (effect, point) == ("unkeyed", "after-effect:2"):
            assert_parked_in_doubt(ledger, run, acted=1)
            assert ledger.model_requests(run_id) == 2
        else:
            assert_done_once(ledger, run)
            assert ledger.model_requests(run_id) == ASKED[point]
