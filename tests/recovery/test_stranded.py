"""A run that is cancelled while nobody serves its release ends, unless a call of it is in doubt."""

from uuid import UUID

import psycopg

from recovery.sweep import Sweep
from runs.commands import cancel_run
from runs.models import Run, WorkerSession
from runs.queries import entries_of
from tests.crash.proof import assert_whole
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger


def swept(crew: Crew, run_id: UUID) -> Run:
    """Nobody serves anything; the sweep has looked twice."""
    for worker in list(crew.workers):
        crew.lose(worker)
    crew.standing = None
    assert not WorkerSession.objects.filter(ended_at=None).exists()
    sweep = Sweep(crew.dsn, lease=0.0, every=0.0, dispatch=crew.take)
    try:
        Run.objects.filter(id=run_id).update(since="2026-01-01T00:00:00Z")
        for _ in range(2):
            sweep.once()
    finally:
        sweep.close()
    return Run.objects.get(id=run_id)


def test_it_ends_and_what_was_open_is_withdrawn(crew: Crew, ledger: Ledger) -> None:
    run_id = start("approval", {"effect": "keyed"})
    assert crew.advance(run_id).status == "awaiting_approval"
    cancel_run(run_id=run_id, reason="no more", actor="olga")
    run = swept(crew, run_id)
    assert (run.status, run.reason, run.intents) == ("cancelled", "", []) and run.ended_at is not None
    assert journal(run_id)[-3:] == ["CONTROL", "OBS:1", "DONE"]
    assert entries_of(run_id)[-2].body["outcome"] == "cancelled" and ledger.acted(f"{run_id}:1") == 0
    assert_whole(run_id)


def test_with_a_call_in_doubt_it_waits_for_whoever_can_say(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "drop", times=1)
    run_id = start("unkeyed", {})
    assert crew.drive(run_id).status == "needs_reconciliation"
    cancel_run(run_id=run_id, reason="no more", actor="olga")
    assert swept(crew, run_id).status == "waiting_for_version" and journal(run_id)[-1] == "CONTROL"


def test_a_run_that_nobody_cancelled_waits(crew: Crew) -> None:
    run_id = start("keyed", {})
    assert swept(crew, run_id).status == "waiting_for_version" and journal(run_id) == ["START"]


def test_its_parent_hears_of_its_end(crew: Crew) -> None:
    root = start("parent", {"children": [{"agent": "approval", "input": {"effect": "keyed"}}]})
    crew.drive_tree(root)
    child = Run.objects.get(parent=root)
    cancel_run(run_id=child.id, reason="no more", actor="olga")
    assert swept(crew, child.id).status == "cancelled"
    assert Run.objects.get(id=child.id).parent_told
    with psycopg.connect(crew.dsn) as conn:
        row = conn.execute("SELECT wake_at IS NOT NULL OR status <> 'waiting' FROM runs_run WHERE id = %s", (root,))
        assert row.fetchone() == (True,)
