"""What a test does in the place of people: approve, deny, edit, ask back, reconcile, signal, answer, cancel, hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING, Any

from journal.entries import Draft, Entry, Kind
from runs import consent
from runs.answer_types import answer_fault
from runs.errors import RunsError
from runs.memory.store import ENDED, Memory, MemoryRun
from runs.slots import Slot
from runs.state import RunState

if TYPE_CHECKING:
    from runs.testing.trial import Trial

PERSON = "tester"
A_TICK = 0.01
Which = int | str | None


class People:
    """A part of `Trial`."""

    if TYPE_CHECKING:
        memory: Memory
        _run: MemoryRun

        @property
        def status(self) -> str: ...

        @property
        def story(self) -> list[str]: ...

        @property
        def journal(self) -> list[Entry]: ...

        def rest(self) -> Trial: ...

        def _move_to(self, at: datetime) -> None: ...

    # -- approvals --------------------------------------------------------------------------------------------------

    def approve(self, which: Which = None, note: str = "", *, by: str = PERSON) -> Trial:
        """Approve the call that waits for it: of this step or tool, or the only one. A quorum needs several names.

        Raises AssertionError for what `by` could not do: because it needs four eyes, or has expired.
        """
        return self._say(which, "approve", note, by)

    def deny(self, which: Which = None, note: str = "no", *, by: str = PERSON) -> Trial:
        return self._say(which, "deny", note, by)

    def edit(self, args: Mapping[str, Any], which: Which = None, note: str = "", *, by: str = PERSON) -> Trial:
        """Put these arguments in place of the agent's: the call waits for approval anew."""
        return self._say(which, "edit", note, by, args)

    def ask(self, question: str, which: Which = None, *, by: str = PERSON) -> Trial:
        """Ask something back about the call that waits: until it is answered it can only be denied."""
        return self._say(which, "ask", question, by)

    def answer_question(self, text: str, which: Which = None, *, by: str = PERSON) -> Trial:
        run, slot = self._find(which, "awaiting_approval")
        try:
            entry = consent.answer(slot, text)
        except RunsError as refused:
            raise AssertionError(str(refused)) from refused
        self._append(run, entry, by=by, wakes=False)
        return self.rest()

    def expire(self, which: Which = None) -> Trial:
        """Let time pass until the approval of the call that waits for it expires."""
        _, slot = self._find(which, "awaiting_approval")
        if slot.approval is None or slot.approval.expires is None:
            raise AssertionError(f"{slot.tool} (step {slot.step}) never expires: its policy has no ttl")
        self._move_to(datetime.fromtimestamp(slot.approval.expires, UTC))
        return self.rest()

    def retry(self, reason: str = "try again") -> Trial:
        """What waits for a backoff goes on, and what has expired is asked for anew."""
        return self._control("retry", reason)

    def _say(self, which: Which, verdict: str, note: str, by: str, args: Mapping[str, Any] | None = None) -> Trial:
        run, slot = self._find(which, "awaiting_approval")
        said = self._said(slot, verdict, note, by, args)
        try:
            self._decide_as(run, slot, said)
        except RunsError as refused:
            raise AssertionError(str(refused)) from refused
        return self.rest()

    def _say_at_once(self, run: MemoryRun, slot: Slot, granted: bool) -> None:
        """As many people as the policy asks for, none of whom started the run or changed the call."""
        assert slot.approval is not None
        by = f"{PERSON} {len(slot.approval.grants) + 1}" if slot.approval.policy.quorum > 1 else PERSON
        by = f"{by}, who did not edit" if by in slot.editors else by
        self._decide_as(run, slot, self._said(slot, "approve" if granted else "deny", "" if granted else "no", by))

    def _said(
        self, slot: Slot, verdict: str, note: str, by: str, args: Mapping[str, Any] | None = None
    ) -> consent.Said:
        assert slot.approval is not None
        return consent.Said(verdict, by, frozenset({slot.approval.policy.group}), slot.approval.digest, note, args)

    def _decide_as(self, run: MemoryRun, slot: Slot, said: consent.Said) -> None:
        """Raises RunsError as the command does."""
        consent.refuse_decided(slot, said, self.memory.now.timestamp())
        consent.refuse(slot, said, frozenset({run.state.started_by, self.memory.started_by(run.id)}))
        decides = consent.is_decision(slot, said)
        contract = self.memory.agents[run.release_id].toolbox[slot.tool].contract
        self._append(run, *consent.entries(slot, said, contract), by=said.actor, wakes=decides)

    # -- the rest ---------------------------------------------------------------------------------------------------

    def reconcile(self, which: Which = None, *, happened: bool, result: Any = None, evidence: str = "looked") -> Trial:
        """Say of a call in doubt whether it happened. One that did not is sent again, under its own key."""
        run, slot = self._find(which, "in_doubt")
        body = {"verdict": "happened" if happened else "never_happened", "evidence": evidence}
        drafts = [Draft(Kind.RECONCILE, body, step=slot.step)]
        if happened:
            seen = {"outcome": "succeeded", "result": result, "source": "operator"}
            drafts.append(Draft(Kind.OBS, seen, step=slot.step, settles=slot.step))
        self._append(run, *drafts)
        return self.rest()

    def signal(self, name: str, payload: Any = None, id: str | None = None) -> Trial:
        """Send a signal. The same id again is the same signal."""
        sent = [entry.body.get("id") for entry in self.journal if entry.kind == Kind.SIGNAL]
        if id is None or id not in sent:
            more = {} if id is None else {"id": id}
            self._append(self._run, Draft(Kind.SIGNAL, {"name": name, "payload": payload} | more))
        return self.rest()

    def answer(self, value: Any, which: Which = None) -> Trial:
        """Answer the question that is open: of this step or with these words, or the only one."""
        self._answer(*self._find(which, "ask"), value)
        return self.rest()

    def _answer(self, run: MemoryRun, slot: Slot, value: Any) -> None:
        """Raises AssertionError for what a person could not answer."""
        if fault := answer_fault(slot.body, value):
            raise AssertionError(f"{value!r} is no answer to {slot.body['question']!r}: {fault}")
        self._append(run, Draft(Kind.ANSWER, {"value": value}, step=slot.step, settles=slot.step))

    def cancel(self, reason: str = "not wanted any more") -> Trial:
        """The run, and all its children."""
        self._refuse_if_ended(self._run)
        self.memory.cancel_tree(self._run, reason, {}, PERSON)
        return self.rest()

    def hold(self, reason: str = "look at it first") -> Trial:
        return self._control("hold", reason)

    def resume(self, reason: str = "go on") -> Trial:
        """Lift a hold, a brake or a divergence."""
        return self._control("resume", reason)

    def _control(self, verb: str, reason: str) -> Trial:
        self._append(self._run, Draft(Kind.CONTROL, {"verb": verb, "reason": reason}))
        return self.rest()

    def _append(self, run: MemoryRun, *drafts: Draft, by: str = PERSON, wakes: bool = True) -> None:
        self._refuse_if_ended(run)
        self.memory.append_person(run, drafts, by, wakes=wakes)

    def _refuse_if_ended(self, run: MemoryRun) -> None:
        if run.status in ENDED:
            raise AssertionError(f"the run has ended as {run.status}")

    def _find(self, which: Which, wanted: str) -> tuple[MemoryRun, Slot]:
        """The one open step of any run that is in this state (or of this kind), by its step, tool or question."""
        found = [
            (run, slot)
            for run in self.memory.runs.values()
            for slot in run.state.unsettled()
            if wanted in (slot.state, slot.kind) and which in (None, slot.step, slot.tool, slot.body.get("question"))
        ]
        if len(found) != 1:
            named = "no step" if not found else f"more than one step ({', '.join(str(s.step) for _, s in found)})"
            which_one = f" of {which!r}" if which is not None else ""
            raise AssertionError(f"{named}{which_one} is {wanted.replace('_', ' ')}: {self.status}, {self.story}")
        return found[0]


def times_of(slot: Slot, now: float) -> list[float]:
    """When something becomes of a request for approval by itself: it expires, or somebody is reminded (POSIX)."""
    approval = slot.approval
    if approval is None or not approval.open:
        return []
    times = [approval.expires] if approval.expires is not None else []
    every = approval.policy.remind_every
    if every is not None and approval.requested_at is not None:
        began = approval.requested_at.timestamp()
        times.append(began + (floor((now - began) / every) + 1) * every)
    return [at - A_TICK for at in times]  # a worker knows when it asked a moment before the journal does


def only_reminds(state: RunState) -> bool:
    """Whether time does nothing more for the run than to remind people of it."""
    return bool(state.open) and all(
        slot.due is None if slot.kind != "call" else slot.state == "awaiting_approval" and not expires(slot)
        for slot in state.unsettled()
        if slot.kind != "child"
    )


def expires(slot: Slot) -> bool:
    return slot.approval is not None and slot.approval.open and slot.approval.expires is not None
