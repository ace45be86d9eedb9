"""A request to a model that is under way at a drain or a stop: named, waited for within the grace, else asked again."""

from __future__ import annotations

import signal
from uuid import UUID

import pytest

from recovery.in_flight import MODEL, blockers_of, in_flight, longest_timeout, reach_of
from runs.queries import entries_of
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.providers import Providers, providers
from tests.rig.talks import talking

__all__ = ["providers", "talking"]
pytestmark = pytest.mark.slow
AGENT = "one-chat-whole"


def asking(fleet: Fleet, providers: Providers) -> UUID:
    """A run whose model was asked, and does not answer yet."""
    providers.fault("hold", model="one", times=1, after=0)
    run_id = start(AGENT, "Write to them.")
    fleet.until(lambda: bool(providers.asked("one")), "the model is asked")
    return run_id


def kinds(run_id: UUID) -> list[str]:
    return [entry.kind for entry in entries_of(run_id)]


def test_it_is_shown_with_its_timeout_and_a_stop_lets_it_finish(talking: Fleet, providers: Providers) -> None:
    first = talking.worker(HOLDFAST_GRACE_SECONDS="60")
    run_id = asking(talking, providers)
    reach = reach_of(f"agent:{AGENT}")
    (one,) = in_flight(reach)
    assert (one.does, one.doing) == (MODEL, "model openai-chat:one") and one.call is not None
    assert (one.call.ends_by - one.call.since).total_seconds() == 120 and one.call.attempt == 1
    assert [blocker.name for blocker in blockers_of([one])] == ["model openai-chat:one"]
    longest = longest_timeout(reach, [one])
    assert longest is not None and longest.seconds == 120
    first.send(signal.SIGTERM)
    talking.until(lambda: bool(drains(talking)), "it drains")
    assert kinds(run_id) == ["START", "ATTEMPT"]
    providers.release()
    assert first.dies() == 0, first.said()
    assert kinds(run_id)[:3] == ["START", "ATTEMPT", "PLAN"], "the answer was waited for"
    talking.worker()
    talking.sweeper()
    assert talking.rests(run_id).status == "done"
    assert len(providers.asked("one")) == 2 and "lost" not in str(entries_of(run_id)[1:])


def drains(fleet: Fleet) -> list[tuple[object, ...]]:
    return fleet.ask("SELECT 1 FROM runs_workersession WHERE draining_at IS NOT NULL AND ended_at IS NULL")


def test_one_that_outlasts_the_grace_is_asked_again_and_told_of(talking: Fleet, providers: Providers) -> None:
    first = talking.worker(HOLDFAST_GRACE_SECONDS="1")
    run_id = asking(talking, providers)
    first.send(signal.SIGTERM)
    assert first.dies() == 1, "it leaves at the end of its grace"
    talking.end(first)
    talking.worker()
    talking.sweeper()
    assert talking.rests(run_id).status == "done"
    first_try, again = [entry.body for entry in entries_of(run_id) if entry.kind == "ATTEMPT" and entry.step is None][
        :2
    ]
    assert again["digest"] == first_try["digest"] and again["attempt"] == 2
    assert again["lost"]["seq"] == 2 and again["lost"]["input_tokens"] > 0
    assert again["lost"]["cost"] is None, "nobody knows the price of this one"
