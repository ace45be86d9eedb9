"""The fold: a run's state is its journal's entries, applied in order. Pure; no clock, no database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from journal.entries import Entry, Kind

MODEL_ACTOR = "model"


@dataclass(slots=True)
class Attempt:
    """One send of a call. `step` NULL belongs to a model request."""

    number: int
    seq: int
    epoch: int
    at: datetime
    source: str
    error: str | None = None
    due: float | None = None
    unknown_at: datetime | None = None


@dataclass(slots=True)
class Approval:
    verdict: str
    seq: int
    at: datetime
    actor: str
    digest: str
    note: str = ""


@dataclass(slots=True)
class Control:
    """A hold, cancel, divergence or quarantine in force."""

    verb: str
    reason: str
    actor: str
    at: datetime
    seq: int
    body: dict[str, Any]


@dataclass(slots=True)
class Slot:
    """A step: a call or a sleep."""

    step: int
    kind: str
    seq: int
    at: datetime
    body: dict[str, Any]
    approval: Approval | None = None
    attempts: list[Attempt] = field(default_factory=list)
    outcome: str | None = None
    result: Any = None
    error: str | None = None
    obs_seq: int | None = None
    obs_at: datetime | None = None
    settled_by: str | None = None
    cleared: bool = False
    cleared_by: str | None = None
    cleared_at: datetime | None = None
    probe_asked: bool = False
    undecided: int = 0
    undecided_at: datetime | None = None

    @property
    def tool(self) -> str:
        return str(self.body["tool"]) if self.kind == "call" else "sleep"

    @property
    def args(self) -> dict[str, Any]:
        return self.body["args"] if self.kind == "call" else {}

    @property
    def id(self) -> str | None:
        return self.body.get("id")

    @property
    def key(self) -> str:
        return str(self.body.get("key", ""))

    @property
    def effect(self) -> str:
        return str(self.body.get("effect", ""))

    @property
    def digest(self) -> str:
        return str(self.body.get("digest", ""))

    @property
    def gate(self) -> str | None:
        return self.body.get("gate")

    @property
    def settled(self) -> bool:
        return self.outcome is not None

    @property
    def in_doubt(self) -> bool:
        """Its last attempt has neither an error nor a settling observation, and nobody said that it did not happen."""
        return self.kind == "call" and not self.settled and bool(self.attempts) and not self.surely_not_done

    @property
    def surely_not_done(self) -> bool:
        return not self.attempts or self.cleared or self.attempts[-1].error is not None

    @property
    def state(self) -> str:
        if self.settled:
            return "settled"
        if self.in_doubt:
            return "in_doubt"
        return "awaiting_approval" if self.approval and self.approval.verdict == "requested" else "pending"

    @property
    def recorded(self) -> dict[str, Any]:
        """The move that made this step, as `moves.as_record` tells it."""
        if self.kind == "call":
            return {"call": self.tool, "args": self.args} | ({"id": self.id} if self.id is not None else {})
        return {"sleep": self.body["seconds"]} if "seconds" in self.body else {"until": self.body["until"]}


@dataclass(slots=True)
class Decision:
    """A PLAN: the seq it was made from, its time, the steps it made; a model's also keeps its moves."""

    seq: int
    seen: int
    by_model: bool
    moves: list[dict[str, Any]] | None
    steps: list[int] = field(default_factory=list)


class RunView:
    """What an agent's code sees of its run: `decide(state)`, a flow's `run`, a model function's `state`."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._now: datetime | None = None

    @property
    def id(self) -> UUID:
        return self._state.run_id

    @property
    def input(self) -> Any:
        return self._state.input

    @property
    def calls(self) -> list[Slot]:
        return [slot for slot in self._state.slots.values() if slot.kind == "call"]

    def call(self, id: str) -> Slot | None:
        """The last call that the agent gave this id."""
        return next((slot for slot in reversed(self.calls) if slot.id == id), None)

    @property
    def last(self) -> Slot | None:
        calls = self.calls
        return calls[-1] if calls else None

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
        """A number in [0, 1) that is the same at each replay."""
        return random.Random(f"{self._state.run_id}:{label}").random()


class RunState:
    """Input, steps by number, decisions, controls, usage, ending. `seq` counts entries not yet committed too."""

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.seq = 0
        self.committed_seq = 0
        self.times: list[datetime] = []
        self.agent = ""
        self.input: Any = None
        self.release_id = ""
        self.code = ""
        self.labels: dict[str, str] = {}
        self.slots: dict[int, Slot] = {}
        self.open: dict[int, Slot] = {}
        self.decisions: list[Decision] = []
        self.plan: list[Any] = []
        self.usage: dict[str, float] = {}
        self.model_attempts: list[Attempt] = []
        self.held: Control | None = None
        self.diverged: Control | None = None
        self.quarantined: Control | None = None
        self.cancel: Control | None = None
        self.done: dict[str, Any] | None = None
        self.ended_at: datetime | None = None
        self.beyond: Entry | None = None  # the first entry that this code may not act on: the fold stands before it

    # -- what the engine asks ---------------------------------------------------------------------------------------

    def time_of(self, seq: int) -> datetime:
        return self.times[seq - 1]

    def unsettled(self) -> list[Slot]:
        return list(self.open.values())

    @property
    def next_step(self) -> int:
        return len(self.slots) + 1

    @property
    def frontier(self) -> int:
        """The largest seq with no unsettled intent at or below it."""
        return min((slot.seq for slot in self.open.values()), default=self.seq + 1) - 1

    @property
    def pending_moves(self) -> list[dict[str, Any]]:
        """Moves of the last model's PLAN that are not intents yet: it was paid for and is not asked again."""
        last = self.decisions[-1] if self.decisions else None
        return list(last.moves or []) if last is not None and last.by_model and not last.steps else []

    @property
    def model_attempt(self) -> Attempt | None:
        """The model request under way, if there is one."""
        return self.model_attempts[-1] if self.model_attempts and self.model_attempts[-1].error is None else None

    # -- the fold ---------------------------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        self.seq = entry.seq
        self.times.append(entry.recorded_at)
        if self.beyond is None and entry.is_beyond:
            self.beyond = entry
        fold = FOLDS.get(entry.kind)
        if fold is not None and self.beyond is None:
            fold(self, entry)

    def _start(self, e: Entry) -> None:
        self.agent, self.input = e.body["agent"], e.body["input"]
        self.release_id, self.code = e.body["release"], e.body["code"]
        self.labels = e.body.get("labels", {})

    def _plan(self, e: Entry) -> None:
        by_model = e.actor == MODEL_ACTOR
        if self.decisions and not self.decisions[-1].steps:
            self.decisions.pop()  # it came to nothing: a model's was cancelled, or the run was about to end
        self.decisions.append(Decision(e.seq, e.body["seen"], by_model, e.body.get("moves")))
        if by_model:
            self.model_attempts.clear()
        if "plan" in e.body:
            self.plan = e.body["plan"]
        for name, amount in e.body.get("usage", {}).items():
            self.usage[name] = self.usage.get(name, 0) + amount

    def _tool_call(self, e: Entry) -> None:
        slot = self._new_slot(e, "call")
        if e.body.get("gate") is None:  # an ungated TOOL_CALL is its own attempt 1
            slot.attempts.append(Attempt(1, e.seq, e.epoch, e.recorded_at, "worker"))

    def _new_slot(self, e: Entry, kind: str) -> Slot:
        assert e.step is not None
        slot = Slot(e.step, kind, e.seq, e.recorded_at, e.body)
        self.slots[e.step] = self.open[e.step] = slot
        if self.decisions:
            self.decisions[-1].steps.append(e.step)
        return slot

    def _attempt(self, e: Entry) -> None:
        attempt = Attempt(e.body["attempt"], e.seq, e.epoch, e.recorded_at, e.body["source"])
        if e.step is None:
            self.model_attempts.append(attempt)
            return
        slot = self.slots[e.step]
        slot.attempts.append(attempt)
        slot.cleared = slot.probe_asked = False
        slot.undecided, slot.undecided_at = 0, None

    def _obs(self, e: Entry) -> None:
        assert e.step is not None
        slot = self.slots[e.step]
        outcome = e.body["outcome"]
        if outcome == "unknown":
            if slot.attempts:
                slot.attempts[-1].unknown_at = e.recorded_at
            slot.error = e.body.get("error")
            return
        slot.outcome, slot.result, slot.error = outcome, e.body.get("result"), e.body.get("error")
        slot.obs_seq, slot.obs_at, slot.settled_by = e.seq, e.recorded_at, e.actor
        self.open.pop(e.step, None)

    def _error(self, e: Entry) -> None:
        attempts = self.model_attempts if e.step is None else self.slots[e.step].attempts
        if attempts:
            attempts[-1].error, attempts[-1].due = e.body["error"], e.body.get("due")

    def _approval(self, e: Entry) -> None:
        assert e.step is not None
        b = e.body
        self.slots[e.step].approval = Approval(
            b["verdict"], e.seq, e.recorded_at, e.actor, b.get("digest", ""), b.get("note", "")
        )

    def _reconcile(self, e: Entry) -> None:
        if e.step is None or e.step not in self.slots:
            return
        slot = self.slots[e.step]
        match e.body["verdict"]:
            case "never_happened":
                slot.cleared, slot.probe_asked = True, False
                slot.cleared_by, slot.cleared_at = e.actor, e.recorded_at
            case "probe":
                slot.probe_asked, slot.undecided, slot.undecided_at = True, 0, None
            case "undecided":
                slot.probe_asked = False
                slot.undecided, slot.undecided_at = slot.undecided + 1, e.recorded_at

    def _timer(self, e: Entry) -> None:
        assert e.step is not None
        if e.body["verb"] == "set":
            self._new_slot(e, "sleep")
        else:
            slot = self.slots[e.step]
            slot.outcome, slot.obs_seq, slot.obs_at = "succeeded", e.seq, e.recorded_at
            self.open.pop(e.step, None)

    def _control(self, e: Entry) -> None:
        control = Control(e.body["verb"], e.body.get("reason", ""), e.actor, e.recorded_at, e.seq, e.body)
        match control.verb:
            case "cancel":
                self.cancel = self.cancel or control
            case "hold":
                self.held = control
            case "diverged":
                self.diverged = control
            case "quarantine":
                self.quarantined = control
            case "resume":
                self.held = self.diverged = None
            case "release":
                self.quarantined = None

    def _done(self, e: Entry) -> None:
        self.done, self.ended_at = e.body, e.recorded_at
        self.open.clear()


Fold = Callable[[RunState, Entry], None]
FOLDS: dict[str, Fold] = {
    Kind.START: RunState._start,
    Kind.PLAN: RunState._plan,
    Kind.TOOL_CALL: RunState._tool_call,
    Kind.ATTEMPT: RunState._attempt,
    Kind.OBS: RunState._obs,
    Kind.ERROR: RunState._error,
    Kind.APPROVAL: RunState._approval,
    Kind.RECONCILE: RunState._reconcile,
    Kind.TIMER: RunState._timer,
    Kind.CONTROL: RunState._control,
    Kind.DONE: RunState._done,
}


def fold(run_id: UUID, entries: Iterable[Entry]) -> RunState:
    state = RunState(run_id)
    for entry in entries:
        state.apply(entry)
    state.committed_seq = state.seq
    return state
