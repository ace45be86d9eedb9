"""A worker that is killed over a replay leaves it to the next one, and the run as it was."""

from __future__ import annotations

import pytest

from recovery.models import Purpose, Replay
from recovery.replays import order
from runs.models import Run
from runs.queries import entries_of
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after-replay-taken", "before-replay-written"])
def test_killed_over_a_replay(fleet: Fleet, ledger: Ledger, point: str) -> None:
    fleet.environment["HOLDFAST_LEASE_SECONDS"] = "60"
    fleet.sweeper()
    victim = fleet.worker(crash=point)
    run = fleet.rests(start("keyed", {}))
    row, journal = Run.objects.filter(id=run.id).values().get(), entries_of(run.id)
    replay = order(run, run.release, Purpose.REPLAY, actor="olga")
    fleet.bury(victim)
    assert Replay.objects.get(pk=replay.pk).taken_by == victim.session
    fleet.worker()
    fleet.until(lambda: Replay.objects.filter(pk=replay.pk, ended_at__isnull=False).exists(), "it is decided again")
    found = Replay.objects.get(pk=replay.pk)
    assert (found.verdict, found.error, found.takes) == ("same", "", 2)
    assert Run.objects.filter(id=run.id).values().get() == row and entries_of(run.id) == journal
    assert_done_once(ledger, run)
    assert ledger.calls(f"{run.id}:1") == 1
