"""A random walk over everything at once. `HOLDFAST_MACHINE_EXAMPLES=500` walks for longer."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import runs.engine.worker
from tests.machine.families import Families
from tests.machine.judge import WatchedSlice
from tests.machine.machine import Machine
from tests.machine.world import WORLD
from tests.rig.crew import Crew

EXAMPLES = int(os.environ.get("HOLDFAST_MACHINE_EXAMPLES", "30"))
STEPS = int(os.environ.get("HOLDFAST_MACHINE_STEPS", "25"))
# What a walk has to have met, to be worth something.
MET = (
    "died", "stolen", "interfered", "acted", "lost before", "done", "failed",
    "cancelled", "call succeeded", "call failed", "sleep succeeded", "signal succeeded", "signal expired",
    "ask succeeded", "ask expired", "child succeeded", "child cancelled", "call expired", "edited", "forked",
    "repeated", "answered",
)  # fmt: skip


@pytest.mark.slow
def test_no_relative_repeats_what_another_did_without_somebodys_word(machine_crew: Crew, monkeypatch: Any) -> None:
    walk(Families, machine_crew, monkeypatch)


@pytest.mark.slow
def test_every_promise_is_kept_in_any_order_of_events(machine_crew: Crew, monkeypatch: Any) -> None:
    walk(Machine, machine_crew, monkeypatch)
    often = EXAMPLES > 100  # what the clock decides is met now and then: only a long walk can ask for all of it
    missed = [what for what in MET if often and not WORLD.tally[what]]
    assert not missed, (missed, WORLD.tally)
    print(dict(sorted(WORLD.tally.items())))


def walk(machine: type[Machine], crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.engine.worker, "Slice", WatchedSlice)
    machine.crew = crew
    how = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize="HOLDFAST_MACHINE_EXAMPLES" not in os.environ,
        phases=[Phase.generate, *([Phase.shrink] if EXAMPLES > 100 else [])],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(machine, settings=how)
