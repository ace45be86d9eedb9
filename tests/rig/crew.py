"""Workers in this process, on the test's database; `turn` plays the sweep's part between them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db.models import Q
from django.db.models.functions import Now

from config.session_watch import END
from journal import crash
from journal.payloads import payload_store
from recovery.sweep import Sweep
from runs import sdk
from runs.engine.sessions import Session
from runs.engine.worker import Worker
from runs.models import ENDED, Run
from runs.queries import entries_of, state_of
from runs.registry import agents, announce
from runs.state import RunState
from tests.rig.ledger import wait_until
from tests.rig.robot import Robot, tree_of


class CrashHere(crash.Crashed):
    """The worker object is abandoned at this point."""


class Crew:
    """Makes workers, loses them, and drives runs until they rest."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.workers: list[Worker] = []
        self.standing: Worker | None = None
        self.hired = 0
        self.messages: deque[tuple[UUID, str]] = deque()
        self._sweep = Sweep(dsn, 3600.0, 0.05, self.take)  # it ends no session: `lose` does
        self._supervisor: psycopg.Connection[Any] | None = None

    def take(self, run_id: UUID, release_id: str) -> bool:
        self.messages.append((run_id, release_id))
        return True

    def hire(self, lease: float = 30.0) -> Worker:
        self.hired += 1
        session = Session(f"w{self.hired}", "threads", 4, "local", lease, list(agents()), {})
        worker = Worker(self.dsn, session, agents(), payload_store(), self.take)
        self.workers.append(worker)
        return worker

    def lose(self, worker: Worker) -> None:
        """As if its process had died and the supervisor had seen it. Calls end first: no thread can be killed."""
        wait_until(lambda: worker.calls.idle, "the lost worker's calls end")
        if self._supervisor is None:
            self._supervisor = psycopg.connect(self.dsn, autocommit=True)
        self._supervisor.execute(END, [[worker.session.id]])
        worker.close()
        self.workers.remove(worker)

    def drive(self, run_id: UUID, worker: Worker | None = None, seconds: float = 60.0) -> Run:
        """Until the run has ended or only a person can release it."""
        if worker is None:
            worker = self.standing = self.standing or self.hire()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = Run.objects.get(id=run_id)
            if run.status in ENDED or (run.session_id is None and not soon(run) and run.status != "queued"):
                return run
            if run.wake_at is None or run.wake_at.timestamp() <= time.time() + 0.01:
                worker.advance(run_id, run.release_id)
            else:
                time.sleep(min(0.05, max(0.0, run.wake_at.timestamp() - time.time())))
        raise AssertionError(f"the run does not rest: {Run.objects.get(id=run_id).__dict__}, {journal(run_id)}")

    def advance(self, run_id: UUID) -> Run:
        """One slice."""
        worker = self.standing = self.standing or self.hire()
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
        return Run.objects.get(id=run_id)

    def drive_tree(self, root: UUID, seconds: float = 60.0) -> Run:
        """Every run that has something to do, until the root has ended or nobody has."""
        worker = self.standing = self.standing or self.hire()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            due = Q(status="queued") | Q(wake_at__lte=Now())
            ready = list(Run.objects.filter(due, session=None, ended_at=None).values_list("id", "release_id"))
            for run_id, release_id in ready:
                worker.advance(run_id, release_id)
            run = Run.objects.get(id=root)
            if run.status in ENDED or not (ready or any(map(soon, Run.objects.filter(wake_at__isnull=False)))):
                return run
        raise AssertionError(f"the tree does not rest: {Run.objects.get(id=root).__dict__}, {journal(root)}")

    def drive_out(self, robot: Robot, *roots: UUID, worker: Worker | None = None, seconds: float = 90.0) -> None:
        """Every run of these trees to its end: the robot does what they wait for, a sweep what nobody was told."""
        if worker is None:
            worker = self.standing = self.standing or self.hire()
        deadline = time.monotonic() + seconds
        while runs := [run for run in tree_of(*roots) if run.status not in ENDED]:
            assert time.monotonic() < deadline, f"not at its end: {[told(run) for run in runs]}"
            if not self._advance_ready(runs, worker) and not robot.serve(*roots):
                self._sweep.once()
                time.sleep(0.01)
        self._sweep.once()  # for what a worker left behind whose death came after the end

    def _advance_ready(self, runs: list[Run], worker: Worker) -> int:
        """One slice of each that no live session has and that is due; how many those were."""
        due = Q(session=None) & (Q(status="queued") | Q(wake_at__lte=Now())) | Q(session__ended_at__isnull=False)
        ready = list(Run.objects.filter(due, id__in=[run.id for run in runs], ended_at=None))
        for run in ready:
            worker.advance(run.id, run.release_id)
        return len(ready)

    def close(self) -> None:
        crash.hook = None
        for worker in self.workers:
            worker.close()
        self._sweep.close()
        if self._supervisor is not None:
            self._supervisor.close()


def soon(run: Run) -> bool:
    """Whether it moves by itself. What waits for approval expires some day: that is not waited for."""
    if run.status == "awaiting_approval" and run.wake_at is not None:
        return run.wake_at.timestamp() < time.time() + 5
    return run.wake_at is not None


def start(agent: str, input: Any = None, **given: Any) -> UUID:
    return sdk.start(agent, input, **given)


def told(run: Run) -> tuple[object, ...]:
    return run.id, run.status, run.reason, [(e.seq, e.epoch, e.kind, e.step, e.body) for e in entries_of(run.id)]


def journal(run_id: UUID) -> list[str]:
    """The kinds, each with its step: what a run's story is, at a glance."""
    return [f"{e.kind}:{e.step}" if e.step else str(e.kind) for e in entries_of(run_id)]


def state(run_id: UUID) -> RunState:
    return state_of(run_id)


@pytest.fixture
def crew(dsn: str, settings: Any) -> Iterator[Crew]:
    """On the agents of tests.rig.agents, whose releases are announced."""
    settings.HOLDFAST_AGENTS = ("tests.rig.agents",)
    agents.cache_clear()
    payload_store.cache_clear()
    announce()
    crew = Crew(dsn)
    yield crew
    crew.close()
    agents.cache_clear()
