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
from runs.approvals import decide_approval
from runs.commands import answer_ask, release_run, resume_run, signal_run
from runs.errors import RunsError
from runs.models import ENDED, Run
from runs.queries import state_of
from runs.slots import Slot
from runs.state import RunState

ANSWER = 7
APPROVERS = frozenset({"approver"})


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
                digest = slot.approval.digest
                done += tried(
                    decide_approval,
                    run_id=run.id,
                    seq=slot.seq,
                    verdict="approve",
                    digest=digest,
                    note="",
                    actor="ada",
                    groups=APPROVERS,
                )
            elif slot.in_doubt and run.status == "needs_reconciliation":
                done += self._settle(run, slot)
        return done

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
