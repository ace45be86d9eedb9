"""Many runs moved at once: the step of a sweep for acts that judge runs, and for acts that move them.

Workers judge, a few runs of an act at a time, so that nobody's thousands keep the workers from the runs. An item's
outcome is committed with what was done to its run, as of every other act: whoever stops the act waits for the one that
is under way, and then nothing more is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from journal.crash import crash_point
from journal.errors import JournalError
from recovery.errors import PinOutrun, PinRefused, RecoveryError
from recovery.models import Purpose, Replay
from recovery.pins import (
    COMPATIBLE,
    TIMES,
    check_movable,
    judgement_of,
    refuse_unless_compatible,
    told_of,
    write_pin,
)
from recovery.replays import order
from runs import audit
from runs.bulk import JUDGE
from runs.bulk_work import finish
from runs.commands import fresh
from runs.errors import RunsError
from runs.models import BulkAct, BulkItem
from runs.staging import is_served
from runs.texts import plain_text

log = logging.getLogger("holdfast.bulk")

VERBS = (JUDGE, "pin")
AT_ONCE = 16  # judgements of an act that are ordered and not made yet
PATIENCE = "SET lock_timeout = 1000; SET statement_timeout = 20000"
LOOK = "SELECT 1 FROM runs_bulkact WHERE id = %s AND ended_at IS NULL FOR SHARE"
# Whose judgements for this act have all been made.
JUDGED = """
SELECT i.run_id FROM runs_bulkitem i JOIN recovery_replay r ON r.bulk_id = i.bulk_id AND r.run_id = i.run_id
 WHERE i.bulk_id = %s AND i.outcome IS NULL
 GROUP BY i.run_id HAVING bool_and(r.ended_at IS NOT NULL) ORDER BY i.run_id LIMIT 100
"""
NEW = """
SELECT i.run_id FROM runs_bulkitem i
 WHERE i.bulk_id = %s AND i.outcome IS NULL
   AND NOT EXISTS (SELECT FROM recovery_replay r WHERE r.bulk_id = i.bulk_id AND r.run_id = i.run_id)
 ORDER BY i.run_id LIMIT %s
"""
REFUSALS = (RunsError, RecoveryError, JournalError)


def carry_out_pins(budget: float, stopping: Callable[[], bool]) -> bool:
    """Work for at most `budget` seconds; whether there is more to do now."""
    ends = time.monotonic() + budget

    def over() -> bool:
        return stopping() or time.monotonic() >= ends

    more = False
    try:
        acts = BulkAct.objects.select_related("release").filter(ended_at=None, verb__in=VERBS).order_by("id")
        for act in acts:
            with connection.cursor() as cursor:
                cursor.execute(PATIENCE)
            more = work_on(act, over) or more
            finish(act.pk)
    except DatabaseError as error:
        log.warning("bulk moves wait: %s", error)
        connection.close()
    return more


def work_on(act: BulkAct, over: Callable[[], bool]) -> bool:
    """Whether it stopped because the time was over."""
    assert act.release is not None
    for run_id in rows(JUDGED, act.pk):
        if over():
            return True
        settle(act, run_id)
    if not is_served(act.release.id):
        return False  # its workers may be about to be started again: who has not been judged waits
    going = Replay.objects.filter(bulk_id=act.pk, ended_at=None).count()
    for run_id in rows(NEW, act.pk, max(0, AT_ONCE - going)):
        if over():
            return True
        settle(act, run_id)
    return False


def rows(sql: str, *given: int) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return [row[0] for row in cursor.fetchall()]


def settle(act: BulkAct, run_id: UUID) -> None:
    """One item, in one transaction; what somebody else holds is left for the next round."""
    try:
        with transaction.atomic():
            if not rows(LOOK, act.pk) or not taken(act, run_id):
                return
            became = outcome_of(act, run_id)
            if became is None:
                return
            crash_point("bulk-after-command")
            outcome, said = became
            BulkItem.objects.filter(bulk_id=act.pk, run_id=run_id).update(
                outcome=outcome, said=plain_text(said), at=timezone.now()
            )
    except DatabaseError as error:
        if connection.connection is None or connection.connection.closed:
            raise
        log.info("bulk %s: run %s is busy, the next round tries it: %s", act.pk, run_id, error)


def taken(act: BulkAct, run_id: UUID) -> bool:
    items = BulkItem.objects.filter(bulk_id=act.pk, run_id=run_id, outcome=None)
    return items.select_for_update(skip_locked=True, no_key=True).first() is not None


Outcome = tuple[str, str] | None  # and why; None: a judgement was ordered, its turn comes again once that is made


def outcome_of(act: BulkAct, run_id: UUID) -> Outcome:
    try:
        with transaction.atomic(), audit.through(act.door):
            return judged(act, run_id) if act.verb == JUDGE else moved(act, run_id)
    except PinRefused as no:
        return "skipped", no.detail
    except REFUSALS as no:
        return "skipped", str(no)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("bulk %s: run %s", act.pk, run_id)
        return "failed", f"{type(error).__name__}: {error}"


def judged(act: BulkAct, run_id: UUID) -> Outcome:
    judgement = judgement_for(act, run_id)
    if judgement is None:
        return None
    if judgement.error:
        return "failed", judgement.error
    return ("done" if judgement.verdict == COMPATIBLE else "skipped"), told_of(judgement)


def moved(act: BulkAct, run_id: UUID) -> Outcome:
    """By a judgement that still holds; one that does not is made again, three times."""
    assert act.release is not None
    judgement = judgement_for(act, run_id)
    if judgement is None:
        return None
    refuse_unless_compatible(judgement)
    if write_pin(run_id, act.release, judgement, act.reason, act.actor) is not None:
        return "done", ""
    if Replay.objects.filter(bulk_id=act.pk, run=run_id).count() >= TIMES:
        raise PinOutrun(TIMES)
    order(fresh(run_id), act.release, Purpose.PIN, actor=act.actor, bulk_id=act.pk)
    return None


def judgement_for(act: BulkAct, run_id: UUID) -> Replay | None:
    """Made for this act, or one made before that still holds; None: it was ordered just now. Raises what refuses a move
    without a judgement."""
    assert act.release is not None
    own = Replay.objects.filter(bulk_id=act.pk, run=run_id).order_by("-id").first()
    if own is not None:
        return own
    run = fresh(run_id)
    check_movable(run, act.release)
    found = judgement_of(run, act.release, None)
    if found is None:
        order(run, act.release, Purpose.PIN, actor=act.actor, bulk_id=act.pk)
    return found
