"""What an agent's code sees of its run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from runs.slots import Signal, Slot

if TYPE_CHECKING:
    from runs.state import RunState


class RunView:
    """What an agent's code sees of its run: `decide(state)`, a flow's `run`, a model function's `state`."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._now: datetime | None = None

    @property
    def id(self) -> UUID:
        """The same in a fork as in what it was forked from: what was decided with it is decided again."""
        return self._state.root

    @property
    def input(self) -> Any:
        return self._state.input

    @property
    def calls(self) -> list[Slot]:
        return self._of("call")

    def call(self, id: str) -> Slot | None:
        """The last call that the agent gave this id."""
        return next((slot for slot in self._newest_calls() if slot.id == id), None)

    @property
    def last(self) -> Slot | None:
        return next(self._newest_calls(), None)

    @property
    def answers(self) -> list[Slot]:
        """The questions that were asked; an answered one has its answer as `result`."""
        return self._of("ask")

    @property
    def children(self) -> list[Slot]:
        """The runs that this one spawned: `outcome`, `result`, `error` of each."""
        return self._of("child")

    @property
    def waits(self) -> list[Slot]:
        """Sleeps and waits for signals: `outcome` is succeeded, expired or cancelled, `result` a signal's payload."""
        return [slot for slot in self._state.slots.values() if slot.kind in ("sleep", "signal")]

    @property
    def signals(self) -> list[Signal]:
        """Every signal that came, in order: `name`, `payload`, `id`."""
        return self._state.signals

    def _newest_calls(self) -> Iterator[Slot]:
        """The newest first, without going through all of a long run's for it."""
        return (slot for slot in reversed(self._state.slots.values()) if slot.kind == "call")

    def _of(self, kind: str) -> list[Slot]:
        return [slot for slot in self._state.slots.values() if slot.kind == kind]

    @property
    def plan(self) -> list[Any]:
        return self._state.plan

    @property
    def usage(self) -> dict[str, float]:
        return self._state.usage

    @property
    def now(self) -> datetime:
        """The time of the last entry that the decision is made from."""
        return self._now or self._state.time_of(self._state.committed_seq)

    def random(self, label: str) -> float:
        """A number in [0, 1) that is the same at each replay, and in each fork."""
        return random.Random(f"{self._state.root}:{label}").random()
