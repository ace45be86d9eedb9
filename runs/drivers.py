"""Drivers: from a state to the next moves. Three of them: decide, flow, and the model slot."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from journal.encoding import canonical, decode, encode
from journal.entries import Entry, Kind
from runs.agents import Agent, FunctionModel
from runs.moves import Fail, Finish, Move, as_moves, as_record, from_record
from runs.outcomes import CallFailed, describe
from runs.state import RunState, RunView, Slot

log = logging.getLogger("holdfast.drivers")


class Diverged(Exception):
    """The code decides otherwise than the journal says."""

    def __init__(self, seq: int, recorded: Any, attempted: Any) -> None:
        super().__init__(f"entry {seq}: recorded {recorded}, attempted {attempted}")
        self.seq, self.recorded, self.attempted = seq, recorded, attempted


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The next decision is the model's: a request is made, and journaled before it is used."""

    model: FunctionModel


class Driver(Protocol):
    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Decide again what is recorded, before any effect. Raises Diverged."""

    def decide(self, state: RunState) -> list[Move] | ModelRequest:
        """The next moves; called when no intent is unsettled."""


def driver_for(agent: Agent, state: RunState) -> Driver:
    if agent.flow is not None:
        return FlowDriver(agent, state)
    if isinstance(agent.decide, FunctionModel):
        return ModelDriver(agent.decide)
    return DecideDriver(agent)


def compare(seq: int, recorded: Sequence[dict[str, Any]], attempted: Sequence[Move]) -> None:
    given = [as_record(move) for move in attempted]
    # Compared as they read back: an Enum or a dataclass in the arguments comes out of the journal as a plain value.
    # One by one, so that the path in the description of what cannot be kept is the same.
    same = len(recorded) == len(given) and all(map(alike, recorded, given))
    if not same:
        raise Diverged(seq, list(recorded), given)


def alike(recorded: dict[str, Any], attempted: dict[str, Any]) -> bool:
    return recorded == attempted or canonical(recorded) == canonical(decode(encode(attempted)))


class DecideDriver:
    """A pure function of the state."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def decide(self, state: RunState) -> list[Move]:
        assert callable(self.agent.decide)
        return as_moves(self.agent.decide(RunView(state)))

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Only when the code has changed since the run started: each decision costs a fold of its prefix."""
        if state.code == self.agent.code_digest:
            return
        prefix = RunState(state.run_id)
        made = {decision.seq: decision.steps for decision in state.decisions}
        for entry in entries:
            if entry.kind == Kind.PLAN and made.get(entry.seq):
                prefix.committed_seq = entry.body["seen"]
                recorded = [state.slots[step].recorded for step in made[entry.seq]]
                compare(entry.seq, recorded, self._again(prefix))
            prefix.apply(entry)

    def _again(self, prefix: RunState) -> list[Move]:
        try:
            return self.decide(prefix)
        except BaseException as error:
            return [Fail(f"the agent's code raised {describe(error)}")]


class ModelDriver:
    """The model decides. What it said is in the journal, and is never asked for again."""

    def __init__(self, model: FunctionModel) -> None:
        self.model = model

    def decide(self, state: RunState) -> list[Move] | ModelRequest:
        pending = state.pending_moves
        return [from_record(record) for record in pending] if pending else ModelRequest(self.model)

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        return None


class FlowDriver:
    """A generator, replayed from the journal up to its last recorded yield, then driven on."""

    def __init__(self, agent: Agent, state: RunState) -> None:
        assert agent.flow is not None
        self.view = RunView(state)
        self.flow: Generator[Any, Any, Any] = agent.flow(self.view)
        self.count = 0  # decisions replayed so far
        self.first_step = 1  # of the yield that the generator stands at
        self.standing: list[Move] | None = None
        self.single = True

    def decide(self, state: RunState) -> list[Move]:
        """Advances over every recorded yield. An empty list: the last recorded yield is not settled yet."""
        self.view._state = state
        if self.standing is None:
            self._advance(state, None)
        while True:
            assert self.standing is not None
            slots = self._slots_of_standing(state)
            if slots is None:
                return self.standing
            if not all(slot.settled for slot in slots):
                return []
            self.first_step += len(slots)
            self._advance(state, slots)

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        self.decide(state)

    def _slots_of_standing(self, state: RunState) -> list[Slot] | None:
        """The recorded steps of the yield that the generator stands at, compared with it; None: not recorded."""
        if self.first_step not in state.slots:
            return None
        assert self.standing is not None
        slots = [state.slots[step] for step in state.decisions[self.count - 1].steps]
        compare(slots[0].seq, [slot.recorded for slot in slots], self.standing)
        return slots

    def _advance(self, state: RunState, settled: list[Slot] | None) -> None:
        recorded = state.decisions[self.count] if self.count < len(state.decisions) else None
        made = recorded is not None and recorded.steps
        self.view._now = state.time_of(recorded.seen if recorded and made else state.committed_seq)
        self.count += 1
        try:
            yielded = self._send(settled)
            self.single = not isinstance(yielded, (list, tuple))
            self.standing = as_moves(yielded)
        except StopIteration as end:
            self.standing = [Finish(end.value)]
        except CallFailed as failed:
            self.standing = [Fail(str(failed))]
        except BaseException as error:  # SystemExit and the like too: an agent's code ends its run, never the worker
            log.warning("run %s: a flow raised", state.run_id, exc_info=True)
            self.standing = [Fail(f"the agent's code raised {describe(error)}")]

    def _send(self, settled: list[Slot] | None) -> Any:
        if settled is None:
            return next(self.flow)
        failed = next((slot for slot in settled if slot.outcome != "succeeded"), None)
        if failed is not None:
            error = CallFailed(failed.tool, failed.outcome or "failed", failed.error or "", failed.step)
            return self.flow.throw(error)
        results = [slot.result for slot in settled]
        return self.flow.send(results[0] if self.single else results)
