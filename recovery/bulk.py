"""The command behind each verb of a bulk act, and the step of a sweep that carries the acts out."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.db import connection, transaction

from journal.errors import JournalError
from recovery.bulk_pins import carry_out_pins
from recovery.commands import reconcile_intent
from recovery.errors import CannotProbe, NotInDoubt, RecoveryError
from runs.bulk_work import Command, carry_out
from runs.commands import cancel_run, hold_run, release_run, resume_run, retry_run
from runs.errors import RunsError
from runs.queries import state_of

BUDGET = 0.5  # seconds of a sweep's round


def probe_run(*, run_id: UUID, reason: str, actor: str) -> None:
    """Ask the tool about each intent of the run that is in doubt. Raises NotInDoubt, CannotProbe.

    One that cannot be asked about is left for a person where another of the run can.
    """
    doubts = [slot for slot in state_of(run_id).unsettled() if slot.in_doubt]
    if not doubts:
        raise NotInDoubt
    refused = [no for slot in doubts if (no := ask_about(run_id, slot.seq, reason, actor)) is not None]
    if len(refused) == len(doubts):
        raise refused[0]


def ask_about(run_id: UUID, seq: int, reason: str, actor: str) -> CannotProbe | None:
    try:
        with transaction.atomic():
            reconcile_intent(run_id=run_id, seq=seq, verdict="probe", evidence=reason, actor=actor)
    except CannotProbe as no:
        return no
    return None


COMMANDS: dict[str, Command] = {
    "cancel": cancel_run, "hold": hold_run, "resume": resume_run, "release": release_run, "retry": retry_run,
    "probe": probe_run,
}  # fmt: skip
REFUSALS = (RunsError, RecoveryError, JournalError)


def carry_out_bulk(stopping: Callable[[], bool]) -> bool:
    """Whether there is more to do now. Gives its connection back when there is not."""
    more = carry_out(COMMANDS, REFUSALS, BUDGET, stopping)
    more = carry_out_pins(BUDGET, stopping) or more
    if not more:
        connection.close()
    return more
