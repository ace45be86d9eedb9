"""A rolling deploy: the code that was shipped before and this code serve the same runs side by side, on one database.

The code of before is taken from the history of this repository, at the commit named in tests/rolling/BEFORE. Its
journals and this code's are read by each other, whichever of them goes on with a run.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from journal.entries import Entry
from journal.verify import verify_run
from runs.approvals import decide_approval
from runs.commands import answer_ask, signal_run, start_run
from runs.models import Run, WorkerSession
from runs.queries import entries_of
from runs.registry import agents, announce
from tests.config.external import missing
from tests.rig.fleet import Fleet
from tests.rig.ledger import ROOT

BEFORE = (Path(__file__).parent / "BEFORE").read_text().split()[0]
SHIPPED = Path(__file__).parent / "shipped"
STEPS = 300  # half a minute of work, unless they are told to hurry


@pytest.fixture(scope="session")
def code_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the commit, in a folder of its own."""
    archive = tmp_path_factory.mktemp("before") / "tree.tar"
    made = subprocess.run(["git", "archive", "-o", str(archive), BEFORE], cwd=ROOT, capture_output=True, text=True)
    if made.returncode != 0:
        missing("history", f"commit {BEFORE} of the code that was shipped before")
    with tarfile.open(archive) as tree:
        tree.extractall(archive.parent, filter="data")
    return archive.parent


@dataclass
class Deploy:
    """Workers of both codes on the fleet's database. `side`: before or after."""

    fleet: Fleet
    trees: dict[str, Path]
    environment: dict[str, str]
    books: Path
    alive: list[subprocess.Popen[bytes]] = field(default_factory=list)
    count: Iterator[int] = field(default_factory=itertools.count)

    def manage(self, side: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(self.trees[side] / "manage.py"), *words]
        with (self.books / f"{words[0]}-{side}-{next(self.count)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.trees[side], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.alive.append(process)
        return process

    def worker(self, side: str) -> subprocess.Popen[bytes]:
        """Once it serves."""
        name = f"{side}-{next(self.count)}"
        process = self.manage(side, "worker", "--name", name)

        def serves() -> bool:
            assert process.poll() is None, self.said()
            return WorkerSession.objects.filter(name=name).exists()

        self.fleet.until(serves, f"{name} serves")
        return process

    def start(self, side: str, agent: str, given: object) -> UUID:
        process = subprocess.run(
            [sys.executable, str(self.trees[side] / "manage.py"), "start", agent, "--input", json.dumps(given)],
            cwd=self.trees[side], env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        return UUID(process.stdout.split()[-1])

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, self.said()

    def said(self) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in sorted(self.books.glob("*.log")))

    def close(self) -> None:
        for process in self.alive:
            if process.poll() is None:
                process.kill()
            process.wait(60)


@pytest.fixture
def deploy(
    fleet: Fleet, code_before: Path, tmp_path: Path, settings: object, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deploy]:
    monkeypatch.syspath_prepend(str(SHIPPED))
    settings.HOLDFAST_AGENTS = ("rolled",)  # type: ignore[attr-defined]
    agents.cache_clear()
    announce()
    books = tmp_path / "books"
    books.mkdir()
    environment = os.environ | fleet.environment | {
        "HOLDFAST_AGENTS": "rolled", "PYTHONPATH": str(SHIPPED), "ROLLED_BOOKS": str(books),
        "HOLDFAST_LEASE_SECONDS": "5",
    }  # fmt: skip
    deploy = Deploy(fleet, {"before": code_before, "after": ROOT}, environment, books)
    fleet.sweeper()
    yield deploy
    deploy.close()


def begin(agent: str) -> UUID:
    return start_run(agent=agent, input={"steps": STEPS}, actor="olga")[0].id


def latest(run: UUID) -> Entry:
    return entries_of(run)[-1]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_both_codes_drive_the_same_runs_there_and_back(deploy: Deploy) -> None:
    fleet = deploy.fleet
    before = deploy.worker("before")
    waiting = [deploy.start("before", "waits", {}), deploy.start("after", "waits", {})]
    runs = [begin("steps"), begin("decides"), begin("thinks")]
    fleet.until(lambda: all(len(entries_of(run)) > 5 for run in [*runs, *waiting]), "the code of before has begun")

    after = deploy.worker("after")  # side by side
    runs += [begin("steps"), begin("decides")]
    deploy.stop(before)  # the deploy: runs that it held go on under the new code
    fleet.until(lambda: all(latest(run).epoch > 1 for run in runs[:3]), "the new code goes on with them")
    assert not any(latest(run).kind == "DONE" for run in runs[:3]), "too quick to be taken over: raise STEPS"

    before = deploy.worker("before")  # the way back
    deploy.stop(after)
    for run in waiting:
        signal_run(run_id=run, name="go", payload={"by": "olga"}, actor="olga")
    fleet.until(lambda: all(any(e.kind == "CHILD" for e in entries_of(run)) for run in waiting), "children are born")
    after = deploy.worker("after")
    deploy.stop(before)
    (deploy.books / "hurry").touch()

    fleet.until(lambda: all(asks(run) for run in waiting), "questions are asked")
    for run in waiting:
        answer_ask(run_id=run, seq=asks(run), value=3, actor="olga")
    fleet.until(lambda: all(approval(run) for run in waiting), "approvals are asked for")
    deploy.worker("before")
    deploy.stop(after)  # approved under the code of before, asked for by the new one
    for run in waiting:
        approve(run)
    ended = [fleet.rests(run) for run in [*runs, *waiting]]

    assert [run.status for run in ended] == ["done"] * len(ended), [(run.reason, run.agent) for run in ended]
    for run in Run.objects.all():
        assert verify_run(run.id) == []
    check_books(deploy.books)


def asks(run: UUID) -> int:
    return next((e.seq for e in entries_of(run) if e.kind == "ASK"), 0)


def approval(run: UUID) -> dict[str, Any]:
    record = next(iter(Run.objects.get(id=run).intents), {})
    return record if record.get("state") == "awaiting_approval" else {}


def approve(run: UUID) -> None:
    asked = approval(run)
    decide_approval(
        run_id=run, seq=asked["seq"], verdict="approve", digest=asked["digest"], note="seen", actor="ada",
        groups=frozenset({"approver"}),
    )  # fmt: skip


def check_books(books: Path) -> None:
    """Each key acted once: the other side keeps to it, and no call got a second key for the same step."""
    effects = [
        name for name in books.iterdir() if name.suffix != ".log" and name.name not in ("calls", "asked", "hurry")
    ]
    entries = [entry for run in Run.objects.all() for entry in entries_of(run.id)]
    wanted = sum(entry.kind == "TOOL_CALL" and entry.body["effect"] == "keyed" for entry in entries)
    assert len(effects) == wanted
    asked = (books / "asked").read_text().splitlines()
    answered = [entry for entry in entries if entry.kind == "PLAN" and entry.actor == "model"]
    assert len(answered) == len(set(asked)), "what the model said is not asked for again"
