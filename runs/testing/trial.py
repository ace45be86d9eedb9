"""A run in memory, as a test sees it: driven to rest, acted upon, crashed, moved in time, asserted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from journal import crash
from journal.crash import Crashed
from journal.entries import Draft, Entry, Kind
from runs.agents import Agent
from runs.loops.conversation import Turn, turns_of
from runs.memory.store import ENDED, Memory, MemoryRun
from runs.memory.worker import MemoryWorker
from runs.slots import Slot
from runs.state import RunState, fold
from runs.testing.fakes import Behaviours, Each, FakeTool, World, faked
from runs.testing.models import ScriptedLoop, scripted
from runs.testing.people import People, only_reminds, times_of

MOST_SLICES = 10_000
Approve = bool | Callable[[Slot], bool | None] | None


class CrashHere(Crashed):
    """The worker is abandoned at this point."""


class Trial(People):
    """One run of an agent in memory, with fake tools. Every act drives it on until it rests again.

    It rests when it has ended, or when only a person, a signal or its own clock can move it. Backoffs and the windows
    of `probed` tools are waited out by moving the clock; `Sleep`, deadlines and timeouts pass with `advance`.
    """

    def __init__(
        self,
        agent: Agent,
        input: Any = None,
        *,
        tools: Behaviours = None,
        approve: Approve = None,
        signals: Mapping[str, Any] | None = None,
        answers: Mapping[str, Any] | Callable[[str], Any] | None = None,
        agents: Iterable[Agent] = (),
        labels: Mapping[str, str] | None = None,
        model: Any = None,
    ) -> None:
        refuse_wrong_kinds(approve, signals, answers)
        self.world = World()
        own, *others = scripted(faked([agent, *agents], tools, self.world), model)
        self.agent = own
        self.memory = Memory([own, *others])
        for each in (own, *others):
            if isinstance(each.decide, ScriptedLoop):
                each.decide.journals.append(self._read)
        self.worker = MemoryWorker(self.memory)
        self.crashed: str | None = None
        self.passed: list[str] = []
        self._approve, self._answers = approve, answers
        self._signals = {name: _sequence(given) for name, given in (signals or {}).items()}
        self._run = self.memory.start(own, input, dict(labels or {}))

    # -- what it looks like -----------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        return self._run.status

    @property
    def reason(self) -> str:
        """Why it does not move; for a failed run, why it failed."""
        return self._run.reason

    @property
    def journal(self) -> list[Entry]:
        return self._run.entries

    @property
    def story(self) -> list[str]:
        """The journal at a glance: `["START", "PLAN", "TOOL_CALL:1", "OBS:1", "DONE"]`."""
        return [f"{entry.kind}:{entry.step}" if entry.step else str(entry.kind) for entry in self.journal]

    @property
    def state(self) -> RunState:
        return self._run.state

    def state_at(self, seq: int) -> RunState:
        """The state as it was when entry `seq` was the last."""
        return fold(self._run.id, self.journal[:seq])

    @property
    def result(self) -> Any:
        """What the run returned. Raises AssertionError if it is not done."""
        self.assert_status("done")
        assert self.state.done is not None
        return self.state.done["result"]

    @property
    def calls(self) -> list[Slot]:
        """Its calls in order: `tool`, `args`, `id`, `step`, `outcome`, `result`, `error`."""
        return [slot for slot in self.state.slots.values() if slot.kind == "call"]

    @property
    def conversation(self) -> list[Turn]:
        """What the model of a model loop has been told and has said: `by`, `content`, `tool`, `outcome` of each."""
        return turns_of(self.state)

    @property
    def now(self) -> datetime:
        return self.memory.now

    def _read(self, run_id: UUID) -> Sequence[Entry]:
        return self.memory.runs[run_id].entries

    # -- driving ----------------------------------------------------------------------------------------------------

    def rest(self) -> Trial:
        """Drive on until nothing is left to do but wait for a person, a signal or the run's own clock."""
        for _ in range(MOST_SLICES):
            if self.memory.messages:
                with self._watched(None):
                    self._advance_one()
            elif not (self._decide() or self._wait_for_runtime()):
                return self
        raise AssertionError(f"the run does not come to rest: {self.story[-12:]}")

    def _advance_one(self) -> None:
        self.worker.advance(*self.memory.messages.popleft())

    @contextmanager
    def _watched(self, dies: Callable[[str], bool] | None) -> Iterator[None]:
        """Crash points are written down; at the one that `dies` picks the worker is abandoned."""
        before = crash.hook

        def pass_by(name: str) -> None:
            self.passed.append(name)
            if dies is not None and dies(name):
                raise CrashHere(name)

        crash.hook = pass_by
        try:
            yield
        finally:
            crash.hook = before

    def _decide(self) -> bool:
        """What the test said in advance: approvals, signals, answers. True: something was written."""
        for run in self.memory.runs.values():
            if run.status in ENDED or run.session is not None:
                continue
            for slot in run.state.unsettled():
                if self._decide_one(run, slot):
                    return True
        return False

    def _decide_one(self, run: MemoryRun, slot: Slot) -> bool:
        if slot.state == "awaiting_approval" and not slot.has_expired:
            verdict = self._approve(slot) if callable(self._approve) else self._approve
            if verdict is not None:
                self._say_at_once(run, slot, verdict)
                return True
        if slot.kind == "signal" and (payloads := self._signals.get(slot.signal)):
            self._append(run, Draft(Kind.SIGNAL, {"name": slot.signal, "payload": payloads.pop(0)}))
            return True
        if slot.kind == "ask" and self._answers is not None:
            known, value = self._answer_to(slot.body["question"])
            if known:
                self._answer(run, slot, value)
            return known
        return False

    def _answer_to(self, question: str) -> tuple[bool, Any]:
        if callable(self._answers):
            return True, self._answers(question)
        assert self._answers is not None
        return question in self._answers, self._answers.get(question)

    def _wait_for_runtime(self) -> bool:
        """Move the clock over backoffs and windows, but not over a time that the agent itself waits for."""
        for run in self.memory.runs.values():
            if run.status in ENDED or run.session is not None or not run.wake:
                continue
            state = run.state
            own = [slot.due for slot in state.unsettled() if slot.kind != "call" and slot.due is not None]
            own += [at for slot in state.unsettled() for at in times_of(slot, self.now.timestamp())]
            if all(run.wake < due for due in own):
                self._move_to(moment_of(run.wake))
                return True
        return False

    def _move_to(self, at: datetime) -> None:
        self.memory.now = max(at, self.memory.now)
        self.memory.sweep()

    # -- time -------------------------------------------------------------------------------------------------------

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> Trial:
        """Let time pass; timers fire on the way, each at its time."""
        target = self.now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        while (due := self._next_wake()) is not None and due <= target:
            self._move_to(due)
            self.rest()
        self._move_to(target)
        return self.rest()

    def finish(self) -> Trial:
        """Let time pass until the run has ended, or until only a person or a signal can move it. What waits for
        approval expires, if its policy says when."""
        self.rest()
        while (due := self._next_wake(reminders=False)) is not None:
            self._move_to(due)
            self.rest()
        return self

    def _next_wake(self, reminders: bool = True) -> datetime | None:
        """`reminders`: also of runs in which nothing else is ahead."""
        open_runs = [run for run in self.memory.runs.values() if run.wake and run.status not in ENDED]
        wakes = [run.wake for run in open_runs if reminders or not only_reminds(run.state)]
        return moment_of(min(wakes)) if wakes else None

    # -- crashes ----------------------------------------------------------------------------------------------------

    def crash_at(self, point: str, n: int = 1) -> Trial:
        """Drive on, and kill the worker when it passes `point` for the n-th time. `rest()` goes on with a second one.

        Raises AssertionError if the run rests before that.
        """
        left = n

        def dies(name: str) -> bool:
            nonlocal left
            left -= name == point
            return name == point and left == 0

        if not self._die(dies):
            names = ", ".join(dict.fromkeys(self.passed))
            raise AssertionError(f"the run never passed {point!r} for the {n}. time; it passed {names}")
        return self

    def crash_at_number(self, number: int) -> bool:
        """Kill the worker at the point with this number, counted from 0 over all that are passed from here on. False:
        the run rests before that."""
        return self._die(lambda name: len(self.passed) - 1 == number)

    def _die(self, dies: Callable[[str], bool]) -> bool:
        self.passed.clear()
        for _ in range(MOST_SLICES):
            if not self.memory.messages and not (self._decide() or self._wait_for_runtime()):
                due = self._next_wake(reminders=False)
                if due is None:
                    return False
                self._move_to(due)
                continue
            try:
                with self._watched(dies):
                    if self.memory.messages:
                        self._advance_one()
            except CrashHere as death:
                self.crashed = str(death)
                self.worker.die()
                self.worker = MemoryWorker(self.memory)
                self.memory.sweep()
                return True
        raise AssertionError(f"the run does not come to rest: {self.story[-12:]}")

    # -- asserts ----------------------------------------------------------------------------------------------------

    def assert_status(self, status: str) -> None:
        if self.status != status:
            raise AssertionError(f"the run is {self.status} ({self.reason}), not {status}: {self.story}")

    def assert_calls(self, expected: Sequence[Any]) -> None:
        """The calls in order: a tool or its name, or a pair of that and arguments that it was called with (others may
        be beside them)."""
        said = [(slot.tool, slot.args) for slot in self.calls]
        pairs = [each if isinstance(each, tuple) else (each, {}) for each in expected]
        wanted = [(getattr(tool, "name", tool), args) for tool, args in pairs]
        same = len(said) == len(wanted) and all(
            tool == name and all(key in args and args[key] == value for key, value in some.items())
            for (tool, args), (name, some) in zip(said, wanted, strict=True)
        )
        if not same:
            raise AssertionError(f"the run called {said}, expected {wanted}")

    def assert_once(self, tool: Any) -> None:
        """This tool acted exactly once for each of its calls that succeeded, and never twice for any key."""
        name = getattr(tool, "name", tool)
        if name in self.agent.toolbox and not isinstance(self.agent.toolbox[name], FakeTool):
            raise ValueError(f"{name} is given as testing.REAL: what it did is known where it did it, not here")
        calls = [slot for slot in self.calls if slot.tool == name]
        if not calls:
            raise AssertionError(f"the run never called {name}; it called {[slot.tool for slot in self.calls]}")
        for slot in calls:
            acted = self.world.acted(slot.key)
            if acted > 1 or (acted == 0 and slot.outcome == "succeeded"):
                raise AssertionError(f"{name} (step {slot.step}) acted {acted} times under the key {slot.key}")


def moment_of(wake: float) -> datetime:
    """Not a moment too early: a time has microseconds, and a number of seconds may have less."""
    at = datetime.fromtimestamp(wake, UTC)
    return at if at.timestamp() >= wake else at + timedelta(microseconds=1)


def refuse_wrong_kinds(approve: Any, signals: Any, answers: Any) -> None:
    """Raises TypeError that says what each takes."""
    for name, given, right, takes in (
        ("approve", approve, approve is None or isinstance(approve, bool) or callable(approve),
         "True, False, or a function of the call"),
        ("signals", signals, signals is None or isinstance(signals, Mapping), "payloads by the signal's name"),
        ("answers", answers, answers is None or isinstance(answers, Mapping) or callable(answers),
         "values by the question, or a function of the question"),
    ):  # fmt: skip
        if not right:
            raise TypeError(f"{name}= takes {takes}, not {given!r}")


def _sequence(given: Any) -> list[Any]:
    return list(given.behaviours) if isinstance(given, Each) else [given]
