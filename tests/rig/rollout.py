"""Real workers of two versions of one agent (tests/rig/moved.py), and a run of the old one that waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from runs.commands import signal_run
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from tests.crash.proof import assert_done_once
from tests.rig.crew import start
from tests.rig.fleet import Fleet, Hand
from tests.rig.ledger import Ledger

AGENTS = "tests.rig.moved"


@dataclass
class Rollout:
    fleet: Fleet
    ledger: Ledger

    def worker(self, version: str, crash: str = "") -> Hand:
        """Once it is registered."""
        hand = self.fleet.worker(crash=crash, MOVED_VERSION=version)
        self.fleet.await_session(hand)
        return hand

    def waiting(self, agent: str = "moved") -> UUID:
        """A run that has charged under version 7 and waits for its signal; a worker has to be there."""
        run_id = start(agent, release="7")
        assert self.fleet.rests(run_id).status == "waiting"
        return run_id

    def pin(self, run_id: UUID, crash: str = "", release: str = "8") -> Hand:
        words = ("pin", str(run_id), "--release", release, "--reason", "v7 is wrong")
        return self.fleet.run(*words, HOLDFAST_CRASH=crash)

    def is_moved(self, run_id: UUID) -> bool:
        """Whether the journal says so; the row says the same."""
        pins = [entry.body["release"] for entry in entries_of(run_id) if entry.kind == "PIN"]
        run = Run.objects.select_related("release").get(id=run_id)
        assert (run.release.version == "8") == bool(pins) and run.release_id in (pins or [run.release_id])
        assert len(pins) <= 1
        return bool(pins)

    def goes_on(self, run_id: UUID, version: int = 8) -> Run:
        """It gets its signal and ends, each charge made once: the first by version 7, the other by this one."""
        signal_run(run_id=run_id, name="go", actor="olga")
        run = self.fleet.rests(run_id)
        assert_done_once(self.ledger, run)
        assert [self.charged(run_id, step) for step in (1, 3)] == [[7], [version]]
        assert entries_of(run_id)[-1].body == {"result": version}
        return run

    def charged(self, run_id: UUID, step: int) -> list[int]:
        return [effect["args"]["amount_cents"] for effect in self.ledger.effects(f"{run_id}:{step}")]


@pytest.fixture
def rollout(fleet: Fleet, ledger: Ledger, settings: Any) -> Iterator[Rollout]:
    settings.HOLDFAST_AGENTS = (AGENTS,)
    agents.cache_clear()
    announce()
    fleet.environment["HOLDFAST_AGENTS"] = AGENTS
    yield Rollout(fleet, ledger)
    agents.cache_clear()
