"""People settle what nobody knows: by key, and with evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection

from journal.encoding import decode, problems
from journal.entries import Draft, Kind
from journal.payloads import payload_store
from journal.read import read_entries
from recovery.errors import (
    AlreadyReconciled,
    AttemptOutdated,
    CannotProbe,
    EvidenceMissing,
    EvidenceUseless,
    NotInDoubt,
    ResultInvalid,
)
from recovery.files import EvidenceFile, kept
from runs.answer_types import SchemaRefused, faults_of
from runs.commands import Held, end_by_person, fresh, locked_run, wake
from runs.engine.projections import intent_record
from runs.errors import BadInput, VerdictUnknown
from runs.models import Evidence, Run
from runs.secrets import sealed_by
from runs.slots import Slot
from runs.texts import is_writable, said_text

VERDICTS = ("happened", "never_happened", "probe", "abort")
LONGEST_EVIDENCE = 10_000
LONGEST_ID = 500


def reconcile_intent(
    *,
    run_id: UUID,
    seq: int,
    verdict: str,
    evidence: str,
    actor: str,
    result: Any = None,
    attempt: int | None = None,
    external_id: str = "",
    file: EvidenceFile | None = None,
    request_id: str | None = None,
) -> Run:
    """Settle an intent in doubt. `attempt` is the number of the send that was judged: no later one is meant.

    happened: its OBS is written with `result`, which fits the tool's return type. never_happened: a worker executes it
    once under its own key, when what was sent last cannot act any more. probe: a worker asks the tool by key. abort:
    the run ends as cancelled and the question stays on record. `external_id`: its name on the other side.

    Raises VerdictUnknown, EvidenceMissing, BadInput, FileTooLarge, RunEnded, IntentNotFound, AlreadyReconciled,
    NotInDoubt, AttemptOutdated, CannotProbe, ResultInvalid.
    """
    if verdict not in VERDICTS:
        raise VerdictUnknown(f"{verdict!r}; there are {', '.join(VERDICTS)}.")
    body = {"verdict": verdict, "evidence": given_evidence(evidence)} | given_id(external_id)
    if result is not None and verdict != "happened":
        raise BadInput("A result goes with the verdict happened only.")
    if lost := problems(result, "result"):
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    if file is not None:
        body["file"] = kept(run_id, file)  # on the disk before its entry; one that no entry names harms nobody
    with locked_run(run_id, even_ended=True) as held:
        slot = held.intent(seq)
        check_not_answered(held, slot)
        held.refuse_if_ended()
        check_in_doubt(held, slot)
        check_attempt(slot, verdict, attempt)
        if verdict == "probe" and not probe_declared(held, slot):
            raise CannotProbe
        entries = [Draft(Kind.RECONCILE, body, step=slot.step)]
        if verdict == "happened":
            entries.append(settled(held, slot, {"outcome": "succeeded", "result": fitting(held, slot, result)}))
        if verdict == "abort":
            entries.append(Draft(Kind.DONE, {"cancelled": f"aborted by {actor}: {body['evidence']}"}))
            end_by_person(held, entries, actor, request_id)
            leave_on_record(held)
        else:
            held.append(entries, actor, request_id)
            wake(held, f"{verdict.replace('_', ' ')}, says {actor}")
    return fresh(run_id)


def adopt_evidence(*, run_id: UUID, seq: int, evidence: int, actor: str, note: str = "") -> Run:
    """Settle an intent in doubt by a result that came from a fenced worker: row `evidence` of the refused ones.

    Raises EvidenceUseless, RunEnded, IntentNotFound, AlreadyReconciled, NotInDoubt.
    """
    with locked_run(run_id, even_ended=True) as held:
        slot = held.intent(seq)
        row = Evidence.objects.select_related("session").filter(pk=evidence, run=run_id, step=slot.step).first()
        if row is None or row.outcome not in ("succeeded", "failed"):
            raise EvidenceUseless
        check_not_answered(held, slot)
        held.refuse_if_ended()
        check_in_doubt(held, slot)
        worker = row.session.name if row.session else "a worker"
        said = f"late result {row.pk} of {worker}, epoch {row.epoch}" + (f": {note.strip()}" if note.strip() else "")
        verdict = "happened" if row.outcome == "succeeded" else "never_happened"
        entries = [
            Draft(Kind.RECONCILE, {"verdict": verdict, "evidence": said[:LONGEST_EVIDENCE]}, step=slot.step),
            settled(held, slot, decode(bytes(row.body)), source="late"),
        ]
        row.adopted_seq = held.append(entries, actor).last_seq
        row.save(update_fields=["adopted_seq"])
        wake(held, f"a late result was adopted by {actor}")
    return fresh(run_id)


def given_evidence(evidence: str) -> str:
    said = said_text(evidence)[:LONGEST_EVIDENCE]
    if not said:
        raise EvidenceMissing
    return said


def given_id(external_id: str) -> dict[str, Any]:
    named = (external_id or "").strip()
    if len(named) > LONGEST_ID or not is_writable(named):
        raise BadInput(f"An external id is whole Unicode text of at most {LONGEST_ID} characters, without NUL.")
    return {"external_id": named} if named else {}


def settled(held: Held, slot: Slot, body: Mapping[str, Any], source: str = "operator") -> Draft:
    """The OBS that settles it, large values beside the journal."""
    told = {**body, "source": source}
    if slot.edited is not None:
        told["edited"] = slot.edited.record
    return Draft(Kind.OBS, payload_store().offload(held.run.id, told), step=slot.step, settles=slot.step)


def fitting(held: Held, slot: Slot, result: Any) -> Any:
    """The result, sealed where its type says so. None: it is not known. Raises ResultInvalid."""
    schema = contract_of(held.run, slot).get("returns")
    if result is None or not schema:
        return result
    try:
        faults = [fault.told("result") for fault in faults_of(schema, result)]
    except SchemaRefused:
        return sealed_by(schema, result)  # a type that no validator knows judges nothing
    if faults:
        raise ResultInvalid(faults)
    return sealed_by(schema, result)


def leave_on_record(held: Held) -> None:
    """The row of an aborted run keeps what nobody answered, and nothing else: it waits for nobody."""
    doubts = [slot for slot in held.state.slots.values() if slot.in_doubt]
    kept = [intent_record(slot) | {"state": "aborted"} for slot in doubts]
    Run.objects.filter(id=held.run.id).update(intents=kept)


def contract_of(run: Run, slot: Slot) -> Mapping[str, Any]:
    """The tool as the run's release holds it; empty where it does not."""
    tools = run.release.contract.get("tools", [])
    return next((tool for tool in tools if tool["name"] == slot.tool), {})


def check_not_answered(held: Held, slot: Slot) -> None:
    """Who comes late learns whose answer stands, though the intent is settled since or the run is over."""
    if slot.in_doubt and held.state.done is None:
        return
    answers = read_entries(connection, held.run.id, kinds=[Kind.RECONCILE])
    ours = [e for e in answers if e.step == slot.step and e.body["verdict"] in ("happened", "never_happened", "abort")]
    if ours:
        last = ours[-1]
        raise AlreadyReconciled(last.actor, last.body["verdict"], last.recorded_at)


def check_in_doubt(held: Held, slot: Slot) -> None:
    if slot.in_doubt and not (held.driven and slot.attempts and slot.attempts[-1].unknown_at is None):
        return
    if slot.settled and slot.settled_by is not None:
        raise AlreadyReconciled(slot.settled_by, slot.outcome or "", slot.obs_at or slot.at)
    if slot.cleared and slot.cleared_by is not None:
        raise AlreadyReconciled(slot.cleared_by, "never happened", slot.cleared_at or slot.at)
    if slot.in_doubt:
        raise NotInDoubt("A worker is waiting for its answer right now.")
    raise NotInDoubt


def check_attempt(slot: Slot, verdict: str, attempt: int | None) -> None:
    """What was looked up before the last send says nothing of that send: a second click would send once more."""
    if attempt is not None and attempt != len(slot.attempts):
        raise AttemptOutdated(attempt, len(slot.attempts))
    if attempt is None and verdict == "never_happened" and slot.cleared_by is not None and slot.cleared_at is not None:
        raise AlreadyReconciled(slot.cleared_by, "never_happened", slot.cleared_at)


def probe_declared(held: Held, slot: Slot) -> bool:
    return bool(contract_of(held.run, slot).get("probe"))
