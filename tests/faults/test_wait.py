"""Waits are rows, and calls hold nothing in the database."""

import signal

import psycopg
import pytest

from runs.commands import hold_run, resume_run
from runs.models import Run
from runs.queries import entries_of
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


@pytest.mark.slow
def test_a_retry_after_is_kept_over_a_restart_and_holds_no_worker(fleet: Fleet, ledger: Ledger) -> None:
    ledger.fault("refund", "rate_limit", times=2, retry_after=3)
    first = fleet.worker("--concurrency", "1")
    run_id = start("keyed-probe", {})
    fleet.until(lambda: Run.objects.get(id=run_id).status == "waiting", "it waits")
    run = Run.objects.get(id=run_id)
    assert run.session_id is None and run.wake_at is not None and "tried again at" in run.reason
    other = start("keyed", {})
    assert fleet.rests(other).status == "done", "its only slot is free meanwhile"
    first.send(signal.SIGKILL)
    fleet.bury(first)
    fleet.worker()
    fleet.sweeper()
    assert Run.objects.get(id=run_id).wake_at == run.wake_at, "the wait does not start over"
    assert_done_once(ledger, fleet.rests(run_id))
    entries = entries_of(run_id)
    errors = [e for e in entries if e.kind == "ERROR"]
    attempts = [e for e in entries if e.kind == "ATTEMPT"]
    assert len(errors) == len(attempts) == 2
    for error, attempt in zip(errors, attempts, strict=True):
        waited = (attempt.recorded_at - error.recorded_at).total_seconds()
        assert 2.9 <= waited < 20.0
    assert ledger.calls(f"{run_id}:1") == 3, "under the same key"


OPEN = """
SELECT pid, state, query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 second'
"""
LOCKS = """
SELECT l.pid, c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.pid <> pg_backend_pid() AND (c.relname LIKE 'journal%%' OR c.relname LIKE 'runs%%')
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@pytest.mark.slow
def test_a_long_call_holds_no_transaction_and_no_lock(fleet: Fleet, ledger: Ledger) -> None:
    worker = fleet.worker()
    run_id = start("slow", {"seconds": 5.0})
    fleet.until(lambda: ledger.acted(f"{run_id}:1") == 1, "the call is under way")
    fleet.await_heartbeat(worker)
    with psycopg.connect(fleet.dsn, autocommit=True) as conn:
        assert conn.execute(OPEN).fetchall() == []
        fleet.until(lambda: conn.execute(LOCKS).fetchall() == [], "nobody holds a lock")
        conn.execute("SET lock_timeout = '1s'")
        conn.execute("ALTER TABLE journal_entry ADD COLUMN passing int")
        conn.execute("ALTER TABLE journal_entry DROP COLUMN passing")
    hold_run(run_id=run_id, reason="look at it", actor="olga")
    assert fleet.rests(run_id).status == "held"
    resume_run(run_id=run_id, reason="looked", actor="olga")
    assert_done_once(ledger, fleet.rests(run_id))
    assert ledger.calls(f"{run_id}:1") == 1
