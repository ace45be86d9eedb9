"""Clocks in other time zones: database, worker and sweeper each live elsewhere, and every wait ends when it is due."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest

from runs.models import Run
from runs.queries import entries_of
from runs.rest.wait import at_rest
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import ROOT, Ledger

EXACT = 10.0  # seconds that a wait may end late; the clocks are quarters of an hour apart at least


@contextmanager
def process(fleet: Fleet, zone: str, *words: str) -> Iterator[None]:
    """`manage.py` with these words, in a process that was born in this zone."""
    environment = os.environ | fleet.environment | {"TZ": zone, "PGTZ": zone}
    with open(fleet.folder / f"{words[0]}.log", "wb") as log:
        child = subprocess.Popen(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            yield
        finally:
            child.terminate()
            child.wait(60)


def late_by(run_id: UUID) -> list[float]:
    """How many seconds after it was due each timer fired."""
    entries = entries_of(run_id)
    due = {e.step: e.body["due"] for e in entries if e.kind == "TIMER" and e.body["verb"] == "set"}
    fired = [e for e in entries if e.kind == "TIMER" and e.body["verb"] == "fired"]
    return [e.recorded_at.timestamp() - due[e.step] for e in fired]


@pytest.mark.slow
def test_waits_end_when_they_are_due_wherever_the_clocks_are(fleet: Fleet, ledger: Ledger) -> None:
    fleet.environment["HOLDFAST_SWEEP_SECONDS"] = "2"  # as installed: a sweeper hears in between of what is due sooner
    with psycopg.connect(fleet.dsn, autocommit=True) as conn:
        conn.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone TO %L', current_database(),"
                     " 'Pacific/Auckland'); END $$")  # fmt: skip
    with (
        process(fleet, "Asia/Kathmandu", "worker", "--name", "kathmandu"),
        process(fleet, "America/St_Johns", "sweep"),
    ):
        fleet.until(lambda: fleet.ask("SELECT 1 FROM runs_workersession"), "the worker registers")
        ledger.fault("refund", "rate_limit", times=1, retry_after=2)
        asked = datetime.now(UTC)
        slept = start("sleep", {"seconds": 3.0})
        backed_off = start("keyed-probe", {})
        late = start("sleep", {"seconds": 3600.0}, deadline=asked + timedelta(seconds=3))
        for run_id in (slept, backed_off, late):
            fleet.until(lambda: at_rest(Run.objects.get(id=run_id)), f"{run_id} rests")  # noqa: B023
    assert [Run.objects.get(id=run_id).status for run_id in (slept, backed_off, late)] == ["done", "done", "cancelled"]
    assert all(0 <= seconds < EXACT for seconds in late_by(slept)), late_by(slept)
    error, attempt = (next(e for e in entries_of(backed_off) if e.kind == kind) for kind in ("ERROR", "ATTEMPT"))
    assert 0 <= attempt.recorded_at.timestamp() - error.body["due"] < EXACT
    cancelled = next(e for e in entries_of(late) if e.kind == "CONTROL")
    deadline = entries_of(late)[0].body["deadline"]
    assert deadline == pytest.approx((asked + timedelta(seconds=3)).timestamp(), abs=0.001)
    assert 0 <= cancelled.recorded_at.timestamp() - deadline < EXACT
    assert f"{datetime.fromtimestamp(deadline, UTC):%Y-%m-%d %H:%M:%S} UTC" in cancelled.body["reason"]
