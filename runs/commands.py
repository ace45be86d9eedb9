"""What people do to runs. Each command: take the head, look at the run again, append, update the run row, commit.

`actor` is the name of who is signed in. Everything that changes a run carries a reason and lands in its journal.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from journal.append import append_person, lock_head, raise_epoch
from journal.entries import Draft, Kind
from journal.feed import CHANNEL
from journal.read import read_entries
from runs.dispatch import dispatch
from runs.errors import (
    AlreadyDecided,
    DigestMismatch,
    DigestMissing,
    IntentNotFound,
    NotAwaitingApproval,
    NotHeld,
    NotQuarantined,
    ReasonMissing,
    RunEnded,
    VerdictUnknown,
)
from runs.models import ENDED, Run, Status
from runs.projections import plain_text
from runs.starting import start_run
from runs.state import RunState, Slot, fold

__all__ = [
    "Held",
    "cancel_run",
    "decide_approval",
    "hold_run",
    "locked_run",
    "release_run",
    "resume_run",
    "start_run",
    "wake",
]

LONGEST_REASON = 10_000


@dataclass(slots=True)
class Held:
    """A run under its head's lock, with its state folded."""

    run: Run
    state: RunState

    @property
    def driven(self) -> bool:
        """Whether a live session drives it and will read what is appended."""
        return self.run.session is not None and self.run.session.ended_at is None

    def refuse_if_ended(self) -> None:
        if self.run.status in ENDED:
            raise RunEnded(self.run.status, self.run.ended_at)

    def intent(self, seq: int) -> Slot:
        for slot in self.state.slots.values():
            if slot.seq == seq and slot.kind == "call":
                return slot
        raise IntentNotFound(f"(seq {seq})")

    def append(self, entries: Sequence[Draft], actor: str, request_id: str | None = None) -> None:
        append_person(self.run.id, entries, request_id=request_id, actor=actor)


@contextmanager
def locked_run(run_id: UUID, *, even_ended: bool = False) -> Iterator[Held]:
    """The run for a command: its head first, then its row. Raises NoSuchRun, and RunEnded unless `even_ended`."""
    with transaction.atomic():
        lock_head(run_id)
        run = (
            Run.objects.select_for_update(of=("self",), no_key=True).select_related("release", "session").get(id=run_id)
        )
        held = Held(run, fold(run_id, read_entries(connection, run_id)))
        if not even_ended:
            held.refuse_if_ended()
        yield held
        transaction.on_commit(functools.partial(tell, run_id))


def wake(held: Held, reason: str = "") -> None:
    """Nobody drives it: send it to a worker, which finds what is to be done."""
    if held.driven:
        return
    Run.objects.filter(id=held.run.id).update(
        status=Status.QUEUED, reason=plain_text(reason), since=Now(), wake_at=None, intents=[], dispatches=0,
        dispatched_at=None,
    )  # fmt: skip
    transaction.on_commit(functools.partial(dispatch, held.run.id, held.run.release_id))


def tell(run_id: UUID) -> None:
    """Pages that show the run read on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(run_id)])


def fresh(run_id: UUID) -> Run:
    return Run.objects.select_related("release", "session").get(id=run_id)


def given_reason(reason: str) -> str:
    said = (reason or "").strip()
    if not said:
        raise ReasonMissing
    return said[:LONGEST_REASON]


def control(verb: str, reason: str) -> Draft:
    return Draft(Kind.CONTROL, {"verb": verb, "reason": reason})


def cancel_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """No new call starts; an open one is awaited or reconciled; then the run is cancelled."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        held.append([control("cancel", said)], actor)
        wake(held, f"cancelled by {actor}")
    return fresh(run_id)


def hold_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """The run stops at its next checkpoint until somebody resumes it."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        held.append([control("hold", said)], actor)
        if not held.driven:
            why = plain_text(f"held by {actor}: {said}")
            Run.objects.filter(id=run_id).update(
                status=Status.HELD, reason=why, since=Now(), wake_at=None, session=None
            )
    return fresh(run_id)


def resume_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """Lifts a hold or a divergence. Raises NotHeld."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        if held.state.held is None and held.state.diverged is None:
            raise NotHeld
        held.append([control("resume", said)], actor)
        wake(held, f"resumed by {actor}")
    return fresh(run_id)


def release_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """Lifts a quarantine; the count of crashes starts anew. Raises NotQuarantined."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        if held.state.quarantined is None:
            raise NotQuarantined
        held.append([control("release", said)], actor)
        Run.objects.filter(id=run_id).update(crashes=0, crash_seq=held.state.seq + 1)
        wake(held, f"released by {actor}")
    return fresh(run_id)


VERDICTS = {"approve": "granted", "deny": "denied"}


def decide_approval(*, run_id: UUID, seq: int, verdict: str, digest: str, note: str, actor: str) -> Run:
    """Decide one intent, once, under the digest that the decider saw.

    Raises VerdictUnknown, IntentNotFound, AlreadyDecided, NotAwaitingApproval, DigestMissing, DigestMismatch.
    """
    if verdict not in VERDICTS:
        raise VerdictUnknown(f"{verdict!r}; there are {', '.join(VERDICTS)}.")
    with locked_run(run_id, even_ended=True) as held:
        slot = held.intent(seq)
        approval = slot.approval
        if approval is not None and approval.verdict != "requested":
            raise AlreadyDecided(approval.actor, approval.verdict, approval.at)
        held.refuse_if_ended()  # only now: who comes late learns who decided, though the run is over
        if approval is None or slot.settled:
            raise NotAwaitingApproval
        if not digest:
            raise DigestMissing
        if digest != approval.digest:
            raise DigestMismatch(approval.digest)
        if verdict == "deny" and not (note or "").strip():
            raise ReasonMissing
        body = {"verdict": VERDICTS[verdict], "digest": digest, "note": note}
        entries = [Draft(Kind.APPROVAL, body, step=slot.step)]
        if verdict == "deny":
            why = {"outcome": "denied", "error": note or f"denied by {actor}", "source": "operator"}
            entries.append(Draft(Kind.OBS, why, step=slot.step, settles=slot.step))
        held.append(entries, actor)
        wake(held, f"{VERDICTS[verdict]} by {actor}")
    return fresh(run_id)


def end_by_person(held: Held, entries: Sequence[Draft], actor: str, request_id: str | None) -> None:
    """A person's DONE: whoever drives the run is fenced, and it belongs to no session."""
    held.append(entries, actor, request_id)
    epoch = raise_epoch(held.run.id)
    Run.objects.filter(id=held.run.id).update(
        status=Status.CANCELLED, reason="", since=Now(), ended_at=timezone.now(), wake_at=None, session=None,
        epoch=epoch, as_of_seq=held.state.seq + len(entries),
    )  # fmt: skip
