"""Journals that are decided again by a worker which serves the release: ordered, sent, waited for.

Agents' code runs in no web process: it may not return, and the web may have other code. An order is a row; a message
tells a worker of it, and the sweep sends another when that was lost. Nothing of the run is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from amqp.exceptions import AMQPError
from celery import current_app
from django.db import connection, transaction
from django.db.models import Count, Q
from kombu.exceptions import OperationalError

from journal.encoding import problems, tagged
from recovery.errors import OtherAgent, ReleaseUnserved, TooManyReplays
from recovery.models import Purpose, Replay
from recovery.redecided import Result as Result
from recovery.redecided import column_json
from runs.audit import record
from runs.dispatch import queue_of
from runs.errors import BadInput, StatelessRun
from runs.models import Release, Run, WorkerSession

log = logging.getLogger("holdfast.replays")

DECIDE_AGAIN = "recovery.decide_again"  # the task's name
MOST_OF_A_RELEASE = 32
MOST_OF_A_PERSON = 8
FIRST_LOOK, SLOWEST_LOOK = 0.02, 0.25  # seconds


def order(
    run: Run,
    release: Release,
    purpose: Purpose,
    *,
    actor: str,
    at: int | None = None,
    edits: Sequence[Mapping[str, Any]] = (),
    asks_model: bool = False,
    bulk_id: int | None = None,
) -> Replay:
    """The run's journal is to be decided again under `release`, up to entry `at`, with these edits: `[{seq, value}]`.

    Replays by people are few at a time, so that nobody's take the workers from the runs. A bulk act's judgements, which
    are ordered one after the other, are not counted.

    Raises StatelessRun, OtherAgent, BadInput, ReleaseUnserved, TooManyReplays.
    """
    refuse(run, release, at, edits, asks_model)
    with transaction.atomic():
        if bulk_id is None:
            refuse_crowd(release, actor)
        replay = Replay.objects.create(
            run=run, release=release, purpose=purpose, at=at, edits=column_json(tagged(list(edits))), actor=actor,
            asks_model=asks_model, bulk_id=bulk_id,
        )  # fmt: skip
        if purpose == Purpose.REPLAY:
            record(
                actor, "run.replay", run=run.id, agent=run.agent, subject=str(release),
                replay=replay.pk, asks_model=asks_model,
            )  # fmt: skip
        transaction.on_commit(lambda: send(replay.pk, release.id))
    return replay


def refuse(run: Run, release: Release, at: int | None, edits: Sequence[Mapping[str, Any]], asks_model: bool) -> None:
    """Raises for what no worker could decide."""
    if run.input is not None:
        raise StatelessRun
    if release.agent != run.agent:
        raise OtherAgent(f"({release}: the run is of {run.agent})")
    if at is not None and at < 1:
        raise BadInput("A journal is decided up to an entry: `at` is its seq, from 1.")
    if lost := problems([dict(edit) for edit in edits], "edits"):
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    if asks_model and not release.content.get("model"):
        raise BadInput(f"{release} asks no model: there is nothing to ask again.")
    if not is_served(release):
        raise ReleaseUnserved(f"({release})")


def is_served(release: Release) -> bool:
    """Whether a live worker that does not drain serves it."""
    live = WorkerSession.objects.filter(ended_at__isnull=True, draining_at__isnull=True)
    return live.filter(serves__contains=[release.id]).exists()


def refuse_crowd(release: Release, actor: str) -> None:
    """Raises TooManyReplays."""
    going = Replay.objects.filter(ended_at__isnull=True, bulk_id__isnull=True)
    counts = going.aggregate(own=Count("id", Q(actor=actor)), all=Count("id", Q(release=release)))
    if counts["own"] >= MOST_OF_A_PERSON:
        raise TooManyReplays(f"ordered by {actor}", MOST_OF_A_PERSON)
    if counts["all"] >= MOST_OF_A_RELEASE:
        raise TooManyReplays(f"of {release}", MOST_OF_A_RELEASE)


def send(replay_id: int, release_id: str) -> bool:
    """Tell a worker of it. False: the broker is away, and the sweep sends it later."""
    try:
        current_app.send_task(DECIDE_AGAIN, args=[replay_id], queue=queue_of(release_id), ignore_result=True)
    except (OperationalError, OSError, AMQPError) as error:
        log.warning("replay %s: the broker does not answer, the sweep will send it: %s", replay_id, error)
        return False
    return True


def wait_for(replay: Replay, seconds: float) -> Replay:
    """The order as it is when it has ended, or after `seconds`: look at `ended_at`."""
    deadline = time.monotonic() + seconds
    pause = FIRST_LOOK
    while True:
        found = Replay.objects.select_related("release").get(pk=replay.pk)
        left = deadline - time.monotonic()
        if found.ended_at is not None or left <= 0:
            return found
        if not connection.in_atomic_block:
            connection.close()  # who waits keeps none of the few connections that all requests share
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, SLOWEST_LOOK)
