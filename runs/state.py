"""The fold: a run's state is its journal's entries, applied in order. Pure; no clock, no database."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from journal.entries import Entry, Kind
from runs.approvals_folded import apply_approval
from runs.brakes import Spent, spent
from runs.erased import ERASED, without_body
from runs.moves import Join
from runs.slots import Attempt, Control, Decider, Decision, Repeat, Signal, Slot
from runs.usage import tokens_of, unpriced_in

MODEL_ACTOR = "model"
# Every other actor is a person, or acts for one. "sdk" is an application that starts runs.
MACHINES = frozenset({"worker", MODEL_ACTOR, "system", "parent", "sdk"})
DECIDED_BY_PEOPLE = frozenset({Kind.APPROVAL, Kind.RECONCILE, Kind.ANSWER, Kind.CONTROL})


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
        self.parent: dict[str, Any] | None = None
        self.fork: dict[str, Any] | None = None  # what START says of it: run, at, by, root …
        self.copied = Spent()  # what the copied entries had spent: on another run's account
        self.has_relatives = False  # it is a fork, or was forked: its effects may repeat theirs
        self.signals: list[Signal] = []
        self.untaken: dict[str, deque[Signal]] = {}
        self.decisions: list[Decision] = []
        self.plan: list[Any] = []
        self.usage: dict[str, float] = {}
        self.tokens = 0.0
        self.unpriced = 0  # requests to a model of which nobody knows what they cost
        self.tools: set[str] = set()  # called so far
        self.started_by = ""
        self.person_acted = False
        self.model_attempts: list[Attempt] = []  # since its last answer
        self.affinity: str | None = None  # by which the provider finds its cache of the prompt again
        self.context: str | None = None  # the part of the prompt that was made at run time
        self.compacted: dict[str, Any] | None = None  # what the model is not shown any more
        self.held: Control | None = None
        self.diverged: Control | None = None
        self.quarantined: Control | None = None
        self.braked: Control | None = None
        self.resumed_seq = 0  # the last entry by which somebody let it go on
        self.budget_from = Spent()  # what had been spent when the budget was last given anew
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
    def root(self) -> UUID:
        """The first run of the family of forks; of most runs, itself."""
        return self.run_id if self.fork is None else UUID(self.fork["root"])

    @property
    def copied_to(self) -> int:
        """The last entry that was copied from another run; 0: none was."""
        return 0 if self.fork is None else int(self.fork["at"])

    @property
    def askers(self) -> frozenset[str]:
        """Who wanted it: who started it, and who forked it. None of them is the second pair of eyes."""
        return frozenset({self.started_by, *(self.fork or {}).get("askers", ())})

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
    def backs_off(self) -> bool:
        """Whether an attempt waits for its turn to be made again, or an approval for being asked for again."""
        attempts = [slot.attempts[-1] for slot in self.open.values() if slot.attempts]
        last = [*attempts, *self.model_attempts[-1:]]
        waits = any((a.error is not None or a.unknown_at is not None) and not a.hurried for a in last)
        return waits or any(slot.undecided_at is not None or slot.has_expired for slot in self.open.values())

    def signal_of(self, name: str, signal_id: str) -> Signal | None:
        return next((signal for signal in self.signals if signal.name == name and signal.id == signal_id), None)

    @property
    def pending_join(self) -> Join:
        return "first" if self.decisions and self.decisions[-1].join == "first" else "all"

    def is_over(self, slot: Slot) -> bool:
        """Whether another wait of the same First has succeeded already."""
        made = slot.decided
        if made is None or made.join != "first":
            return False
        return any(self.slots[step].outcome == "succeeded" for step in made.steps)

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
        if entry.kind in DECIDED_BY_PEOPLE and entry.actor not in MACHINES:
            self.person_acted = True
        fold = FOLDS.get(entry.kind)
        if fold is not None and self.beyond is None:
            erased = entry.body.get("$") == ERASED
            fold(self, without_body(entry, begins=entry.step not in self.slots) if erased else entry)
        if self.fork is not None and entry.seq == self.copied_to:
            self._begin_own(self.fork)

    def _start(self, e: Entry) -> None:
        self.agent, self.input, self.started_by = e.body["agent"], e.body["input"], e.actor
        self.release_id, self.code = e.body["release"], e.body["code"]
        self.labels = e.body.get("labels", {})
        self.fork = e.body.get("fork")
        self.has_relatives = self.fork is not None
        self.parent = e.body.get("parent") if self.fork is None else None  # a fork is nobody's child

    def _begin_own(self, fork: dict[str, Any]) -> None:
        """Behind the last copied entry: its budget is whole, and what the model was asked is the other run's."""
        self.copied = self.budget_from = spent(self, fork["began"])
        self.model_attempts.clear()

    def _plan(self, e: Entry) -> None:
        by_model, b = e.actor == MODEL_ACTOR, e.body
        if "compaction" in b:
            self.compacted = b["compaction"]
            self.model_attempts.clear()
            return
        if self.decisions and not self.decisions[-1].steps and self.decisions[-1].said is None:
            self.decisions.pop()  # it came to nothing: a model's was cancelled, or the run was about to end
        said = b if by_model and "response" in b else None
        self.decisions.append(Decision(e.seq, b["seen"], by_model, b.get("moves"), b.get("join", "all"), said=said))
        if by_model:
            self.model_attempts.clear()
        if "plan" in e.body:
            self.plan = e.body["plan"]
        usage = e.body.get("usage", {})
        self.tokens, self.unpriced = self.tokens + tokens_of(usage), self.unpriced + unpriced_in(usage)
        for name, amount in usage.items():
            self.usage[name] = self.usage.get(name, 0) + amount

    def _tool_call(self, e: Entry) -> None:
        slot = self._new_slot(e, "call")
        self.tools.add(slot.tool)
        if e.body.get("gate") is None:  # an ungated TOOL_CALL is its own attempt 1
            slot.attempts.append(Attempt(1, e.seq, e.epoch, e.recorded_at, "worker"))

    def _new_slot(self, e: Entry, kind: str) -> Slot:
        assert e.step is not None
        slot = Slot(e.step, kind, e.seq, e.recorded_at, e.body)
        self.slots[e.step] = self.open[e.step] = slot
        if self.decisions:
            slot.decided = self.decisions[-1]
            slot.decided.steps.append(e.step)
        return slot

    def _settle(self, slot: Slot, e: Entry, outcome: str, result: Any = None, error: str | None = None) -> None:
        slot.outcome, slot.result, slot.error = outcome, result, error
        slot.obs_seq, slot.obs_at, slot.settled_by = e.seq, e.recorded_at, e.actor
        self.open.pop(slot.step, None)

    def _attempt(self, e: Entry) -> None:
        attempt = Attempt(e.body["attempt"], e.seq, e.epoch, e.recorded_at, e.body["source"])
        attempt.doubt = e.body.get("doubt", False)
        if e.step is None:
            attempt.told = e.body
            self.model_attempts.append(attempt)
            self.affinity = e.body.get("affinity", self.affinity)
            self.context = e.body.get("context", self.context)
            return
        slot = self.slots[e.step]
        slot.doubted = slot.doubted or slot.in_doubt  # as when the worker of the attempt before was lost
        slot.attempts.append(attempt)
        slot.cleared = slot.probe_asked = slot.absent = False
        slot.undecided, slot.undecided_at = 0, None

    def _obs(self, e: Entry) -> None:
        assert e.step is not None
        slot = self.slots[e.step]
        outcome = e.body["outcome"]
        if outcome == "unknown":
            slot.doubted = True
            if slot.attempts:
                slot.attempts[-1].unknown_at = e.recorded_at
                slot.attempts[-1].refused = e.body.get("refused", False)
            slot.error = e.body.get("error")
            return
        self._settle(slot, e, outcome, e.body.get("result"), e.body.get("error"))

    def _error(self, e: Entry) -> None:
        attempts = self.model_attempts if e.step is None else self.slots[e.step].attempts
        if attempts:
            last, b = attempts[-1], e.body
            last.error, last.due, last.code = b["error"], b.get("due"), b.get("code")

    def _approval(self, e: Entry) -> None:
        assert e.step is not None
        apply_approval(self.slots[e.step], e)

    def _reconcile(self, e: Entry) -> None:
        if e.step is None or e.step not in self.slots:
            return
        slot = self.slots[e.step]
        slot.doubted = True
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
        if e.body["verb"] == "fired":
            slot = self.slots[e.step]
            if slot.kind == "sleep":
                self._settle(slot, e, "succeeded")
            else:
                self._settle(slot, e, "expired", error=f"no signal {slot.signal} came in time")
        elif "signal" in e.body:
            slot = self._new_slot(e, "signal")
            if (waiting := self.untaken.get(slot.signal)) and not self.is_over(slot):
                self._take(slot, waiting.popleft(), e)
        else:
            self._new_slot(e, "sleep")

    def _signal(self, e: Entry) -> None:
        b = e.body
        signal = Signal(b["name"], b.get("payload"), b.get("id"), e.seq, e.recorded_at, e.actor)
        self.signals.append(signal)
        for slot in self.open.values():
            if slot.kind == "signal" and slot.signal == signal.name and not self.is_over(slot):
                return self._take(slot, signal, e)
        self.untaken.setdefault(signal.name, deque()).append(signal)

    def _take(self, slot: Slot, signal: Signal, e: Entry) -> None:
        """`e`: the later of the two, the signal's entry or the wait's; with it the wait is over."""
        signal.step = slot.step
        self._settle(slot, e, "succeeded", signal.payload)
        slot.settled_by = signal.actor

    def _ask(self, e: Entry) -> None:
        self._new_slot(e, "ask")

    def _answer(self, e: Entry) -> None:
        assert e.step is not None
        if e.body.get("expired"):
            self._settle(self.slots[e.step], e, "expired", error="nobody answered in time")
        else:
            self._settle(self.slots[e.step], e, "succeeded", e.body["value"])

    def _child(self, e: Entry) -> None:
        assert e.step is not None
        if e.body["verb"] == "spawned":
            self._new_slot(e, "child")
        elif e.body["verb"] == "born":
            slot = self.slots[e.step]
            slot.body = slot.body | {"child": e.body["child"], "release": e.body["release"]}
        else:
            self._settle(self.slots[e.step], e, e.body["outcome"], e.body.get("result"), e.body.get("error"))

    def _pin(self, e: Entry) -> None:
        self.release_id = e.body["release"]
        self.code = e.body.get("code", "")  # that has judged the journal; none has: it is decided again at each claim

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
            case "brake":
                self.braked = control
            case "resume":
                self.resumed_seq = e.seq
                if self.braked is not None:
                    self.budget_from = spent(self, e.recorded_at.timestamp())
                self._let_repeat(self.held)
                self.held = self.diverged = self.braked = None
            case "release":
                self.quarantined = None
            case "fork":
                self.has_relatives = True
            case "retry":
                self.resumed_seq = e.seq
                self._hurry(control)

    def _let_repeat(self, held: Control | None) -> None:
        """Whoever resumes a run that was held for what a child would repeat lets it be started."""
        repeats = held.body.get("repeats", ()) if held is not None else ()
        if held is not None and repeats and held.body.get("step") in self.slots:
            self.slots[held.body["step"]].let = tuple(map(Repeat.of, repeats))

    def _hurry(self, control: Control) -> None:
        """Nothing waits for a backoff any more; what expired is asked for anew."""
        for attempts in (self.model_attempts, *(slot.attempts for slot in self.open.values())):
            if attempts:
                attempts[-1].hurried = True
        for slot in self.open.values():
            slot.undecided_at = None
            if slot.has_expired and slot.approval is not None:
                slot.approval.renew = Decider(control.actor, control.at, control.seq, control.reason)

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
    Kind.ASK: RunState._ask,
    Kind.ANSWER: RunState._answer,
    Kind.TIMER: RunState._timer,
    Kind.SIGNAL: RunState._signal,
    Kind.CHILD: RunState._child,
    Kind.PIN: RunState._pin,
    Kind.CONTROL: RunState._control,
    Kind.DONE: RunState._done,
}


def fold(run_id: UUID, entries: Iterable[Entry]) -> RunState:
    state = RunState(run_id)
    for entry in entries:
        state.apply(entry)
    state.committed_seq = state.seq
    return state
