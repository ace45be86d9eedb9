"""Agents' code that decides again, in a thread that can be given up: it may never return."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from recovery.redecided import Result
from recovery.replays import LONGEST
from runs.engine.calls import CallPool, Ended, Raised
from runs.redeciding import Watch

LOOK_EVERY = 0.05


class GivenUp(Exception):
    """The agent's code did not decide in time."""


@dataclass(slots=True)
class Deciding:
    """A job of a call thread. `began`: when the agent's code was last asked, and for which entry (monotonic)."""

    decide: Callable[[Watch], Result]
    calls: CallPool
    began: tuple[int, float] = field(default_factory=lambda: (0, time.monotonic()))
    how: Ended | None = None
    over: Event = field(default_factory=Event)
    left: bool = False

    def watch(self, seq: int) -> None:
        if self.left:
            raise SystemExit  # nobody waits for it any more
        self.began = (seq, time.monotonic())

    def run(self) -> Result:
        return self.decide(self.watch)

    def ended(self, how: Ended) -> None:
        self.how = how
        self.over.set()
        if self.left:
            self.calls.came_back()

    def leave(self) -> None:
        """Its thread cannot be stopped: it is counted as lost until it comes back."""
        self.left = True
        self.calls.abandon()


def decide_within(
    calls: CallPool, limit: float, decide: Callable[[Watch], Result], stops: Callable[[], bool] = lambda: False
) -> Result | None:
    """What `decide` found; None if `stops` said meanwhile that nobody is to wait. `limit`: seconds for one decision.

    Raises GivenUp, and what `decide` raises.
    """
    job = Deciding(decide, calls)
    calls.start(job)
    ends = time.monotonic() + LONGEST
    while not job.over.wait(LOOK_EVERY):
        now = time.monotonic()
        seq, since = job.began
        if stops():
            job.leave()
            return None
        if now - since >= limit:
            job.leave()
            raise GivenUp(f"the agent's code did not decide within {limit:g} s (what entry {seq} decided)")
        if now >= ends:
            job.leave()
            raise GivenUp(f"it was not decided within {LONGEST:g} s (it had come to entry {seq})")
    if isinstance(job.how, Raised):
        raise job.how.error
    assert job.how is not None
    found: Result = job.how.value
    return found
