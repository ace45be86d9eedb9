"""What the API answers: rows and folds made into its shapes."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from django.utils import timezone

from journal.encoding import decode, tagged
from journal.entries import Entry, Kind
from journal.errors import PayloadError
from journal.payloads import Pointer, payload_store
from journal.read import read_entries, read_head, read_tails
from runs.brakes import spent
from runs.engine.projections import of_approval
from runs.models import ENDED, Run, Status, WorkerSession
from runs.queries import IntentView, standing_below, state_of
from runs.rest.fleet import WorkerOut
from runs.rest.schemas import (
    ApprovalOut,
    AttemptOut,
    Child,
    ControlOut,
    EditOut,
    EntryOut,
    IntentOut,
    Pin,
    RepeatOut,
    RunDetail,
    RunOut,
    StateOut,
    StepKind,
    StepOut,
    Wait,
)
from runs.short_ids import short_id
from runs.slots import Approval, Control, Slot
from runs.state import RunState, fold

RECENTLY = timedelta(hours=1)
LARGEST_SHOWN = 2**20  # bytes of a result in an answer
MOST_CHILDREN = 1000


def run_row(run: Run) -> RunOut:
    return RunOut(**_row(run))


def run_detail(run: Run, largest: float = LARGEST_SHOWN) -> RunDetail:
    """With what only the journal knows: its last seq, and how the run ended (above `largest` bytes as a pointer)."""
    last_seq = 0 if is_stateless(run) else read_head(None, run.id).last_seq
    ending = {name: _whole(value, largest) for name, value in ending_of(run).items()}
    return RunDetail(
        **_row(run),
        last_seq=last_seq,
        worker=worker_on(run),
        wake_at=run.wake_at,
        children=children_of(run),
        forks=list(run.forks.order_by("id").values_list("id", flat=True)[:MOST_CHILDREN]) if run.lineage else [],
        waits=waits_of(run),
        **budget_of(run),
        result=ending.get("result"),
        error=ending.get("error"),
        cancelled=ending.get("cancelled"),
    )


def is_stateless(run: Run) -> bool:
    """Its row is all there is of it: no journal."""
    return run.input is not None


def ending_of(run: Run) -> dict[str, Any]:
    """How it ended, as DONE tells it; empty while it has not."""
    if run.status not in ENDED:
        return {}
    if is_stateless(run):
        return decode(bytes(run.ending)) if run.ending is not None else {}
    done = read_entries(None, run.id, kinds=[Kind.DONE])
    return done[0].body if done else {}


def worker_on(run: Run) -> str | None:
    return run.session.name if run.session and run.session.ended_at is None else None


def children_of(run: Run) -> list[Child]:
    rows = run.children.order_by("parent_step").only("id", "agent", "status", "parent_step")[:MOST_CHILDREN]
    return [Child(id=row.id, agent=row.agent, status=Status(row.status), step=row.parent_step or 0) for row in rows]


def waits_of(run: Run) -> list[Wait]:
    """Read from its last decision on: whatever came before that is settled."""
    if run.status in ENDED or is_stateless(run):
        return []
    folded = fold(run.id, read_tails(None, [run.id]).get(run.id, []))
    open_ones = folded.unsettled()
    standing = standing_below(run.id) if any(slot.kind == "child" for slot in open_ones) else {}
    return [_wait(slot, worker_on(run), standing.get(slot.child) if slot.child else None) for slot in open_ones]


def _wait(slot: Slot, worker: str | None, stands: str | None) -> Wait:
    asks = slot.kind == "ask"
    due = slot.attempts[-1].due if slot.attempts else slot.due
    return Wait(
        seq=slot.seq,
        step=slot.step,
        kind=cast(StepKind, slot.kind),
        what=str(slot.body["question"]) if asks else slot.signal if slot.kind == "signal" else slot.tool,
        state=slot.state,
        since=slot.at,
        due=None if due is None else datetime.fromtimestamp(due, UTC),
        released_by=f"Its child ends; now {stands}" if stands else released_by(slot, worker),
        child=slot.child if slot.kind == "child" else None,
        options=tagged(slot.body.get("options")) if asks else None,
        answer_schema=tagged(slot.body.get("schema")) if asks else None,
    )


def released_by(slot: Slot, worker: str | None) -> str:
    """One sentence for whoever wants it to go on."""
    match slot.kind, slot.state:
        case "sleep", _:
            return "Its time comes."
        case "signal", _:
            return f"The signal {slot.signal}."
        case "ask", _:
            return "Somebody answers."
        case "child", _:
            return "Its child ends."
        case _, "awaiting_approval":
            return "Somebody who may approve decides."
        case _, "in_doubt" if worker is None:
            return "Somebody says, with evidence, what happened; or a worker that takes the run over finds out."
    return f"The worker {worker} is on it." if worker else "A worker sends it when it is due."


def budget_of(run: Run) -> dict[str, Any]:
    """`budget` and `used`. Only a run with a budget is folded whole for it."""
    budget = run.release.content.get("budget")
    if budget is None or is_stateless(run):
        return {"budget": budget, "used": None}
    folded = state_of(run.id)
    began = folded.budget_from.at or folded.time_of(1).timestamp()
    now = (run.ended_at or timezone.now()).timestamp()
    total, before = spent(folded, now), folded.budget_from
    used = {
        "steps": total.steps - before.steps,
        "tokens": total.tokens - before.tokens,
        "cost": total.cost - before.cost,
        "unpriced": total.unpriced - before.unpriced,
        "seconds": round(now - began, 3),
    }
    return {"budget": budget, "used": used}


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
        "business_id": run.business_id,
        "parent": run.parent_id,
        "forked_from": run.forked_from_id,
        "forked_at": run.forked_at,
        "priority": run.priority,
        "deadline": run.deadline_at,
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
    controls = (folded.cancel, folded.held, folded.diverged, folded.braked, folded.quarantined)
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
    return StepOut(
        step=slot.step,
        kind=cast(StepKind, slot.kind),
        seq=slot.seq,
        at=slot.at,
        state=slot.state,
        tool=slot.tool,
        args=tagged(slot.args),
        edited=_edit(slot),
        key=slot.key,
        effect=slot.effect,
        digest=slot.digest,
        gate=slot.gate,
        approval=None if slot.approval is None else _approval(slot.approval),
        attempts=[AttemptOut.model_validate(attempt, from_attributes=True) for attempt in slot.attempts],
        outcome=slot.outcome,
        result=tagged(slot.result),
        error=tagged(slot.error),
    )


def _approval(said: Approval) -> ApprovalOut:
    return ApprovalOut(
        verdict=said.verdict, seq=said.seq, at=said.at, actor=said.actor, digest=said.digest, note=said.note,
        granted=said.granted_by, why=said.why, repeats=[RepeatOut(**repeat.record) for repeat in said.repeats],
        expires=None if said.expires is None else datetime.fromtimestamp(said.expires, UTC),
    )  # fmt: skip


def _control(control: Control) -> ControlOut:
    return ControlOut.model_validate(control, from_attributes=True)


def intent(view: IntentView) -> IntentOut:
    return IntentOut(
        run_id=view.run_id,
        seq=view.seq,
        step=view.step,
        tool=view.tool,
        args=_whole(view.args, LARGEST_SHOWN),
        key=view.key,
        digest=view.digest,
        effect=view.effect,
        state=view.state,
        since=view.since,
        deadline=view.deadline,
        attempt=view.attempt,
        worker=view.worker,
        **_consent(view.slot),
    )


def _consent(slot: Slot) -> dict[str, Any]:
    """What somebody who decides on a call wants to know beside it."""
    approval = slot.approval if slot.state == "awaiting_approval" else None
    fields = approval.fields if approval else None
    return {
        **of_approval(approval),
        "summary": slot.summary,
        "fields": None if fields is None else _whole(fields, LARGEST_SHOWN),
        "asked_args": _whole(slot.asked_args, LARGEST_SHOWN),
        "edited": _edit(slot),
        "why": approval.why if approval else "",
    }


def _edit(slot: Slot) -> EditOut | None:
    return None if slot.edited is None else EditOut(by=slot.edited.by, args=_whole(slot.edited.args, LARGEST_SHOWN))


def worker(row: WorkerSession) -> WorkerOut:
    return WorkerOut.model_validate(row, from_attributes=True)
