"""E30: a drain under load, with real workers and five arrivals a second; `drain --wait` as a pipeline has it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection

from config.embedded.postgres import Postgres
from recovery.drains import find_drain, in_force, lift_drain, order_drain, progress
from recovery.models import Drain
from runs.models import Run
from runs.queries import entries_of
from tests.crash.proof import assert_done_once
from tests.crash.test_outages import server as server
from tests.faults.test_frozen import Relay
from tests.faults.test_frozen import relay as relay
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.slow
A_SECOND = 5


class Arrivals:
    """New runs, five a second, also while the database is away now and then: who is refused comes again."""

    def __init__(self, agent: str, given: dict[str, Any]) -> None:
        self.agent, self.given = agent, given
        self.started: list[UUID] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._arrive)

    def _arrive(self) -> None:
        while not self._over.wait(1 / A_SECOND):
            try:
                self.started.append(start(self.agent, self.given, request_key=f"arrival {len(self.started)}"))
            except OperationalError:
                connection.close()
        connection.close()

    @contextmanager
    def coming(self) -> Iterator[Arrivals]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()


def taken() -> set[UUID]:
    return set(Run.objects.filter(epoch__gt=0).values_list("id", flat=True))


def ends(fleet: Fleet, run_id: UUID, within: float = 60.0) -> Run:
    """The run at its end: at a gate it rests too."""
    fleet.until(lambda: Run.objects.filter(id=run_id, ended_at__isnull=False).exists(), "it ends", within)
    return Run.objects.select_related("release", "session").get(id=run_id)


def order(scope: str, timeout: float) -> Drain:
    return order_drain(scope=scope, timeout=timeout, reason="deploy 8", actor="olga")


def test_a_drain_under_load_takes_nothing_new_survives_restarts_and_is_undone(
    fleet: Fleet, ledger: Ledger, server: Postgres
) -> None:
    fleet.environment["HOLDFAST_LEASE_SECONDS"] = "6"
    workers = [fleet.worker("--concurrency", "4"), fleet.worker("--concurrency", "4")]
    sweeper = fleet.sweeper()
    for worker in workers:
        fleet.await_session(worker)
    arrivals = Arrivals("slow", {"seconds": 1.0})
    with arrivals.coming():
        fleet.until(lambda: len(taken()) >= 6, "the load is on")
        drain = order("agent:slow", 60)
        before = taken()
        seen = progress(drain)
        assert seen.seconds_left > 30 and seen.began_with is not None
        assert (seen.oldest_age or 0) < 30
        arrived = len(arrivals.started)
        fleet.until(lambda: find_drain(drain.pk).phase == "done", "every run has come to a checkpoint")
        fleet.until(lambda: len(arrivals.started) > arrived + 10, "others arrive all the time")
        assert taken() == before, "no new run was taken"
        assert not Run.objects.filter(session__isnull=False).exists()
        last = arrivals.started[-1]
        fleet.until(lambda: Run.objects.get(id=last).reason == "gate agent:slow: deploy 8", "they say what stops them")
        assert progress(find_drain(drain.pk)).at_gate >= 10
        # everything starts anew: the drain is in the database
        sweeper.send(signal.SIGKILL)
        for worker in workers:
            worker.send(signal.SIGKILL)
        connection.close()
        server.stop(signal.SIGQUIT)
        restarted = server.start()
        for worker in workers:
            fleet.end(worker)
        fleet.sweeper()
        again = fleet.worker("--concurrency", "20")
        fleet.await_heartbeat(again)
        arrived = len(arrivals.started)
        fleet.until(lambda: len(arrivals.started) > arrived + 5, "others arrive all the time")
        assert taken() == before, "nor does a new worker take any"
        assert [one.pk for one in in_force()] == [drain.pk]
    lift_drain(drain_id=drain.pk, reason="deployed", actor="olga")
    for run_id in arrivals.started:
        assert_done_once(ledger, ends(fleet, run_id, within=120))
    restarted.returncode = 0  # the fixture stops it


def test_at_the_limit_it_falls_back_to_recovery(fleet: Fleet, ledger: Ledger) -> None:
    """Exit 3 with a list; the process ends, and after the drain another worker finds out what its call did."""
    worker = fleet.worker()
    fleet.sweeper()
    run_id = start("slow", {"seconds": 60})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    command = fleet.run("drain", "--scope", "agent:slow", "--timeout", "3", "--wait")
    assert command.dies() == 3, command.said()
    said = command.said()
    assert str(run_id) in said and f"{run_id}:1" in said and "handed over" in said
    assert "below the longest timeout in the scope" in said
    drain = Drain.objects.get()
    assert said.splitlines()[-1] == str(drain.pk) or str(drain.pk) in said.splitlines()
    assert Run.objects.get(id=run_id).status == "running", "nobody is fenced"
    worker.send(signal.SIGKILL)
    fleet.bury(worker)
    fleet.worker()
    fleet.until(lambda: Run.objects.get(id=run_id).status == "held", "it is taken over, and stops at the gate")
    assert Run.objects.get(id=run_id).reason == "gate agent:slow: drained at the shell"
    lifted = fleet.run("undrain", "--scope", "agent:slow")
    assert lifted.dies() == 0, lifted.said()
    assert_done_once(ledger, ends(fleet, run_id))


def test_a_worker_that_is_killed_meanwhile_has_brought_nothing_to_a_checkpoint(fleet: Fleet, ledger: Ledger) -> None:
    """A pipeline hears that its runs were left, each with its call, though nothing is in flight any more."""
    worker = fleet.worker()
    fleet.sweeper()
    run_id = start("slow", {"seconds": 60})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    command = fleet.run("drain", "--scope", "agent:slow", "--timeout", "8", "--wait")
    fleet.until(Drain.objects.exists, "it is ordered")
    worker.send(signal.SIGKILL)
    fleet.bury(worker)
    assert command.dies() == 3, command.said()
    said = command.said()
    assert f"{run_id}:1" in said and "(lost)" in said and "1 of a lost worker" in said, said
    assert Drain.objects.get().phase == "handed_over"


def test_a_pipeline_waits_until_nothing_is_in_flight(fleet: Fleet, ledger: Ledger) -> None:
    fleet.worker()
    fleet.sweeper()
    run_id = start("slow", {"seconds": 3})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    command = fleet.run("drain", "--scope", "all", "--timeout", "60", "--reason", "deploy 8", "--wait", "--json")
    assert command.dies() == 0, command.said()
    assert '"phase": "done"' in command.said()
    assert "1 in" in command.said(), "it tells what is left"
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("held", "gate all: deploy 8")
    assert [e.kind for e in entries_of(run_id)].count("OBS") == 1
    assert fleet.run("undrain").dies() == 0
    assert_done_once(ledger, ends(fleet, run_id))


def test_ctrl_c_leaves_the_drain_in_force_and_calling_it_off_ends_a_wait(fleet: Fleet, ledger: Ledger) -> None:
    fleet.worker()
    run_id = start("slow", {"seconds": 30})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    command = fleet.run("drain", "--scope", "agent:slow", "--timeout", "300", "--wait")
    fleet.until(lambda: Drain.objects.exists() and "slow" in command.said(), "it waits")
    command.send(signal.SIGINT)
    assert command.dies() == 130, command.said()
    assert "stays in force" in command.said() and "undrain" in command.said()
    drain = Drain.objects.get()
    assert drain.gate.lifted_at is None
    lift_drain(drain_id=drain.pk, reason="again", actor="olga")
    command = fleet.run("drain", "--scope", "agent:slow", "--timeout", "300", "--wait")
    fleet.until(lambda: Drain.objects.count() == 2, "it waits")
    lift_drain(drain_id=Drain.objects.latest("id").pk, reason="not now", actor="olga")
    assert command.dies() == 1, command.said()


def test_a_wait_outlives_a_database_that_is_away(fleet: Fleet, ledger: Ledger, relay: tuple[Relay, str]) -> None:
    between, dsn = relay
    fleet.worker()
    fleet.sweeper()
    run_id = start("slow", {"seconds": 30})
    fleet.until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    command = fleet.run("drain", "--scope", "agent:slow", "--timeout", "20", "--wait", DATABASE_URL=dsn)
    fleet.until(lambda: Drain.objects.exists() and "1 in" in command.said(), "it waits")
    between.frozen.set()
    fleet.until(lambda: "does not answer" in command.said(), "it says that the database is away")
    between.frozen.clear()
    assert command.dies() == 3, command.said()
    assert "Traceback" not in command.said()
