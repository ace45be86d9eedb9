"""What has to be true of a run, whatever was killed: one effect a key, or in doubt and parked; the journal whole."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from journal.entries import Kind
from journal.verify import verify_run
from recovery.commands import reconcile_intent
from runs.approvals import decide_approval
from runs.models import Run
from runs.queries import entries_of, list_intents, state_of
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS

EFFECTS = ("read", "keyed", "keyed-probe", "probed", "unkeyed")
ACTIONS = {"read": "order", "keyed": "charge", "keyed-probe": "refund", "probed": "transfer", "unkeyed": "mail"}


def assert_whole(run_id: UUID) -> None:
    """Gapless, unbroken, one settling entry a step, nothing sent or observed that was not begun, one end."""
    entries = entries_of(run_id)
    told = str([(e.seq, e.epoch, e.kind, e.step, e.body) for e in entries])
    assert [e.seq for e in entries] == list(range(1, len(entries) + 1)), told
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_seq FROM journal_head WHERE run_id = %s", [run_id])
        assert cursor.fetchone() == (len(entries),), told
    assert verify_run(run_id) == [], told
    settled = [e.settles for e in entries if e.settles is not None]
    assert len(settled) == len(set(settled)), told
    begun: dict[int | None, str] = {None: "model"}
    for entry in entries:
        if entry.kind in (Kind.TOOL_CALL, Kind.ASK) or entry.body.get("verb") in ("set", "spawned"):
            assert entry.step not in begun, told
            begun[entry.step] = entry.kind
        if entry.kind == Kind.ATTEMPT:
            assert begun.get(entry.step) in ("model", Kind.TOOL_CALL), told
        if entry.kind == Kind.OBS or entry.settles is not None:
            assert entry.step in begun, told
    workers = [e.epoch for e in entries if e.actor == "worker"]
    assert workers == sorted(workers), told
    assert [e.kind for e in entries].count(Kind.DONE) <= 1, told


def assert_done_once(ledger: Ledger, run: Run) -> None:
    """It is done, and each call that acts acted once."""
    assert run.status == "done", (run.status, run.reason)
    assert run.intents == []
    assert_whole(run.id)
    for slot in state_of(run.id).slots.values():
        if slot.effect not in ("", "read"):
            assert ledger.acted(slot.key) == 1, slot


def assert_parked_in_doubt(ledger: Ledger, run: Run, acted: int | None = None) -> None:
    """A person has to look: it says so, lists each intent in doubt, and nothing was sent twice.

    `acted`: how often each of them really acted, where that is known.
    """
    assert run.status == "needs_reconciliation", (run.status, run.reason, entries_of(run.id))
    assert run.reason and run.since
    assert_whole(run.id)
    state = state_of(run.id)
    doubtful = [slot for slot in state.unsettled() if slot.in_doubt]
    listed = [intent.step for intent in list_intents(state="in_doubt")[0] if intent.run_id == run.id]
    assert doubtful and sorted(listed) == sorted(slot.step for slot in doubtful)
    for slot in state.slots.values():
        if slot.effect == "read":
            continue
        times = ledger.acted(slot.key)
        assert times <= 1 if slot.in_doubt else times == 1, slot
        assert acted is None or not slot.in_doubt or times == acted, slot


def approve(run_id: UUID, step: int = 1) -> Run:
    slot = state_of(run_id).slots[step]
    return decide_approval(
        run_id=run_id,
        seq=slot.seq,
        verdict="approve",
        digest=slot.digest,
        note="as ordered",
        actor="ada",
        groups=APPROVERS,
    )


def reconcile(run_id: UUID, verdict: str, step: int = 1) -> Run:
    seq = state_of(run_id).slots[step].seq
    return reconcile_intent(run_id=run_id, seq=seq, verdict=verdict, evidence="looked into the ledger", actor="olga")


def sources(run_id: UUID) -> list[str]:
    """Where each ATTEMPT came from, in order."""
    return [entry.body["source"] for entry in entries_of(run_id) if entry.kind == Kind.ATTEMPT]
