"""Real workers killed while they run an agent of pydantic-ai; others go on, and the provider tells no difference."""

from __future__ import annotations

import signal
from uuid import UUID

import pytest

from tests.crash.proof import approve, assert_done_once
from tests.integrations.test_journaled_wire import RESULT, TURNS
from tests.rig.crew import start, state
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers

POINTS = (
    "after-attempt", "before-model", "after-model:2", "after-plan:2", "before-intent:3", "after-intent:3",
    "after-effect:4", "before-outcome:3", "after-model:5", "before-done",
)  # fmt: skip
IN_DOUBT = ("after-intent:3", "after-effect:4", "before-outcome:3")  # of the mail, which nobody can be asked about


def asked(providers: Providers, name: str) -> list[str]:
    """The bodies of the requests of the run that was started with this word, in order, without it."""
    bodies = [seen.body for seen in providers.requests if f"Refund o-1 {name}." in seen.body]
    return [body.replace(f"Refund o-1 {name}.", "Refund o-1.") for body in bodies]


@pytest.mark.slow
def test_killed_anywhere_another_worker_goes_on(shop_fleet: Fleet, ledger: Ledger, providers: Providers) -> None:
    providers.script("desk", TURNS)
    runs: dict[str, UUID] = {}
    victims = []
    for number, point in enumerate(POINTS):
        victims.append(shop_fleet.worker(crash=point))
        runs[point] = start("anthropic", f"Refund o-1 p{number}.")
        assert victims[-1].dies() == -signal.SIGKILL, victims[-1].said()
    undisturbed = start("anthropic", "Refund o-1 whole.")
    for victim in victims:
        shop_fleet.end(victim)
    shop_fleet.worker()
    shop_fleet.sweeper()
    assert_done_once(ledger, shop_fleet.rests(undisturbed))
    wanted = asked(providers, "whole")
    assert len(wanted) == 5
    for number, (point, run_id) in enumerate(runs.items()):
        run = shop_fleet.rests(run_id)
        if point in IN_DOUBT:
            assert run.status == "needs_reconciliation", (point, run.status, run.reason)
            assert {slot.tool for slot in state(run_id).unsettled()} == {"mail"}
            continue
        assert_done_once(ledger, run)
        assert (state(run_id).done or {}).get("result") == RESULT
        assert list(dict.fromkeys(asked(providers, f"p{number}"))) == wanted, point


@pytest.mark.slow
def test_what_was_approved_while_nobody_was_there_is_done(
    shop_fleet: Fleet, ledger: Ledger, providers: Providers
) -> None:
    providers.script("desk", TURNS)
    first = shop_fleet.worker()
    shop_fleet.sweeper()
    run_id = start("gated", "Refund o-1.")
    assert shop_fleet.rests(run_id).status == "awaiting_approval"
    first.send(signal.SIGKILL)
    shop_fleet.bury(first)
    step = next(slot.step for slot in state(run_id).unsettled())
    approve(run_id, step)
    shop_fleet.worker()
    assert_done_once(ledger, shop_fleet.rests(run_id))
    assert len(providers.requests) == 5


@pytest.mark.slow
def test_killed_in_the_middle_of_an_answer_its_half_is_no_answer(
    shop_fleet: Fleet, ledger: Ledger, providers: Providers
) -> None:
    providers.script("desk", TURNS)
    providers.fault("hold", turn=0, after=3)
    victim = shop_fleet.worker()
    run_id = start("anthropic", "Refund o-1.")
    shop_fleet.until(lambda: [seen.pieces for seen in providers.requests] == [3], "half of it has come")
    victim.send(signal.SIGKILL)
    shop_fleet.bury(victim)
    shop_fleet.worker()
    shop_fleet.sweeper()
    assert_done_once(ledger, shop_fleet.rests(run_id))
    assert [seen.turn for seen in providers.requests] == [0, 0, 1, 2, 3, 4]
