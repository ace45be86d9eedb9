"""Drivers: from a state to the next moves. Three of them: decide, flow, and the model slot."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from journal.encoding import canonical, decode, encode
from journal.entries import Entry, Kind
from runs.agents import Agent, FunctionModel
from runs.engine.sealing import sealed_moves
from runs.mistakes import line_of, raised
from runs.moves import Ask, Decided, Fail, Finish, Move, Won, as_decided, as_record, from_record
from runs.outcomes import CallFailed, describe
from runs.run_view import RunView
from runs.secrets import SecretUnreadable, opened, seals_in
from runs.slots import Decision, Slot
from runs.state import RunState

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

    def decide(self, state: RunState) -> Decided | ModelRequest:
        """The next moves; called when no step is unsettled."""


def driver_for(agent: Agent, state: RunState) -> Driver:
    if agent.flow is not None:
        return FlowDriver(agent, state)
    if isinstance(agent.decide, FunctionModel):
        return ModelDriver(agent.decide)
    return DecideDriver(agent)


def compare(made: Decision, slots: Mapping[int, Slot], attempted: Decided) -> None:
    """Raises Diverged if the recorded decision is not the one that would be made now."""
    recorded = [slots[step].recorded for step in made.steps]
    given = [as_record(move) for move in attempted.moves]
    # Compared as they read back: an Enum or a dataclass in the arguments comes out of the journal as a plain value.
    # One by one, so that the path in the description of what cannot be kept is the same.
    same = made.join == attempted.join and len(recorded) == len(given) and all(map(alike, recorded, given))
    if not same:
        raise Diverged(slots[made.steps[0]].seq, shown(recorded, made.join), shown(given, attempted.join))


def end_of(entries: Sequence[Entry]) -> Entry | None:
    """The DONE that the agent's own code decided, if the run has one."""
    last = entries[-1] if entries else None
    return last if last is not None and last.kind == Kind.DONE and "cancelled" not in last.body else None


def seen_by(done: Entry, times: Sequence[datetime]) -> int:
    """The last entry that was committed when the end was decided: what goes in one append has one time."""
    return next((seq for seq in range(done.seq - 1, 0, -1) if times[seq - 1] < done.recorded_at), 1)


def compare_end(done: Entry, attempted: Decided) -> None:
    """Raises Diverged if the run would end otherwise now, or not at all."""
    body = done.body
    recorded = {"finish": body["result"]} if "result" in body else {"fail": body["error"]["reason"]}
    given = [as_record(move) for move in attempted.moves]
    if len(given) != 1 or not alike(recorded, given[0]):
        raise Diverged(done.seq, [recorded], given)


def shown(records: list[dict[str, Any]], join: str) -> list[dict[str, Any]]:
    return [{"first": records}] if join == "first" else records


def alike(recorded: dict[str, Any], attempted: dict[str, Any]) -> bool:
    if recorded == attempted:
        return True
    again = decode(encode(attempted))
    return canonical(recorded) == canonical(again) or same_opened(recorded, again)


def same_opened(recorded: dict[str, Any], again: dict[str, Any]) -> bool:
    """A child's input is sealed where its agent says so, which the parent's code does not know."""
    try:
        return any(seals_in(recorded)) and canonical(opened(recorded)) == canonical(opened(again))
    except SecretUnreadable:
        return False


class DecideDriver:
    """A pure function of the state."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def decide(self, state: RunState) -> Decided:
        assert callable(self.agent.decide)
        return sealed_moves(self.agent, as_decided(self.agent.decide(RunView(state))))

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Only when the code has changed since the run started: each decision costs a fold of its prefix."""
        if state.code == self.agent.code_digest:
            return
        prefix = RunState(state.run_id)
        made = {decision.seq: decision for decision in state.decisions if decision.steps}
        done = end_of(entries)
        for entry in entries:
            if (decision := made.get(entry.seq)) is not None:
                prefix.committed_seq = decision.seen
                compare(decision, state.slots, self._again(prefix))
            elif entry is done:
                prefix.committed_seq = seen_by(done, prefix.times)
                compare_end(done, self._again(prefix))
            prefix.apply(entry)

    def _again(self, prefix: RunState) -> Decided:
        try:
            return self.decide(prefix)
        except BaseException as error:
            return Decided([Fail(raised(error))])


class ModelDriver:
    """The model decides. What it said is in the journal, and is never asked for again."""

    def __init__(self, model: FunctionModel) -> None:
        self.model = model

    def decide(self, state: RunState) -> Decided | ModelRequest:
        pending = state.pending_moves
        if not pending:
            return ModelRequest(self.model)
        return Decided([from_record(record) for record in pending], state.pending_join)

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        return None


class FlowDriver:
    """A generator, replayed from the journal up to its last recorded yield, then driven on."""

    def __init__(self, agent: Agent, state: RunState) -> None:
        assert agent.flow is not None
        self.agent = agent
        self.view = RunView(state)
        self.flow: Generator[Any, Any, Any] = agent.flow(self.view)
        self.count = 0  # decisions replayed so far
        self.first_step = 1  # of the yield that the generator stands at
        self.standing: Decided | None = None
        self.single = True

    def decide(self, state: RunState) -> Decided:
        """Advances over every recorded yield. No moves: the last recorded yield is not settled yet."""
        self.view._state = state
        if self.standing is None:
            self._advance(state, None)
        while True:
            assert self.standing is not None
            slots = self._slots_of_standing(state)
            if slots is None:
                return self.standing
            if not all(slot.settled for slot in slots):
                return Decided([])
            self.first_step += len(slots)
            self._advance(state, slots)

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        done = end_of(entries)
        if done is not None:
            state.committed_seq = seen_by(done, state.times)
        decided = self.decide(state)
        if done is not None:
            compare_end(done, decided)

    def _slots_of_standing(self, state: RunState) -> list[Slot] | None:
        """The recorded steps of the yield that the generator stands at, compared with it; None: not recorded."""
        if self.first_step not in state.slots:
            return None
        assert self.standing is not None
        made = state.decisions[self.count - 1]
        compare(made, state.slots, self.standing)
        return [state.slots[step] for step in made.steps]

    def _advance(self, state: RunState, settled: list[Slot] | None) -> None:
        recorded = state.decisions[self.count] if self.count < len(state.decisions) else None
        made = recorded is not None and recorded.steps
        self.view._now = state.time_of(recorded.seen if recorded and made else state.committed_seq)
        self.count += 1
        try:
            yielded = self._send(settled)
            while isinstance(yielded, (list, tuple)) and not yielded:  # nothing to wait for, as of no children at all
                yielded = self.flow.send([])
            self.single = not isinstance(yielded, (list, tuple))
            self.standing = self._decided(yielded)
        except StopIteration as end:
            self.standing = Decided([Finish(end.value)])
        except CallFailed as failed:
            self.standing = Decided([Fail(str(failed))])
        except BaseException as error:  # SystemExit and the like too: an agent's code ends its run, never the worker
            log.warning("run %s: a flow raised", state.run_id, exc_info=True)
            self.standing = Decided([Fail(raised(error))])

    def _decided(self, yielded: Any) -> Decided:
        """Raises TypeError with the line of the yield."""
        try:
            return sealed_moves(self.agent, as_decided(yielded))
        except TypeError as error:
            raise TypeError(f"{error} ({line_of(self.flow)})") from None

    def _send(self, settled: list[Slot] | None) -> Any:
        if settled is None:
            return next(self.flow)
        assert self.standing is not None
        if self.standing.join == "first":
            return self._send_first(settled)
        failed = next((slot for slot in settled if slot.outcome != "succeeded"), None)
        if failed is not None:
            return self.flow.throw(failure_of(failed))
        try:
            results = [value_of(move, slot) for move, slot in zip(self.standing.moves, settled, strict=True)]
        except CallFailed as wrong:
            return self.flow.throw(wrong)
        return self.flow.send(results[0] if self.single else results)

    def _send_first(self, settled: list[Slot]) -> Any:
        """The first success in the journal's order; without one, the last failure."""
        by_time = sorted(settled, key=lambda slot: slot.obs_seq or 0)
        won = next((slot for slot in by_time if slot.outcome == "succeeded"), None)
        if won is None:
            return self.flow.throw(failure_of(by_time[-1]))
        assert self.standing is not None
        which = settled.index(won)
        try:
            value = value_of(self.standing.moves[which], won)
        except CallFailed as wrong:
            return self.flow.throw(wrong)
        return self.flow.send(Won(which, value))


def value_of(move: Move, slot: Slot) -> Any:
    """What the flow gets: an answer as a value of the type that was asked for. Raises CallFailed if it is none."""
    if not isinstance(move, Ask):
        return slot.result
    try:
        return move.typed(slot.result)
    except ValueError as error:
        raise CallFailed("ask", "failed", f"the answer is not of its type: {describe(error)}", slot.step) from error


def failure_of(slot: Slot) -> CallFailed:
    edited = slot.edited.record if slot.edited is not None else None
    return CallFailed(slot.tool, slot.outcome or "failed", slot.error or "", slot.step, edited)
