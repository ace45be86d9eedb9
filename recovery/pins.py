"""Re-pin: a run moves to another release, if a worker that serves it decides the whole journal as it is recorded.

The order is the safety argument:
1. Whatever refuses it without a judgement is looked at first: nobody is asked to judge in vain.
2. A worker of the release judges (recovery.replays). The judgement tells up to which entry it read.
3. Under the head's lock all of 1 is looked at again, and that the journal still ends there; then PIN is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from journal.append import lock_head
from journal.entries import Draft
from recovery.errors import (
    NotJudgedYet,
    OtherAgent,
    PinnedAlready,
    PinOutrun,
    PinRefused,
    ReleaseRetired,
    RunDriven,
    verdict_told,
)
from recovery.models import Purpose, Replay
from recovery.replays import order, wait_for
from runs.commands import Held, control, fresh, given_reason, locked_run
from runs.engine.parking import stopped_by
from runs.errors import ReleaseUnserved, RunEnded, StatelessRun, UnknownRelease
from runs.models import ENDED, Release, Run, Stage, WorkerSession
from runs.pinning import move_run
from runs.staging import is_served
from runs.state import RunState
from runs.texts import is_writable

WAIT = 30.0  # seconds that a judgement is waited for
TIMES = 3  # how often it is judged anew because the journal went on
COMPATIBLE = "compatible"
MOST_TOLD = 20
# Held until the commit: it is not retired meanwhile.
STAGE = "SELECT stage FROM runs_release WHERE id = %s FOR SHARE"


def repin_run(*, run_id: UUID, release: str, reason: str, actor: str, judged: int | None = None) -> Run:
    """Move the run to this release of its agent: a version, `agent@version`, or a digest. `judged`: the judgement that
    was looked at; if the journal has gone on since, or without one, it is judged now.

    Raises ReasonMissing, UnknownRelease, OtherAgent, RunEnded, StatelessRun, RunDriven, PinnedAlready, ReleaseRetired,
    ReleaseUnserved, PinRefused, PinOutrun, NotJudgedYet, BusinessIdTaken.
    """
    said = given_reason(reason)
    run = fresh(run_id)
    target = target_of(run, release)
    check_movable(run, target)
    judgement = judgement_of(run, target, judged)
    for _ in range(TIMES):
        judgement = ended(judgement or order(run, target, Purpose.PIN, actor=actor))
        refuse_unless_compatible(judgement)
        if (moved := write_pin(run_id, target, judgement, said, actor)) is not None:
            return moved
        judgement = None
    raise PinOutrun(TIMES)


def judge_pin(*, run_id: UUID, release: str, actor: str) -> Replay:
    """Whether the run may be moved, and why not. Nothing of it changes. Raises as `repin_run` before it is judged."""
    run = fresh(run_id)
    target = target_of(run, release)
    check_movable(run, target)
    return ended(judgement_of(run, target, None) or order(run, target, Purpose.PIN, actor=actor))


def ended(judgement: Replay) -> Replay:
    """Raises NotJudgedYet."""
    found = wait_for(judgement, WAIT)
    if found.ended_at is None:
        raise NotJudgedYet(found.pk)
    return found


def target_of(run: Run, named: str) -> Release:
    """Raises OtherAgent, UnknownRelease; of another agent's digest too, which tells nothing of what it is."""
    if not is_writable(named):
        raise UnknownRelease("Its name is no text.")
    agent, _, version = named.rpartition("@")
    if agent and agent != run.agent:
        raise OtherAgent(f"({named}: the run is of {run.agent})")
    known = Release.objects.filter(agent=run.agent)
    found = known.filter(version=version).order_by("-created_at", "-id").first() or known.filter(id=named).first()
    if found is not None:
        return found
    versions = ", ".join(known.order_by("-created_at", "-id").values_list("version", flat=True))
    raise UnknownRelease(f"{run.agent} has {versions}, not {version[:100]}.")


def served() -> QuerySet[WorkerSession]:
    """Sessions that take runs."""
    return WorkerSession.objects.filter(ended_at=None, draining_at=None, expires_at__gt=Now())


def targets_of(run: Run) -> list[Release]:
    """Where the run may be moved, the newest first: what live workers serve of its agent, but its own release."""
    ids = {release for serves in served().values_list("serves", flat=True) for release in serves}
    others = Release.objects.filter(id__in=ids, agent=run.agent).exclude(id=run.release_id)
    return list(others.exclude(stage=Stage.RETIRED).order_by("-created_at", "-id"))


def check_movable(run: Run, target: Release) -> None:
    """What refuses it whatever the journal says. Raises RunEnded, StatelessRun, RunDriven, OtherAgent, PinnedAlready,
    ReleaseRetired, ReleaseUnserved."""
    if run.status in ENDED:
        raise RunEnded(run.status, run.ended_at)
    if run.input is not None:
        raise StatelessRun
    if target.agent != run.agent:
        raise OtherAgent(f"({target}: the run is of {run.agent})")
    if target.id == run.release_id:
        raise PinnedAlready(f"({target})")
    if run.session is not None and run.session.ended_at is None:
        raise RunDriven(run.session.name)
    if target.stage == Stage.RETIRED:
        raise ReleaseRetired(f"({target})")
    if not is_served(target.id):
        raise ReleaseUnserved(str(target))


def judgement_of(run: Run, target: Release, judged: int | None) -> Replay | None:
    """The one that somebody looked at, if it is of this run and release and still holds; else the newest that does."""
    made = Replay.objects.filter(run=run, release=target, purpose=Purpose.PIN, at=None, error="")
    if judged is not None:
        return made.filter(pk=judged).first()
    return made.filter(ended_at__isnull=False, as_of_seq=last_seq(run.id)).order_by("-id").first()


def last_seq(run_id: UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_seq FROM journal_head WHERE run_id = %s", [run_id])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def refuse_unless_compatible(judgement: Replay) -> None:
    if judgement.error:
        raise PinRefused("not judged", [], judgement.pk, judgement.error)
    if judgement.verdict != COMPATIBLE:
        raise PinRefused(judgement.verdict, reasons_of(judgement), judgement.pk)


def reasons_of(judgement: Replay) -> list[dict[str, Any]]:
    """Each with `seq` (or none), `code` and `says`."""
    result: Mapping[str, Any] = judgement.result or {}
    return list(result.get("reasons", []))


def told_of(judgement: Replay) -> str:
    """The verdict and its first reasons, in a sentence; empty where there is nothing to tell but that it may be."""
    reasons = reasons_of(judgement)
    return verdict_told(judgement.verdict, reasons) if reasons else ""


def write_pin(run_id: UUID, target: Release, judgement: Replay, reason: str, actor: str) -> Run | None:
    """None: the journal has gone on since it was judged. Raises as `check_movable`, and BusinessIdTaken."""
    with locked_run(run_id) as held:
        lock_stage(target)
        check_movable(held.run, target)
        if lock_head(run_id).last_seq != judgement.as_of_seq:
            return None
        told = {"reason": reason, "verdict": judgement.verdict, "code": code_of(judgement),
                "as_of": judgement.as_of_seq}  # fmt: skip
        if reasons := reasons_of(judgement):
            told["reasons"] = reasons[:MOST_TOLD]
        move_run(held, target, told, actor, lifted(held, reason), f"pinned to {target} by {actor}")
    return fresh(run_id)


def lock_stage(target: Release) -> None:
    with connection.cursor() as cursor:
        cursor.execute(STAGE, [target.id])
        (target.stage,) = cursor.fetchone()


def lifted(held: Held, reason: str) -> list[Draft]:
    """A divergence is lifted with the PIN: the code it was of does not decide any more. A hold or a brake is not."""
    return [control("resume", reason)] if only_diverged(held.state) else []


def only_diverged(state: RunState) -> bool:
    stop = stopped_by(state)
    return stop is not None and state.diverged is not None and state.held is None and state.braked is None


def code_of(judgement: Replay) -> str:
    """The digest of the code that judged. Empty if it is not known: then each claim decides the journal again."""
    return str((judgement.result or {}).get("code", ""))
