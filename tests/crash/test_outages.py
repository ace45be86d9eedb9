"""The database, the broker and the sweeper go away and come back."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.db.models.functions import Now
from psycopg.conninfo import make_conninfo

from config.celery import app
from config.embedded import valkey
from config.embedded.postgres import Postgres
from runs.models import Run, WorkerSession
from runs.queries import entries_of
from tests.conftest import forget_broker_connections
from tests.crash.proof import ACTIONS, assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

AWAY = 8.0  # seconds


@pytest.fixture
def server(fleet: Fleet, tmp_path: Path, settings: Any) -> Iterator[Postgres]:
    """A PostgreSQL of this test's own, which the fleet and Django use."""
    server = Postgres(tmp_path / "pg", {"fsync": "off"})
    process = server.start()
    place = {"HOST": str(server.socket), "USER": "holdfast", "NAME": "holdfast"}
    before = dict(connection.settings_dict), settings.HOLDFAST_DSN
    connection.close()
    connection.settings_dict.update(place)
    fleet.dsn = make_conninfo("", host=str(server.socket), user="holdfast", dbname="holdfast")
    settings.HOLDFAST_DSN = fleet.environment["DATABASE_URL"] = fleet.dsn
    assert fleet.run("migrate", "-v0").dies(60) == 0, fleet.story()
    yield server
    connection.close()
    connection.settings_dict.update(before[0])
    fleet.close()
    server.stop(signal.SIGQUIT)
    process.wait()


@pytest.mark.slow
def test_a_database_that_was_away_for_longer_than_a_lease_robs_nobody(
    fleet: Fleet, ledger: Ledger, server: Postgres
) -> None:
    """Calls end and begin meanwhile; every run goes on where it was, under the worker that had it.

    It is back within a second of the database. With pauses that double, as those of psycopg_pool, it would look after
    seven seconds and after fifteen, when the sweep has ended its session.
    """
    fleet.environment["HOLDFAST_LEASE_SECONDS"] = str(AWAY / 1.6)
    worker = fleet.worker()
    fleet.await_session(worker)
    fleet.sweeper()
    slow = [start("slow", {"seconds": seconds}) for seconds in (2.0, 4.0, 7.0)]
    fleet.until(lambda: all(ledger.acted(f"{run}:1") == 1 for run in slow), "each has acted")
    chains = [start("chain", {"steps": 40, "effect": effect}) for effect in ("keyed", "keyed-probe", "read")]
    fleet.until(lambda: all(ledger.calls(f"{run}:3") == 1 for run in chains), "each chain is under way")
    connection.close()
    server.stop(signal.SIGQUIT)
    gone = time.monotonic()
    fleet.until(lambda: time.monotonic() > gone + AWAY, "more than a lease is over")
    process = server.start()
    process.returncode = 0  # the fixture stops it
    later = start("keyed", {})
    for run_id in [*slow, *chains, later]:
        assert_done_once(ledger, fleet.rests(run_id))
    assert WorkerSession.objects.get(id=worker.session).ended_at is None
    assert {Run.objects.get(id=run_id).epoch for run_id in slow} == {1}


@pytest.mark.slow
def test_an_emptied_broker_loses_nothing(fleet: Fleet, ledger: Ledger) -> None:
    ledger.fault(ACTIONS["keyed-probe"], "rate_limit", times=10, retry_after=4)
    first = fleet.worker()
    waiting = [start("keyed-probe", {}) for _ in range(10)]
    fleet.until(lambda: Run.objects.filter(id__in=waiting, status="waiting").count() == 10, "ten wait for a back-off")
    first.send(signal.SIGTERM)
    first.dies()
    ready = [start("keyed", {}) for _ in range(10)]
    with app.connection_for_write() as broker:
        channel: Any = broker.default_channel
        channel.client.flushdb()
    fleet.worker()
    fleet.sweeper()
    for run_id in ready + waiting:
        assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
def test_a_sweeper_that_was_stopped_takes_up_what_came_due(fleet: Fleet, ledger: Ledger) -> None:
    victim = fleet.worker(crash="after-effect")
    sweeper = fleet.sweeper()
    fleet.await_session(victim)
    sweeper.send(signal.SIGSTOP)
    orphan = start("keyed-probe", {})
    fleet.bury(victim)
    fleet.worker()
    sleeper = start("sleep", {"seconds": 0.2})
    fleet.until(lambda: Run.objects.get(id=sleeper).status == "waiting", "the timer is set")
    fleet.until(lambda: Run.objects.filter(id=sleeper, wake_at__lt=Now()).exists(), "the timer is due")
    assert Run.objects.get(id=orphan).epoch == 1
    sweeper.send(signal.SIGKILL)
    fleet.sweeper()
    for run_id in (orphan, sleeper):
        assert_done_once(ledger, fleet.rests(run_id))


@pytest.mark.slow
def test_with_the_broker_down_a_start_succeeds_and_the_run_goes_later(
    fleet: Fleet, ledger: Ledger, embedded_broker: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_url", "redis+socket:///nowhere/at.all")
    forget_broker_connections()
    began = time.monotonic()
    run_id = start("keyed", {})
    assert time.monotonic() - began < 20, "it waits a moment for the broker, and not for ever"
    assert Run.objects.get(id=run_id).status == "queued"
    fleet.worker()
    fleet.sweeper()
    assert_done_once(ledger, fleet.rests(run_id))
    assert_whole(run_id)
    assert len(entries_of(run_id)) >= 4


@pytest.mark.slow
def test_a_broker_that_dies_and_comes_back_empty_stops_nobody(
    fleet: Fleet, ledger: Ledger, embedded_broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "broker"
    broker = valkey.start(home)
    url = f"redis+socket://{quote(str(valkey.socket_path(home)))}"
    monkeypatch.setattr(app.conf, "broker_url", url)
    fleet.environment["BROKER_URL"] = url
    forget_broker_connections()
    worker = fleet.worker()
    fleet.sweeper()
    under_way = [start("slow", {"seconds": 3.0}), start("chain", {"steps": 30, "effect": "keyed"})]
    fleet.until(lambda: all(ledger.calls(f"{run}:1") for run in under_way), "they are under way")
    broker.kill()
    broker.wait()
    while_away = start("keyed", {})
    for run_id in under_way:
        assert_done_once(ledger, fleet.rests(run_id))
    assert Run.objects.get(id=while_away).status == "queued"
    broker = valkey.start(home)
    forget_broker_connections()
    afterwards = start("keyed-probe", {})
    try:
        for run_id in (while_away, afterwards):
            assert_done_once(ledger, fleet.rests(run_id, within=60))
        assert worker.code is None
    finally:
        broker.kill()
        broker.wait()
