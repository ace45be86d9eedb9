"""Bulk acts carried out: the step of a sweep. One run a transaction; any number of sweepers, each takes what no other
holds; an item's outcome is committed with what was done to its run, so that a death in between has done nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from journal.append import lock_head
from journal.crash import crash_point
from journal.read import read_tails
from runs import audit
from runs.bulk import PENDING, VERBS
from runs.models import ENDED, BulkAct, BulkItem, Run, Status
from runs.state import fold
from runs.texts import plain_text

log = logging.getLogger("holdfast.bulk")

type Command = Callable[..., object]

GOING = "SELECT id FROM runs_bulkact WHERE ended_at IS NULL AND verb = ANY (%s) ORDER BY id"
# Held while an item is worked on: who stops the act waits for it, and then nothing more is done.
LOOK = "SELECT verb, reason, actor, door FROM runs_bulkact WHERE id = %s AND ended_at IS NULL FOR SHARE"
PATIENCE = "SET lock_timeout = 1000; SET statement_timeout = 20000"
FINISH = """
UPDATE runs_bulkact a SET ended_at = clock_timestamp() WHERE id = %s AND ended_at IS NULL
   AND NOT EXISTS (SELECT FROM runs_bulkitem i WHERE i.bulk_id = a.id AND i.outcome IS NULL)
"""


def carry_out(
    commands: Mapping[str, Command], refusals: tuple[type[Exception], ...], budget: float, stopping: Callable[[], bool]
) -> bool:
    """Work for at most `budget` seconds; whether there is more to do now. `commands`: what to call for each verb.

    An error of `refusals` is the command's no: the item is skipped with its sentence. A lost or busy database leaves
    the item for the next round.
    """
    ends = time.monotonic() + budget
    try:
        with connection.cursor() as cursor:
            cursor.execute(PATIENCE)
            cursor.execute(GOING, [list(commands)])
            going = [row[0] for row in cursor.fetchall()]
        for act_id in going:
            busy: set[UUID] = set()
            while work_on_one(act_id, commands, refusals, busy):
                if time.monotonic() >= ends or stopping():
                    return True
            finish(act_id)
    except DatabaseError as error:
        log.warning("bulk acts wait: %s", error)
        connection.close()
    return False


def finish(act_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FINISH, [act_id])


def work_on_one(
    act_id: int, commands: Mapping[str, Command], refusals: tuple[type[Exception], ...], busy: set[UUID]
) -> bool:
    """Whether there was an item to work on. `busy`: runs that somebody else held, not to be tried again this round."""
    chosen: UUID | None = None
    try:
        with transaction.atomic():
            act = look(act_id)
            item = next_item(act_id, busy) if act is not None else None
            if act is None or item is None:
                return False
            chosen = item.run_id
            crash_point("bulk-before-command")
            outcome, said = outcome_of(act, chosen, commands, refusals)
            crash_point("bulk-after-command")
            BulkItem.objects.filter(bulk_id=act_id, run_id=chosen).update(
                outcome=outcome, said=plain_text(said), at=timezone.now()
            )
        crash_point("bulk-after-item")
    except DatabaseError as error:
        if chosen is None or connection.connection is None or connection.connection.closed:
            raise
        log.info("bulk %s: run %s is busy, the next round tries it: %s", act_id, chosen, error)
        busy.add(chosen)
    return True


def look(act_id: int) -> BulkAct | None:
    with connection.cursor() as cursor:
        cursor.execute(LOOK, [act_id])
        row = cursor.fetchone()
    return (
        None if row is None else BulkAct(id=act_id, **dict(zip(("verb", "reason", "actor", "door"), row, strict=True)))
    )


def next_item(act_id: int, busy: Collection[UUID]) -> BulkItem | None:
    items = BulkItem.objects.filter(bulk_id=act_id, outcome=None).exclude(run_id__in=busy).order_by("run_id")
    return items.select_for_update(skip_locked=True, no_key=True).first()


def outcome_of(
    act: BulkAct, run_id: UUID, commands: Mapping[str, Command], refusals: tuple[type[Exception], ...]
) -> tuple[str, str]:
    """What became of it, and why if it was not done."""
    try:
        with transaction.atomic(), audit.through(act.door):
            if VERBS[act.verb].passes and is_pending(run_id):
                return "skipped", PENDING
            commands[act.verb](run_id=run_id, reason=act.reason, actor=act.actor)
    except refusals as no:
        return "skipped", str(no)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("bulk %s: run %s", act.pk, run_id)
        return "failed", f"{type(error).__name__}: {error}"
    return "done", ""


def is_pending(run_id: UUID) -> bool:
    """Whether an intent has no result and nobody is waiting for it. Takes the head, so that this stays so."""
    run = Run.objects.filter(id=run_id, input__isnull=True).only("status").first()
    if run is None or run.status in ENDED:
        return False
    lock_head(run_id)
    run = Run.objects.select_related("session").get(id=run_id)
    if run.session is not None and run.session.ended_at is None:
        return False  # its worker awaits the answer
    if run.status == Status.NEEDS_RECONCILIATION or any(record["state"] == "in_doubt" for record in run.intents):
        return True
    if run.epoch == 0 or run.intents:
        return False
    slots = fold(run_id, read_tails(None, [run_id]).get(run_id, [])).unsettled()
    return any(slot.in_doubt for slot in slots)
