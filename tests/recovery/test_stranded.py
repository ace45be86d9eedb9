"""A run that nobody serves tells what its lost worker left open; cancelled it ends, unless that is in doubt."""

from uuid import UUID

import psycopg
import pytest

from journal import crash
from recovery.commands import reconcile_intent
from recovery.items import ItemPage
from recovery.sweep import Sweep
from runs.commands import cancel_run, hold_run, resume_run
from runs.engine.worker import Worker
from runs.models import Run, WorkerSession
from runs.pages.shell import inbox_count
from runs.queries import entries_of, list_intents
from tests.crash.proof import assert_whole
from tests.rig.crew import CrashHere, Crew, journal, start
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


def die_in_a_call(crew: Crew, run_id: UUID) -> Worker:
    def hook(name: str) -> None:
        if name == "after-effect":
            raise CrashHere

    worker = crew.hire()
    crash.hook = hook
    with pytest.raises(CrashHere):
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    crash.hook = None
    return worker


def test_a_call_that_the_next_worker_sends_again_was_in_doubt_once(crew: Crew, ledger: Ledger) -> None:
    run_id = start("keyed", {})
    crew.lose(die_in_a_call(crew, run_id))
    run = crew.drive(run_id)
    assert (run.status, run.doubts) == ("done", 1) and "ATTEMPT:1" in journal(run_id)


def test_a_call_that_a_lost_worker_left_in_doubt_is_listed_and_can_be_settled(crew: Crew, ledger: Ledger) -> None:
    """Wherever somebody looks for what is to be settled: nobody takes the run over who would find it."""
    run_id = start("keyed", {})
    die_in_a_call(crew, run_id)
    run = swept(crew, run_id)
    assert run.status == "waiting_for_version" and run.doubts == 1
    (record,) = run.intents
    assert (record["seq"], record["state"], record["key"], record["asked_by"]) == (3, "in_doubt", f"{run_id}:1", "sdk")
    assert [view.run_id for view in list_intents(state="in_doubt")[0]] == [run_id]
    assert inbox_count(None) == 1
    page = ItemPage(run, 3)
    assert page.phase == "doubt"
    reconcile_intent(run_id=run_id, seq=3, verdict="happened", evidence="seen", actor="ada", attempt=1)
    assert journal(run_id)[-2:] == ["RECONCILE:1", "OBS:1"]
    assert swept(crew, run_id).intents == []
    assert crew.drive(run_id).status == "done" and ledger.acted(f"{run_id}:1") == 1


def test_what_is_open_of_one_that_was_woken_is_listed_again(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "drop", times=1)
    run_id = start("unkeyed", {})
    assert crew.drive(run_id).status == "needs_reconciliation"
    hold_run(run_id=run_id, reason="let me see", actor="olga")
    resume_run(run_id=run_id, reason="seen", actor="olga")
    assert Run.objects.get(id=run_id).intents == []
    run = swept(crew, run_id)
    assert (run.status, [each["state"] for each in run.intents]) == ("waiting_for_version", ["in_doubt"])
