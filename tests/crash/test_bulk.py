"""Killed at the points of a bulk act: each run is acted on once, and what its item says is what its journal says."""

import pytest

from runs.bulk import order_bulk, progress_of
from runs.models import BulkAct, BulkItem
from runs.queries import entries_of
from runs.query_meaning import Reader
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


def ordered(verb: str, query: str) -> BulkAct:
    return order_bulk(verb=verb, query=query, reason="the bank is closed", actor="olga", reader=Reader())


def finishes(fleet: Fleet, act: BulkAct) -> None:
    fleet.until(lambda: not BulkAct.objects.filter(pk=act.pk, ended_at=None).exists(), "a sweeper finishes it")


def controls(act: BulkAct) -> dict[str | None, set[int]]:
    """How many entries of control the runs have, by what became of them."""
    found: dict[str | None, set[int]] = {}
    for item in BulkItem.objects.filter(bulk_id=act.pk):
        count = sum(entry.kind == "CONTROL" for entry in entries_of(item.run_id))
        found.setdefault(item.outcome, set()).add(count)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("point", ["bulk-before-command", "bulk-after-command", "bulk-after-item"])
def test_a_sweeper_killed_during_a_bulk_act(fleet: Fleet, ledger: Ledger, point: str) -> None:
    runs = [start("keyed", {}) for _ in range(6)]
    act = ordered("hold", "agent:keyed")
    assert fleet.sweeper(crash=f"{point}:3").dies() == -9
    assert progress_of(act).done == (3 if point == "bulk-after-item" else 2)
    assert controls(act) == {"done": {1}, None: {0}}, "an item and its run are written together or not at all"
    fleet.sweeper()
    finishes(fleet, act)
    assert controls(act) == {"done": {1}}
    for run_id in runs:
        assert_whole(run_id)
    back = ordered("resume", "status:held")
    finishes(fleet, back)
    assert controls(back) == {"done": {2}}
    fleet.worker()
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id))
