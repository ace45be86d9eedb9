"""Real processes on the test's database and broker: workers that die at named points, sweepers, a supervisor's eye."""

from __future__ import annotations

import functools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from config.session_watch import END, WAKE_SWEEP
from journal.payloads import payload_store
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from runs.rest.wait import at_rest
from tests.rig.ledger import ROOT, Ledger

LEASE = 2.0
PATIENCE = 60.0  # seconds until a wait is in vain, on a busy machine too
SWEEP = 0.2


class Nursery:
    """The process that forks the others (tests/rig/nursery.py)."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", "tests.rig.nursery"]
        self._process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._births: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.codes: dict[int, int] = {}
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            news = json.loads(line)
            if "born" in news:
                self._births.put(news["born"])
            elif "died" in news:
                self.codes[news["died"]] = news["code"]

    def bear(self, words: list[str], environment: dict[str, str], log: Path, path: list[str]) -> int:
        order = {"words": words, "environment": environment, "log": str(log), "path": path}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        pid = self._births.get(timeout=60)
        self.codes.pop(pid, None)
        return pid

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@dataclass
class Hand:
    """One process of the fleet."""

    nursery: Nursery
    name: str
    pid: int
    log: Path
    session: UUID

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        return self.nursery.codes.get(self.pid)

    def send(self, which: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, which)

    def dies(self, within: float = PATIENCE) -> int:
        deadline = time.monotonic() + within
        while (code := self.code) is None:
            assert time.monotonic() < deadline, f"{self.name} still lives: {self.said()}"
            time.sleep(0.02)
        return code

    def said(self) -> str:
        """Its log, without Celery's banner."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(line for line in lines if not line.lstrip().startswith((".>", "---", "-- *", "- **")))


@dataclass
class Fleet:
    """`environment` is what every process of it finds."""

    nursery: Nursery
    dsn: str
    folder: Path
    environment: dict[str, str]
    hands: list[Hand] = field(default_factory=list)

    def run(self, *words: str, path: Sequence[str] = (), **more: str) -> Hand:
        """`manage.py` with these words; `path` goes before the modules' search path, `more` into the environment."""
        name, session = f"{words[0]}{len(self.hands) + 1}", uuid4()
        given = os.environ | self.environment | more | {"HOLDFAST_SESSION": str(session)}
        log = self.folder / f"{name}.log"
        pid = self.nursery.bear(list(words), given, log, list(path))
        hand = Hand(self.nursery, name, pid, log, session)
        self.hands.append(hand)
        return hand

    def worker(self, *words: str, crash: str = "", path: Sequence[str] = (), **more: str) -> Hand:
        """A worker process; `crash` is a point, or `point:n`. Its session is minted here, as the supervisor does."""
        name = f"w{len(self.hands) + 1}"
        return self.run("worker", "--name", name, *words, path=path, HOLDFAST_CRASH=crash, **more)

    def sweeper(self, crash: str = "") -> Hand:
        return self.run("sweep", HOLDFAST_CRASH=crash)

    def await_session(self, hand: Hand) -> None:
        """Until the worker's session is registered."""
        asked = "SELECT 1 FROM runs_workersession WHERE id = %s"
        self.until(lambda: self.ask(asked, hand.session), f"{hand.name} registers")

    def bury(self, hand: Hand, within: float = PATIENCE) -> None:
        """The supervisor saw the death, which has to be by SIGKILL, and ends the session at once."""
        assert hand.dies(within) == -signal.SIGKILL, hand.said()
        self.end(hand)

    def end(self, hand: Hand) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(END, [[hand.session]])
            conn.execute(WAKE_SWEEP)

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            return conn.execute(query, values).fetchall()

    def execute(self, statement: str, *values: Any) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(statement, values)

    def await_heartbeat(self, hand: Hand) -> None:
        """Until the worker has renewed its lease once more, and has read what that told it."""
        self.await_session(hand)
        beat = "SELECT heartbeat_at FROM runs_workersession WHERE id = %s"
        for _ in range(2):
            last = self.ask(beat, hand.session)
            self.until(functools.partial(self.changed, last, beat, hand.session), f"{hand.name} renews")

    def changed(self, last: list[tuple[Any, ...]], query: str, *values: Any) -> bool:
        return self.ask(query, *values) != last

    def until(self, holds: Callable[[], object], what: str, within: float = PATIENCE) -> None:
        """Waits for it; when it fails, the processes' own words are told."""
        deadline = time.monotonic() + within
        while not holds():
            assert time.monotonic() < deadline, f"not within {within:g} s: {what}\n{self.story()}"
            time.sleep(0.02)

    def kill_holder(self, run_id: UUID) -> None:
        """SIGKILL to the process that drives the run."""
        of = "SELECT s.pid FROM runs_run r JOIN runs_workersession s ON s.id = r.session_id WHERE r.id = %s"
        ((pid,),) = self.ask(of, run_id)
        os.kill(pid, signal.SIGKILL)

    def rests(self, run_id: UUID, within: float = PATIENCE) -> Run:
        """The run, once nothing happens to it any more by itself."""

        runs = Run.objects.select_related("release", "session")
        found: list[Run] = []

        def resting() -> bool:
            found[:] = [run := runs.get(id=run_id)]
            return at_rest(run) and run.status != "waiting_for_version" and run.session_id is None

        try:
            self.until(resting, f"run {run_id} rests", within)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{vars(found[0])}\n{entries_of(run_id)[-3:]}") from None
        return found[0]

    def story(self) -> str:
        """What the processes said, for a failing test."""
        return "\n".join(f"--- {hand.name} ({hand.code}): {hand.said()[-3000:]}" for hand in self.hands)

    def close(self) -> None:
        for hand in self.hands:
            if hand.code is None:
                with suppress(ProcessLookupError):  # it died of its crash point in this very moment
                    os.killpg(hand.pid, signal.SIGKILL)
        for hand in self.hands:
            hand.dies()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def fleet(
    nursery: Nursery, dsn: str, embedded_broker: str, ledger: Ledger, tmp_path: Path, settings: Any
) -> Iterator[Fleet]:
    """On the agents of tests.rig.agents, with short leases; every process is gone after the test."""
    settings.HOLDFAST_AGENTS = ("tests.rig.agents",)
    agents.cache_clear()
    payload_store.cache_clear()
    announce()
    environment = {
        "DATABASE_URL": dsn,
        "BROKER_URL": embedded_broker,
        "HOLDFAST_AGENTS": "tests.rig.agents",
        "HOLDFAST_DEMO": "0",
        "HOLDFAST_LEASE_SECONDS": str(LEASE),
        "HOLDFAST_SWEEP_SECONDS": str(SWEEP),
        "HOLDFAST_DATA": str(settings.HOLDFAST_DATA),
        **ledger.environment,
    }
    fleet = Fleet(nursery, dsn, tmp_path, environment)
    yield fleet
    fleet.close()
    agents.cache_clear()
