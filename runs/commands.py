"""What people do to runs. Each command: take the head, look at the run again, append, update the run row, commit.

`actor` is the name of who is signed in. Everything that changes a run carries a reason and lands in its journal.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from journal.append import append_person, lock_head, raise_epoch
from journal.encoding import canonical, problems
from journal.entries import Answer, Draft, Kind
from journal.feed import CHANNEL
from journal.read import read_entries
from runs import stateless
from runs.answer_types import answer_fault
from runs.audit import record_entries
from runs.dispatch import dispatch
from runs.errors import (
    AlreadyAnswered,
    AnswerInvalid,
    AskExpired,
    AskNotFound,
    BadInput,
    IntentNotFound,
    NotHeld,
    NotQuarantined,
    NotRetrying,
    ReasonMissing,
    RunEnded,
    SignalIdTaken,
    StatelessRun,
)
from runs.models import ENDED, Run, Status
from runs.moves import LONGEST_NAME, some
from runs.secrets import is_unreadable, struck_text, unreadable
from runs.slots import Slot
from runs.starting import start_run
from runs.state import RunState, fold
from runs.texts import is_writable, plain_text, said_text
from runs.trees import cancel_descendants, tell_parent

__all__ = [
    "Held",
    "answer_ask",
    "cancel_run",
    "hold_run",
    "locked_run",
    "note_run",
    "release_run",
    "resume_run",
    "retry_run",
    "signal_run",
    "start_run",
    "wake",
]

LONGEST_REASON = 10_000


@dataclass
class Held:
    """A run under its head's lock."""

    run: Run

    @cached_property
    def state(self) -> RunState:
        """Folded when somebody asks."""
        return fold(self.run.id, read_entries(connection, self.run.id))

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

    def append(self, entries: Sequence[Draft], actor: str, request_id: str | None = None) -> Answer:
        """Writes them, and the audit record of each act among them."""
        for entry in entries:
            entry.body = unreadable(entry.body)
        written = append_person(self.run.id, entries, request_id=request_id, actor=actor)
        if written.verdict == "written":
            record_entries(self.run.id, self.run.agent, entries, written.first_seq, actor)
        return written


@contextmanager
def locked_run(run_id: UUID, *, even_ended: bool = False) -> Iterator[Held]:
    """The run for a command: its head first, then its row. Raises NoSuchRun, and RunEnded unless `even_ended`."""
    with transaction.atomic():
        if (row := Run.objects.filter(id=run_id, input__isnull=False).only("status", "ended_at").first()) is not None:
            raise RunEnded(row.status, row.ended_at) if row.status in ENDED else StatelessRun
        lock_head(run_id)
        run = (
            Run.objects.select_for_update(of=("self",), no_key=True).select_related("release", "session").get(id=run_id)
        )
        held = Held(run)
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
    said = said_text(reason)
    if not said:
        raise ReasonMissing
    return struck_text(said[:LONGEST_REASON])


def control(verb: str, reason: str) -> Draft:
    return Draft(Kind.CONTROL, {"verb": verb, "reason": reason})


def cancel_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """The run and all below it: no new call starts; an open one is awaited or reconciled; then it is cancelled."""
    said = given_reason(reason)
    if stateless.cancel(run_id, said, actor):
        transaction.on_commit(functools.partial(tell, run_id))
        return fresh(run_id)
    with locked_run(run_id) as held:
        written = held.append([control("cancel", said)], actor)
        wake(held, f"cancelled by {actor}")
        cancel_below(held, written.first_seq, said, actor)
    return fresh(run_id)


def cancel_below(held: Held, seq: int | None, reason: str, actor: str) -> None:
    """What the entry `seq` of this run means for the runs below it."""
    for below, release_id in cancel_descendants(held.run.id, reason, actor, {"run": str(held.run.id), "seq": seq}):
        transaction.on_commit(functools.partial(dispatch, below, release_id))
        transaction.on_commit(functools.partial(tell, below))


def hold_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """The run stops at its next checkpoint until somebody resumes it; a quarantined one is quarantined still."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        held.append([control("hold", said)], actor)
        if not held.driven and held.state.quarantined is None:  # a quarantine goes on until it is released
            why = plain_text(f"held by {actor}: {said}")
            Run.objects.filter(id=run_id).update(
                status=Status.HELD, reason=why, since=Now(), wake_at=None, session=None
            )
    return fresh(run_id)


def resume_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """Lifts a hold, a divergence or a brake, which gets its budget once more. Raises NotHeld."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        if held.state.held is None and held.state.diverged is None and held.state.braked is None:
            raise NotHeld
        held.append([control("resume", said)], actor)
        if held.state.quarantined is None:
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


def retry_run(*, run_id: UUID, reason: str, actor: str) -> Run:
    """What waits for a backoff is tried again now. Raises NotRetrying."""
    said = given_reason(reason)
    with locked_run(run_id) as held:
        if not held.state.backs_off:
            raise NotRetrying
        held.append([control("retry", said)], actor)
        wake(held, f"tried again by {actor}")
    return fresh(run_id)


def note_run(*, run_id: UUID, text: str, actor: str) -> Run:
    """A remark in the journal, also of a run that has ended. It changes nothing. Raises ReasonMissing."""
    said = given_reason(text)
    with locked_run(run_id, even_ended=True) as held:
        held.append([Draft(Kind.NOTE, {"text": said})], actor)
    return fresh(run_id)


def signal_run(*, run_id: UUID, name: str, payload: Any = None, signal_id: str | None = None, actor: str) -> Run:
    """Kept in order until a WaitFor of this name takes it. The same `signal_id` again changes nothing.

    Raises RunEnded, BadInput, SignalIdTaken.
    """
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise BadInput(f"The name of a signal has 1 to {LONGEST_NAME} characters.")
    if not is_writable(name) or not is_writable(signal_id or ""):
        raise BadInput("The name and the id of a signal are whole Unicode text, without NUL.")
    if is_unreadable(name, signal_id):
        raise BadInput("The name or the id of the signal matches HOLDFAST_REDACT, and both are shown: use another.")
    if lost := problems({"payload": payload}, "signal"):
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    entry = Draft(Kind.SIGNAL, {"name": name, "payload": payload} | some(id=signal_id))
    request_id = f"signal {name} {signal_id}" if signal_id is not None else None
    with locked_run(run_id, even_ended=True) as held:
        if held.run.status in ENDED:
            if signal_id is None or not came_before(held, name, signal_id, payload):
                held.refuse_if_ended()
            return held.run
        if held.append([entry], actor, request_id).verdict == "already":
            came_before(held, name, str(signal_id), payload)
        elif name in held.run.awaits_signals:
            wake(held, f"signal {name}")
    return fresh(run_id)


def came_before(held: Held, name: str, signal_id: str, payload: Any) -> bool:
    """Whether this signal is in the journal. Raises SignalIdTaken if it is with another payload."""
    same = held.state.signal_of(name, signal_id)
    if same is not None and canonical(same.payload) != canonical(payload):
        raise SignalIdTaken(signal_id, same.at)
    return same is not None


def answer_ask(*, run_id: UUID, seq: int, value: Any, actor: str) -> Run:
    """Answer the question of entry `seq`, once. Raises AskNotFound, AlreadyAnswered, AskExpired, AnswerInvalid."""
    with locked_run(run_id, even_ended=True) as held:
        slot = next((slot for slot in held.state.slots.values() if slot.seq == seq and slot.kind == "ask"), None)
        if slot is None:
            raise AskNotFound(f"(seq {seq})")
        if slot.settled and slot.settled_by is not None and slot.obs_at is not None:
            refusal = AskExpired if slot.outcome == "expired" else AlreadyAnswered
            raise refusal(slot.settled_by, slot.outcome or "", slot.obs_at)
        held.refuse_if_ended()
        if wrong := answer_fault(slot.body, value):
            raise AnswerInvalid(wrong)
        held.append([Draft(Kind.ANSWER, {"value": value}, step=slot.step, settles=slot.step)], actor)
        wake(held, f"answered by {actor}")
    return fresh(run_id)


def end_by_person(held: Held, entries: Sequence[Draft], actor: str, request_id: str | None) -> None:
    """A person's DONE, the last of the entries: whoever drives the run is fenced, and it belongs to no session.

    The runs below it are cancelled.
    """
    last = held.append(entries, actor, request_id).last_seq
    epoch = raise_epoch(held.run.id)
    Run.objects.filter(id=held.run.id).update(
        status=Status.CANCELLED, reason="", since=Now(), ended_at=timezone.now(), wake_at=None, session=None,
        epoch=epoch, as_of_seq=last,
    )  # fmt: skip
    cancel_below(held, last, str(entries[-1].body.get("cancelled", "")), actor)
    if held.run.parent_id is not None:
        transaction.on_commit(functools.partial(join_parent, held.run.id))


def join_parent(child: UUID) -> None:
    """The child has ended: its parent goes on, if it waits for that."""
    if (due := tell_parent(child)) is not None:
        dispatch(*due)
