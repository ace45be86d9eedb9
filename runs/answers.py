"""What the API answers: rows and folds made into its shapes."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from journal.encoding import tagged
from journal.entries import Entry, Kind
from journal.errors import PayloadError
from journal.payloads import Pointer, payload_store
from journal.read import read_entries, read_head
from runs.models import ENDED, Release, Run, WorkerSession
from runs.queries import IntentView, short_id
from runs.schemas import (
    ApprovalOut,
    AttemptOut,
    ControlOut,
    EntryOut,
    IntentOut,
    Pin,
    ReleaseOut,
    RunDetail,
    RunOut,
    StateOut,
    StepOut,
    WorkerOut,
)
from runs.state import Control, RunState, Slot

RECENTLY = timedelta(hours=1)
LARGEST_SHOWN = 2**20  # bytes of a result in an answer


def run_row(run: Run) -> RunOut:
    return RunOut(**_row(run))


def run_detail(run: Run, largest: float = LARGEST_SHOWN) -> RunDetail:
    """With what only the journal knows: its last seq, and how the run ended (above `largest` bytes as a pointer)."""
    head = read_head(None, run.id)
    done = read_entries(None, run.id, kinds=[Kind.DONE]) if run.status in ENDED else []
    ending = {name: _whole(value, largest) for name, value in done[0].body.items()} if done else {}
    return RunDetail(
        **_row(run),
        last_seq=head.last_seq,
        worker=run.session.name if run.session and run.session.ended_at is None else None,
        wake_at=run.wake_at,
        result=ending.get("result"),
        error=ending.get("error"),
        cancelled=ending.get("cancelled"),
    )


def _whole(value: Any, largest: float) -> Any:
    """The tagged value itself where a pointer stands for it; a store that fails is no reason to hide the rest."""
    if type(value) is Pointer and value.size <= largest:
        with suppress(PayloadError):
            value = payload_store().load(value)
    return tagged(value)


def _row(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": short_id(run.id),
        "agent": run.agent,
        "status": run.status,
        "reason": run.reason,
        "since": run.since,
        "pin": Pin(release=run.release_id, agent=run.release.agent, version=run.release.version),
        "epoch": run.epoch,
        "labels": run.labels,
        "request_key": run.request_key,
        "created_at": run.created_at,
        "ended_at": run.ended_at,
    }


def entry(e: Entry) -> EntryOut:
    return EntryOut(
        seq=e.seq,
        kind=e.kind,
        body=tagged(e.body),
        step=e.step,
        epoch=e.epoch,
        actor=e.actor,
        recorded_at=e.recorded_at,
    )


def state(folded: RunState) -> StateOut:
    controls = (folded.cancel, folded.held, folded.diverged, folded.quarantined)
    return StateOut(
        run_id=folded.run_id,
        seq=folded.seq,
        at=folded.time_of(folded.seq) if folded.seq else None,
        agent=folded.agent,
        input=tagged(folded.input),
        labels=folded.labels,
        release=folded.release_id,
        frontier=folded.frontier,
        steps=[_step(slot) for slot in folded.slots.values()],
        unsettled=[slot.step for slot in folded.unsettled()],
        controls=[_control(control) for control in controls if control],
        plan=tagged(folded.plan),
        usage=folded.usage,
        done=tagged(folded.done),
    )


def _step(slot: Slot) -> StepOut:
    said = slot.approval
    return StepOut(
        step=slot.step,
        kind="call" if slot.kind == "call" else "sleep",
        seq=slot.seq,
        at=slot.at,
        state=slot.state,
        tool=slot.tool,
        args=tagged(slot.args),
        key=slot.key,
        effect=slot.effect,
        digest=slot.digest,
        gate=slot.gate,
        approval=None if said is None else ApprovalOut.model_validate(said, from_attributes=True),
        attempts=[AttemptOut.model_validate(attempt, from_attributes=True) for attempt in slot.attempts],
        outcome=slot.outcome,
        result=tagged(slot.result),
        error=tagged(slot.error),
    )


def _control(control: Control) -> ControlOut:
    return ControlOut.model_validate(control, from_attributes=True)


def intent(view: IntentView) -> IntentOut:
    return IntentOut(
        run_id=view.run_id,
        seq=view.seq,
        step=view.step,
        tool=view.tool,
        args=tagged(view.args),
        key=view.key,
        digest=view.digest,
        effect=view.effect,
        state=view.state,
        since=view.since,
        deadline=view.deadline,
        attempt=view.attempt,
    )


def worker(row: WorkerSession) -> WorkerOut:
    return WorkerOut.model_validate(row, from_attributes=True)


def release(row: Release) -> ReleaseOut:
    return ReleaseOut.model_validate(row, from_attributes=True)
