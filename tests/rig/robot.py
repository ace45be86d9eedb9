"""A person who does what runs wait for: answers, signals, approves, lets go on, settles doubts by the ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connection

from journal.errors import JournalError
from recovery.commands import reconcile_intent
from recovery.errors import RecoveryError
from runs.approvals import answer_question, decide_approval
from runs.commands import answer_ask, release_run, resume_run, retry_run, signal_run
from runs.errors import RunsError
from runs.models import ENDED, Run
from runs.queries import state_of
from runs.slots import Approval, Slot
from runs.state import RunState

ANSWER = 7
APPROVERS = frozenset({"approver"})
PEOPLE = ("ada", "max", "mia", "zoe", "kim")  # who approve


def tree_of(*roots: UUID) -> list[Run]:
    """The runs and all below them, parents first."""
    level = list(Run.objects.filter(id__in=roots))
    found = []
    while level:
        found += level
        level = list(Run.objects.filter(parent__in=level).order_by("parent_step"))
    return found


def waits_in(program: Any) -> list[str]:
    """The names that a script's own waits are for, in order. `never` is one that nobody sends."""
    names = []
    for statement in program or ():
        match statement:
            case ["wait", name, _] if name != "never":
                names.append(name)
            case ["all" | "first", together]:
                names += waits_in(together)
    return names


class Robot:
    """`acted(key)`: how often something acted under the key."""

    def __init__(self, acted: Callable[[str], int]) -> None:
        self.acted = acted

    def serve(self, *roots: UUID) -> int:
        """Does what there is to do for these trees now; how much that was."""
        done = 0
        for run in tree_of(*roots):
            if run.status not in ENDED:
                done += self._serve(run, state_of(run.id))
        if threading.current_thread() is not threading.main_thread():  # in whichever a worker dies
            connection.close()
        return done

    def _serve(self, run: Run, state: RunState) -> int:
        done = self._signal(state)
        for status, command in (("held", resume_run), ("quarantined", release_run)):
            if run.status == status:
                done += tried(command, run_id=run.id, reason="go on", actor="olga")
        for slot in state.unsettled():
            if slot.kind == "ask":
                done += tried(answer_ask, run_id=run.id, seq=slot.seq, value=ANSWER, actor="ada")
            elif slot.state == "awaiting_approval" and slot.approval is not None:
                done += self._approve(run, slot, slot.approval)
            elif slot.in_doubt and run.status == "needs_reconciliation":
                done += self._settle(run, slot)
        return done

    def _approve(self, run: Run, slot: Slot, approval: Approval) -> int:
        """One of as many as have to agree; what expired is asked for anew, what somebody asked back is answered."""
        if slot.has_expired:
            return tried(retry_run, run_id=run.id, reason="too late, again", actor="olga")
        if approval.question is not None:
            return tried(answer_question, run_id=run.id, seq=slot.seq, text="because", actor="olga")
        name = next(name for name in PEOPLE if name not in approval.granted_by and name not in slot.editors)
        return tried(decide_approval, run_id=run.id, seq=slot.seq, verdict="approve", digest=approval.digest, note="",
                     actor=name, groups=APPROVERS)  # fmt: skip

    def _signal(self, state: RunState) -> int:
        """As many signals of each name as the program has waits; the nth has the payload n."""
        done = 0
        wanted = waits_in(state.input)
        for name in dict.fromkeys(wanted):
            sent = sum(signal.name == name for signal in state.signals)
            for number in range(sent + 1, wanted.count(name) + 1):
                done += tried(signal_run, run_id=state.run_id, name=name, payload=number, signal_id=f"{number}",
                              actor="olga")  # fmt: skip
        return done

    def _settle(self, run: Run, slot: Slot) -> int:
        verdict = "happened" if self.acted(slot.key) else "never_happened"
        return tried(reconcile_intent, run_id=run.id, seq=slot.seq, verdict=verdict, evidence="looked into the ledger",
                     attempt=len(slot.attempts), actor="olga")  # fmt: skip


def tried(command: Callable[..., Any], **given: Any) -> int:
    """1 if it was done, 0 if it was refused: who comes late learns so."""
    try:
        command(**given)
    except (RunsError, RecoveryError, JournalError):
        return 0
    return 1
