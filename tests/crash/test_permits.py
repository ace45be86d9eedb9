"""Killed around a limit's permits: none is lost, none is kept for ever, and nothing is sent twice."""

from typing import Any

import pytest

from runs.models import Permit, Run
from runs.registry import agents, announce
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

POINTS = ["before-permit", "after-permit", "before-free", "after-free"]


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_killed_around_a_permit(fleet: Fleet, ledger: Ledger, settings: Any, point: str) -> None:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited",)
    fleet.environment["HOLDFAST_AGENTS"] = "tests.runs.limited"
    agents.cache_clear()
    announce()
    fleet.sweeper()
    victim = fleet.worker(crash=point)
    runs = [start("by-customer", {"customer_id": "c-1"}) for _ in range(3)]
    fleet.bury(victim)
    assert Permit.objects.filter(granted_at__isnull=False).count() <= 1
    fleet.worker()
    fleet.until(lambda: Run.objects.filter(ended_at=None).count() == 0, "all end: who waits in line is sent in turn")
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id))
    fleet.until(lambda: not Permit.objects.exists(), "every permit is given back")
