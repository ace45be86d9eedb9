"""People settle what nobody knows: by key, and with evidence."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection

from journal.encoding import problems
from journal.entries import Draft, Kind
from journal.read import read_entries
from recovery.errors import AlreadyReconciled, AttemptOutdated, CannotProbe, EvidenceMissing, NotInDoubt
from runs.commands import Held, end_by_person, fresh, locked_run, wake
from runs.errors import BadInput, VerdictUnknown
from runs.models import Run
from runs.slots import Slot

VERDICTS = ("happened", "never_happened", "probe", "abort")
LONGEST_EVIDENCE = 10_000


def reconcile_intent(
    *,
    run_id: UUID,
    seq: int,
    verdict: str,
    evidence: str,
    actor: str,
    result: Any = None,
    attempt: int | None = None,
    request_id: str | None = None,
) -> Run:
    """Settle an intent in doubt. `attempt` is the number of the send that was judged: no later one is meant.

    happened: its OBS is written with `result`. never_happened: it is executed under its own key, by a worker.
    probe: a worker asks the tool by key. abort: the run ends as cancelled and the question stays on record.

    Raises VerdictUnknown, EvidenceMissing, BadInput, RunEnded, IntentNotFound, AlreadyReconciled, NotInDoubt,
    AttemptOutdated, CannotProbe.
    """
    if verdict not in VERDICTS:
        raise VerdictUnknown(f"{verdict!r}; there are {', '.join(VERDICTS)}.")
    said = (evidence or "").strip()[:LONGEST_EVIDENCE]
    if not said:
        raise EvidenceMissing
    if result is not None and verdict != "happened":
        raise BadInput("A result goes with the verdict happened only.")
    if lost := problems(result, "result"):
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    with locked_run(run_id, even_ended=True) as held:
        slot = held.intent(seq)
        check_not_answered(held, slot)
        held.refuse_if_ended()
        check_in_doubt(held, slot)
        check_attempt(slot, verdict, attempt)
        if verdict == "probe" and not probe_declared(held, slot):
            raise CannotProbe
        entries = [Draft(Kind.RECONCILE, {"verdict": verdict, "evidence": said}, step=slot.step)]
        if verdict == "happened":
            body = {"outcome": "succeeded", "result": result, "source": "operator"}
            entries.append(Draft(Kind.OBS, body, step=slot.step, settles=slot.step))
        if verdict == "abort":
            entries.append(Draft(Kind.DONE, {"cancelled": f"aborted by {actor}: {said}"}))
            end_by_person(held, entries, actor, request_id)
        else:
            held.append(entries, actor, request_id)
            wake(held, f"{verdict.replace('_', ' ')}, says {actor}")
    return fresh(run_id)


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
    tools = held.run.release.content.get("tools", [])
    return any(tool["name"] == slot.tool and tool["probe"] for tool in tools)
