"""A run moves to another release: PIN in its journal, and the row with it, under the head's lock.

Who calls has judged that the run may go on there. The worker that takes it next asks for every approval anew, and
decides again what is recorded unless its code is the one that judged.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from psycopg.errors import UniqueViolation

from journal.crash import crash_point
from journal.entries import Answer, Draft, Kind
from runs.commands import Held
from runs.dispatch import dispatch
from runs.engine import permits
from runs.engine.parking import stopped_by
from runs.engine.recorder import ONE_OPEN_RUN
from runs.errors import BusinessIdTaken
from runs.models import Permit, Release, Run, Status
from runs.state import RunState
from runs.texts import plain_text
from runs.trees import business_id_of

STAYS = (Status.HELD, Status.QUARANTINED)


def move_run(
    held: Held, release: Release, told: Mapping[str, Any], actor: str, more: Sequence[Draft] = (), reason: str = ""
) -> Answer:
    """`told`: what PIN says beside the two releases. `more`: entries that go with it. `reason`: the row's, once queued.

    What holds or quarantines the run in its journal goes on doing so; every other run is queued for the new release.
    Nobody may be driving it. Raises BusinessIdTaken: the release declares another label unique.
    """
    run = held.run
    before, business_id = held.state, free_business_id(run, release)
    pin = Draft(Kind.PIN, {"release": release.id, "from": run.release_id, **told})
    crash_point("before-pin")
    written = held.append([pin, *more], actor)
    del held.state  # it is folded anew
    give_up_permits(run.id, before)
    row: dict[str, Any] = {"release": release, "business_id": business_id, "over_limit": False}
    stop = stopped_by(held.state)
    if run.status not in STAYS or stop is None or stop.status not in STAYS:
        why = plain_text(reason or f"pinned to {release}")
        row |= {"status": Status.QUEUED, "reason": why, "since": Now(), "wake_at": None, "intents": [],
                "dispatches": 0, "dispatched_at": None}  # fmt: skip
        transaction.on_commit(functools.partial(send, run.id, release.id))
    try:
        with transaction.atomic():
            Run.objects.filter(id=run.id).update(**row)
    except IntegrityError as error:
        taken = error.__cause__
        if isinstance(taken, UniqueViolation) and taken.diag.constraint_name == ONE_OPEN_RUN:
            raise BusinessIdTaken(business_id or "", None) from error
        raise
    return written


def send(run_id: UUID, release_id: str) -> None:
    crash_point("after-pin")
    dispatch(run_id, release_id)


def free_business_id(run: Run, release: Release) -> str | None:
    """The one that the run has under this release. Raises BusinessIdTaken if another open run has it."""
    found = business_id_of(release.content.get("unique"), run.labels)
    if found is not None and found != run.business_id:
        others = Run.objects.filter(agent=run.agent, business_id=found, ended_at__isnull=True).exclude(id=run.id)
        if (holder := others.first()) is not None:
            raise BusinessIdTaken(found, str(holder.id))
    return found


def give_up_permits(run_id: UUID, state: RunState) -> None:
    """The release that it moves to may have other limits. A call that may be acting keeps its own."""
    mine = Permit.objects.filter(run=run_id).values_list("step", flat=True)
    steps = [step for step in mine if step not in state.open or not state.open[step].in_doubt]
    if not steps:
        return
    with connection.cursor() as cursor:
        cursor.execute(permits.FREE, [run_id, steps])
        granted = [given for (given,) in cursor.fetchall()]
    if granted:
        transaction.on_commit(functools.partial(tell_granted, granted))


def tell_granted(run_ids: Sequence[UUID]) -> None:
    permits.wake(connection.connection, run_ids, dispatch)
