"""The driver of a journaled agent: its own code is run from the top, told what the journal knows, and what it waits for
after that is what comes next."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

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

THINKING = 60.0  # seconds for the agent's own code between two units
_driving: dict[UUID, JournaledDriver] = {}  # by run: what a call's thread finds its unit by


class JournaledDriver:
    def __init__(self, slot: JournaledAgent, agent: Agent, state: RunState, judge: Judge) -> None:
        self.slot, self.agent, self.judge = slot, agent, judge
        self.history = History(state)
        self.view = RunView(state)
        self.live: Live | None = None
        self._lock = threading.RLock()
        _driving[state.run_id] = self

    # -- what the engine asks ---------------------------------------------------------------------------------------

    def decide(self, state: RunState) -> Decided | Asking:
        live = self._advanced()
        if live.ended:
            return sealed_moves(self.agent, Decided([self._end(live)]))
        new = [unit for unit in live.waiting.values() if unit.ident not in self.history.slots]
        calls = [unit for unit in new if unit.ident[0] != "model"]
        if not calls:
            return UnitAsking(new[0], self.slot.model_name, self.slot.timeout)
        return sealed_moves(self.agent, Decided([self._move(unit) for unit in calls], said=self._is_of_model(state)))

    def check(self, state: RunState, entries: Sequence[Entry]) -> None:
        """Its code is run again up to where the journal ends; it must ask for all that is recorded."""
        live = self._advanced()
        made = live.answers.keys() | live.waiting.keys()
        missing = [slot for ident, slot in self.history.slots.items() if ident not in made]
        if missing:
            raise Diverged(missing[0].seq, [missing[0].recorded], self._attempted(live))
        if live.requests < len(self.history.plans):
            plan = self.history.plans[live.requests]
            recorded = {"request": (plan.said or {}).get("digest")}
            raise Diverged(plan.seq, [recorded], self._attempted(live))

    def decide_again(self, state: RunState, entries: Sequence[Entry]) -> None:
        self.check(state, entries)
        live = self._advanced()
        done = end_of(entries)
        for made in state.decisions:
            if made.steps:
                self.judge.begins(made.seq)
                recorded = [state.slots[step] for step in made.steps]
                self.judge.decision(made, state.slots, Decided([from_record(slot.recorded) for slot in recorded]))
        if done is not None:
            self.judge.begins(done.seq)
            self.judge.end(done, sealed_moves(self.agent, Decided([self._end(live)])))

    def instead_of(self, before: object) -> None:
        """The journal was read anew: the agent's code goes on, unless it was told what is not in it after all."""
        if isinstance(before, JournaledDriver) and before.live is not None:
            self.live, before.live = before.live, None
            if not self._still_true(self.live):
                self.live.close()
                self.live = None

    def close(self) -> None:
        if self.live is not None:
            self.live.close()
        if _driving.get(self.history.state.run_id) is self:
            del _driving[self.history.state.run_id]

    # -- what a call's thread asks ----------------------------------------------------------------------------------

    def unit_of(self, step: int) -> Unit | None:
        """What the agent's code waits for at this step."""
        live = self._advanced()
        ident = self.history.ident_of(step)
        return live.waiting.get(ident) if ident is not None else None

    # -- within -----------------------------------------------------------------------------------------------------

    def _advanced(self) -> Live:
        with self._lock:
            if self.live is None:
                self.live = Live(lambda: self.slot.run(self.view))
            self.history.read_on()
            self.live.advance(self._answer, THINKING)
            return self.live

    def _answer(self, unit: Unit) -> Any:
        payload = self.history.answer(unit)
        slot = self.history.slots.get(unit.ident)
        if slot is not None and slot.outcome == "denied" and self.live is not None:
            self.live.denied[unit.ident[1], unit.ident[2]] = slot.error or ""
        return payload

    def _still_true(self, live: Live) -> bool:
        self.history.read_on()
        return all(self.history.told(unit.ident, unit.asks_first) == told for unit, told in live.answers.values())

    def _end(self, live: Live) -> Move:
        try:
            return Finish(to_jsonable_python(live.result().output, fallback=str))
        except BaseException as error:
            return Fail(raised(error))

    def _move(self, unit: Unit) -> Move:
        kind, _, name, _ = unit.ident
        match kind:
            case "wait":
                return WaitFor(name)
            case "call":
                return Call.of(unit.tool, unit.args, name)
            case _:
                return unit.aside(LOOK_UP)

    def _is_of_model(self, state: RunState) -> bool:
        """Whether what comes next follows from the model's last answer, so that no other decision is recorded."""
        return bool(state.decisions) and state.decisions[-1].said is not None

    def _attempted(self, live: Live) -> list[dict[str, Any]]:
        if live.ended:
            return [as_record(self._end(live))]
        return [
            {"request": unit.digest} if unit.ident[0] == "model" else as_record(self._move(unit))
            for unit in live.waiting.values()
            if unit.ident not in self.history.slots
        ]


def driver_of(run_id: UUID) -> JournaledDriver | None:
    return _driving.get(run_id)
