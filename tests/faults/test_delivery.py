"""Messages are hints: twice is as good as once, and none goes out for what was not committed."""

import signal
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from config.celery import app
from runs.approvals import decide_approval
from runs.dispatch import dispatch, queue_of
from runs.models import Release, Run
from runs.queries import entries_of, state_of
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS


def waiting_messages(release_id: str) -> int:
    with app.connection_for_read() as broker:
        channel: Any = broker.default_channel
        return int(channel.queue_declare(queue_of(release_id)).message_count)


@pytest.mark.slow
def test_a_second_message_for_a_step_under_way_ends_without_effect(fleet: Fleet, ledger: Ledger) -> None:
    workers = [fleet.worker(), fleet.worker()]
    for worker in workers:
        fleet.await_session(worker)
    run_id = start("slow", {"seconds": 3.0})
    fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the call is under way")
    before = Run.objects.filter(id=run_id).values().get()
    release_id = before["release_id"]
    for _ in range(8):
        dispatch(run_id, release_id)
    fleet.until(lambda: waiting_messages(release_id) == 0, "both workers have taken messages")
    fleet.await_heartbeat(workers[0])
    assert Run.objects.filter(id=run_id).values().get() == before, "no status change, no claim, no crash counted"
    run = fleet.rests(run_id)
    assert_done_once(ledger, run)
    assert (run.epoch, run.crashes, ledger.calls(f"{run_id}:1")) == (1, 0, 1)
    assert [e.kind for e in entries_of(run_id)].count("OBS") == 1


@pytest.mark.slow
def test_what_is_started_and_approved_in_a_long_transaction_goes_out_when_it_commits(
    fleet: Fleet, ledger: Ledger
) -> None:
    worker = fleet.worker()
    with transaction.atomic():
        run_id = start("approval", {"effect": "keyed"})
        fleet.await_heartbeat(worker)  # it had time to meet a run that is not there yet
        assert worker.code is None
    assert fleet.rests(run_id).status == "awaiting_approval"
    slot = state_of(run_id).slots[1]
    with transaction.atomic():
        decide_approval(
            run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
        )
        fleet.await_heartbeat(worker)
        assert ledger.effects() == []
    assert_done_once(ledger, fleet.rests(run_id))
    assert "does not exist" not in worker.said() and "Traceback" not in worker.said()


@pytest.mark.slow
def test_nothing_goes_out_after_a_rollback(fleet: Fleet, ledger: Ledger) -> None:
    started: list[UUID] = []
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        started.append(start("keyed", {}))
        raise ZeroDivisionError
    assert waiting_messages(Release.objects.get(agent="keyed").id) == 0
    assert not Run.objects.filter(id__in=started).exists()


@pytest.mark.slow
def test_a_paused_batch_does_not_repeat_what_was_done(fleet: Fleet, ledger: Ledger) -> None:
    """A letter that is sent at once beside a refund that waits: workers restart, then the refund is approved."""
    first = fleet.worker()
    run_id = start("mixed")
    assert fleet.rests(run_id).status == "awaiting_approval"
    first.send(signal.SIGTERM)
    assert first.dies() == 0
    fleet.worker()
    slot = state_of(run_id).slots[2]
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
    )
    assert_done_once(ledger, fleet.rests(run_id))
    assert [ledger.calls(f"{run_id}:{step}") for step in (1, 2)] == [1, 1]
