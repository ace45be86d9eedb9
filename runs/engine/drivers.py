"""Drivers: from a state to the next moves. Three of them: decide, flow, and the model slot; others bring their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

from journal.entries import Entry
from runs.agents import Agent, FunctionModel
from runs.compared import Diverged as Diverged
from runs.compared import Judge, Strict, end_of, seen_by
from runs.engine.asking import Asking, FunctionAsking
from runs.engine.loop import LoopAsking
from runs.engine.sealing import sealed_moves
from runs.loops.declared import ModelLoop
from runs.mistakes import line_of, raised
from runs.moves import Ask, Decided, Fail, Finish, Move, Won, as_decided, from_record
from runs.outcomes import CallFailed, describe
from runs.run_view import RunView
from runs.slots import Decision, Slot
from runs.state import RunState

log = logging.getLogger("holdfast.drivers")

STRICT = Strict()


class Driver(Protocol):
    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Decide again what is recorded, before any effect, where the code may decide otherwise. Raises Diverged."""

    def decide_again(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Decide again all that is recorded; the driver's judge hears of each decision. `entries`: the whole journal,
        `state`: its fold."""

    def decide(self, state: RunState) -> Decided | Asking:
        """The next moves; called when no step is unsettled."""


@runtime_checkable
class KeepsAlive(Protocol):
    """A driver that keeps something between decisions, for as long as its slice lasts."""

    def instead_of(self, before: Driver | None) -> None:
        """The journal was read anew: this one goes on where that one stood."""

    def close(self) -> None:
        """The slice is over."""


@runtime_checkable
class DrivesItself(Protocol):
    """An agent of another library: it brings its own driver."""

    def driver(self, agent: Agent, state: RunState, entries: Sequence[Entry], judge: Judge) -> Driver: ...


def driver_for(agent: Agent, state: RunState, entries: Sequence[Entry] = (), judge: Judge = STRICT) -> Driver:
    """`entries`: what `state` was folded from, so that a flow finds its run at each yield as it was then."""
    if agent.flow is not None:
        return FlowDriver(agent, state, entries, judge)
    match agent.decide:
        case FunctionModel() as model:
            return ModelDriver(partial(FunctionAsking, agent, model), judge)
        case DrivesItself() as framework:
            return framework.driver(agent, state, entries, judge)
        case ModelLoop() as loop:
            return ModelDriver(partial(LoopAsking, agent, loop), judge)
    return DecideDriver(agent, judge)


class DecideDriver:
    """A pure function of the state."""

    def __init__(self, agent: Agent, judge: Judge = STRICT) -> None:
        self.agent, self.judge = agent, judge

    def decide(self, state: RunState) -> Decided:
        assert callable(self.agent.decide)
        return sealed_moves(self.agent, as_decided(self.agent.decide(RunView(state))))

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Only when the code has changed since the run started."""
        if state.code != self.agent.code_digest:
            self.decide_again(state, entries)

    def decide_again(self, state: RunState, entries: Sequence[Entry]) -> None:
        """The journal is folded once, and each decision made on the way: linear in its length."""
        prefix = RunState(state.run_id)
        made = {decision.seq: decision for decision in state.decisions if decision.steps}
        done = end_of(entries)
        for entry in entries:
            if (decision := made.get(entry.seq)) is not None:
                prefix.committed_seq = decision.seen
                self.judge.decision(decision, state.slots, self._again(prefix, entry.seq))
            elif entry is done:
                prefix.committed_seq = seen_by(done, prefix.times)
                self.judge.end(done, self._again(prefix, entry.seq))
            prefix.apply(entry)

    def _again(self, prefix: RunState, seq: int) -> Decided:
        self.judge.begins(seq)
        try:
            return self.decide(prefix)
        except BaseException as error:
            return Decided([Fail(raised(error))])


class ModelDriver:
    """The model decides. What it said is in the journal, and is never asked for again."""

    def __init__(self, asking: Callable[[], Asking], judge: Judge = STRICT) -> None:
        self.asking, self.judge = asking, judge

    def decide(self, state: RunState) -> Decided | Asking:
        pending = state.pending_moves
        if not pending or unread(state):
            return self.asking()
        return Decided([from_record(record) for record in pending], state.pending_join)

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        return None

    def decide_again(self, state: RunState, entries: Sequence[Entry]) -> None:
        """What it said stands for what it would say. What code decided, no model has: it decides nothing there."""
        for made in state.decisions:
            if made.steps:
                self.judge.begins(made.seq)
                self.judge.decision(made, state.slots, said_by_model(made))
        done, pending = end_of(entries), state.pending_moves
        if done is not None and pending:
            self.judge.begins(done.seq)
            self.judge.end(done, Decided([from_record(record) for record in pending]))


def unread(state: RunState) -> bool:
    """Whether the run would end though somebody said something that the model, in a conversation, has not seen."""
    last = state.decisions[-1]
    if last.said is None or not {"finish", "fail"} & last.said["moves"][0].keys():
        return False
    return bool(state.signals) and state.signals[-1].seq > last.said["asked"]


def said_by_model(made: Decision) -> Decided:
    moves = [from_record(record) for record in made.moves or []] if made.by_model else []
    return Decided(moves, "first" if made.join == "first" else "all")


class FlowDriver:
    """A generator, replayed from the journal up to its last recorded yield, then driven on."""

    def __init__(self, agent: Agent, state: RunState, entries: Sequence[Entry] = (), judge: Judge = STRICT) -> None:
        assert agent.flow is not None
        self.agent, self.judge = agent, judge
        self.view = RunView(state)
        self.flow: Generator[Any, Any, Any] = agent.flow(self.view)
        self.count = 0  # decisions replayed so far
        self.first_step = 1  # of the yield that the generator stands at
        self.standing: Decided | None = None
        self.single = True
        self._entries: Iterator[Entry] = iter(entries)
        self._prefix = RunState(state.run_id) if entries else None

    def decide(self, state: RunState) -> Decided:
        """Advances over every recorded yield. No moves: the last recorded yield is not settled yet."""
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
        self.decide_again(state, entries)

    def decide_again(self, state: RunState, entries: Sequence[Entry]) -> None:
        done = end_of(entries)
        if done is not None:
            state.committed_seq = seen_by(done, state.times)
        decided = self.decide(state)
        if done is not None:
            self.judge.end(done, decided)

    def _slots_of_standing(self, state: RunState) -> list[Slot] | None:
        """The recorded steps of the yield that the generator stands at, compared with it; None: not recorded."""
        if self.first_step not in state.slots:
            return None
        assert self.standing is not None
        made = state.decisions[self.count - 1]
        self.judge.decision(made, state.slots, self.standing)
        return [state.slots[step] for step in made.steps]

    def _as_of(self, state: RunState, made: Decision) -> RunState:
        """The state that a recorded decision was made from: what came later, the generator must not see."""
        prefix = self._prefix
        if prefix is None:
            return state
        while prefix.seq < made.seq - 1:
            prefix.apply(next(self._entries))
        return prefix

    def _advance(self, state: RunState, settled: list[Slot] | None) -> None:
        recorded = state.decisions[self.count] if self.count < len(state.decisions) else None
        made = recorded if recorded is not None and recorded.steps else None
        self.judge.begins(made.seq if made is not None else state.seq + (state.done is None))
        self.view._state = self._as_of(state, made) if made is not None else state
        self.view._now = state.time_of(made.seen if made is not None else state.committed_seq)
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
