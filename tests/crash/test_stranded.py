"""Killed while it ends a cancelled run that no worker serves: the next sweep does it, and it is written once."""

import signal
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from runs.commands import cancel_run
from runs.models import Run, WorkerSession
from tests.crash.proof import assert_whole
from tests.rig.crew import journal, start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


@pytest.mark.slow
def test_a_sweeper_dies_while_it_ends_a_cancelled_run_that_is_stranded(fleet: Fleet, ledger: Ledger) -> None:
    worker = fleet.worker()
    run_id = start("approval", {"effect": "keyed"})
    fleet.until(lambda: Run.objects.get(id=run_id).status == "awaiting_approval", "it waits for a person")
    worker.send(signal.SIGTERM)
    assert worker.dies() == 0, worker.said()
    assert not WorkerSession.objects.filter(ended_at=None).exists()
    victim = fleet.sweeper(crash="before-cancelled")
    cancel_run(run_id=run_id, reason="no more", actor="olga")
    assert victim.dies() == -signal.SIGKILL, victim.said()
    assert journal(run_id)[-1] == "CONTROL", "nothing of it was committed"
    Run.objects.filter(id=run_id).update(since=Now() - timedelta(minutes=2))  # looked at once a minute
    fleet.sweeper()
    fleet.until(lambda: Run.objects.get(id=run_id).status == "cancelled", "the next one ends it")
    assert journal(run_id)[-3:] == ["CONTROL", "OBS:1", "DONE"] and ledger.acted(f"{run_id}:1") == 0
    assert_whole(run_id)
