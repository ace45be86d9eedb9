"""The driver of a journaled agent: its own code is run from the top, told what the journal knows, and what it waits for
after that is what comes next."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic_ai import ModelResponse
from pydantic_ai.durable_exec import JSON_CODEC
from pydantic_ai.messages import ModelMessage
from pydantic_core import to_jsonable_python

from journal.entries import Entry
from runs.agents import Agent
from runs.compared import Diverged, Judge, end_of
from runs.engine.asking import Asking
from runs.engine.sealing import sealed_moves
from runs.integrations.pydantic_ai.asking import UnitAsking
from runs.integrations.pydantic_ai.history import LOOK_UP, History
from runs.integrations.pydantic_ai.live import Live
from runs.integrations.pydantic_ai.units import Unit
from runs.mistakes import raised
from runs.moves import Call, Decided, Fail, Finish, Move, WaitFor, as_record, from_record
from runs.run_view import RunView
from runs.state import RunState

if TYPE_CHECKING:
    from runs.integrations.pydantic_ai.declared import JournaledAgent

THINKING = 600.0  # seconds for the agent's own code between two units; a worker holds the run much sooner
_driving: dict[UUID, JournaledDriver] = {}  # by run: what a call's thread finds its unit by


class JournaledDriver:
    """`live`: the agent's code under way. It is kept while the slice lasts, whoever reads the journal anew."""

    def __init__(self, slot: JournaledAgent, agent: Agent, state: RunState, judge: Judge) -> None:
        self.slot, self.agent, self.judge = slot, agent, judge
        self.history = History(state)
        self.view = RunView(state)
        self.live: Live | None = None
        self._lock = threading.RLock()

    # -- what the engine asks ---------------------------------------------------------------------------------------

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        _driving[state.run_id] = self
        self._replay()

    def decide(self, state: RunState) -> Decided | Asking:
        live = self._advanced()
        if live.ended:
            return sealed_moves(self.agent, Decided([self._end(live)]))
        new = [unit for unit in live.waiting.values() if unit.ident not in self.history.slots]
        calls = [unit for unit in new if unit.ident[0] != "model"]
        if not calls:
            return UnitAsking(new[0], self.slot.model_name, self.slot.timeout, self.slot.native)
        follows = bool(state.decisions) and state.decisions[-1].said is not None
        return sealed_moves(self.agent, Decided([_move(unit) for unit in calls], said=follows))

    def decide_again(self, state: RunState, entries: Sequence[Entry]) -> None:
        """What is recorded up to where the code asks for something else; that it does raises Diverged."""
        done, other = end_of(entries), None
        try:
            try:
                live = self._replay()
            except Diverged as diverged:
                other = diverged
            for made in state.decisions:
                if made.steps and (other is None or made.steps[-1] < self._step_of(state, other)):
                    self.judge.begins(made.seq)
                    again = [from_record(state.slots[step].recorded) for step in made.steps]
                    self.judge.decision(made, state.slots, Decided(again))
            if other is not None:
                self.judge.begins(other.seq)
                raise other
            if done is not None:
                self.judge.begins(done.seq)
                self.judge.end(done, sealed_moves(self.agent, Decided([self._end(live)])))
        finally:
            self.close()

    def instead_of(self, before: object) -> None:
        """The journal was read anew: the agent's code goes on, unless it was told what is not in it after all."""
        if not isinstance(before, JournaledDriver):
            return
        _driving[self.history.state.run_id] = self
        self.live, before.live = before.live, None
        if self.live is not None and not self._still_true(self.live):
            self.live.close()
            self.live = None

    def close(self) -> None:
        if self.live is not None:
            self.live.close()
        if _driving.get(self.history.state.run_id) is self:
            del _driving[self.history.state.run_id]

    # -- what others ask --------------------------------------------------------------------------------------------

    def unit_of(self, step: int) -> Unit | None:
        """What the agent's code waits for at this step."""
        live = self._advanced()
        ident = self.history.ident_of(step)
        return live.waiting.get(ident) if ident is not None else None

    def messages(self) -> list[ModelMessage]:
        """What was said, as far as the journal goes. Raises Diverged."""
        live = self._replay()
        if live.ended and live.failure is None:
            return list(live.result().all_messages())
        asked = next((unit for unit in live.waiting.values() if unit.ident[0] == "model"), None)
        if asked is not None:
            return list(asked.params.messages)
        unit, said = live.answers["model", live.requests, "", 0]
        return [*unit.params.messages, JSON_CODEC.load(ModelResponse, said)]

    # -- within -----------------------------------------------------------------------------------------------------

    def _replay(self) -> Live:
        """The code is run again up to where the journal ends. Raises Diverged unless it asks for what is recorded."""
        live = self._advanced()
        made = live.answers.keys() | live.waiting.keys()
        missing = [slot for ident, slot in self.history.slots.items() if ident not in made]
        if missing:
            raise Diverged(missing[0].seq, [missing[0].recorded], self._attempted(live))
        if live.requests < len(self.history.plans):
            plan = self.history.plans[live.requests]
            raise Diverged(plan.seq, [{"request": (plan.said or {}).get("digest")}], self._attempted(live))
        return live

    def _advanced(self) -> Live:
        with self._lock:
            if self.live is None:
                self.live = Live(lambda: self.slot.run(self.view))
            self.history.read_on()
            self.live.advance(self._answer, THINKING)
            return self.live

    def _answer(self, unit: Unit) -> Any:
        slot = self.history.slots.get(unit.ident)
        if slot is not None and slot.outcome == "denied" and self.live is not None:
            self.live.denied[unit.ident[1], unit.ident[2]] = slot.error or ""
        return self.history.answer(unit)

    def _still_true(self, live: Live) -> bool:
        self.history.read_on()
        return all(self.history.told(unit.ident, unit.asks_first) == told for unit, told in live.answers.values())

    def _end(self, live: Live) -> Move:
        if live.failure is not None:
            return Fail(raised(live.failure))
        return Finish(to_jsonable_python(live.result().output, fallback=str))

    def _attempted(self, live: Live) -> list[dict[str, Any]]:
        if live.ended:
            return [as_record(self._end(live))]
        return [
            {"request": unit.digest} if unit.ident[0] == "model" else as_record(_move(unit))
            for unit in live.waiting.values()
            if unit.ident not in self.history.slots
        ]

    def _step_of(self, state: RunState, other: Diverged) -> int:
        """The first step behind which nothing can be compared."""
        return next((step for step, slot in state.slots.items() if slot.seq >= other.seq), state.next_step)


def driver_of(run_id: UUID) -> JournaledDriver | None:
    return _driving.get(run_id)


def _move(unit: Unit) -> Move:
    kind, _, name, _ = unit.ident
    match kind:
        case "wait":
            return WaitFor(name)
        case "call":
            return Call.of(unit.tool, unit.args, name)
        case _:
            return unit.aside(LOOK_UP)
