"""Journals that are decided again by a worker which serves the release: ordered, sent, waited for.

Agents' code runs in no web process: it may not return, and the web may have other code. An order is a row; a message
tells a worker of it, and the sweep sends another when that was lost. Nothing of the run is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from amqp.exceptions import AMQPError
from celery import current_app
from django.db import connection, transaction
from django.db.models import Count, Q
from kombu.exceptions import OperationalError

from journal.encoding import problems, tagged
from journal.read import read_head
from recovery.errors import OtherAgent, TooManyReplays
from recovery.models import Purpose, Replay
from recovery.redecided import Result as Result
from recovery.redecided import column_json
from runs.audit import record
from runs.dispatch import queue_of
from runs.errors import BadInput, ReleaseUnserved, StatelessRun, UnknownRelease
from runs.models import Release, Run, WorkerSession
from runs.texts import plain_text

log = logging.getLogger("holdfast.replays")

DECIDE_AGAIN = "recovery.decide_again"  # the task's name
MOST_OF_A_RELEASE = 32
MOST_OF_A_PERSON = 8
FIRST_LOOK, SLOWEST_LOOK = 0.02, 0.25  # seconds
WAITS = 900.0  # seconds that an order waits for a worker
LONGEST = 600.0  # seconds that a worker may take over one
# Taken by nobody, by a session that has ended, or by one that stands still over it.
NOBODYS = """r.ended_at IS NULL
   AND (r.taken_by IS NULL OR r.taken_at < clock_timestamp() - make_interval(secs => %(longest)s)
        OR EXISTS (SELECT FROM runs_workersession s WHERE s.id = r.taken_by AND s.ended_at IS NOT NULL))"""
# Each message spaces the next, as those of runs.
AGAIN = f"""
UPDATE recovery_replay o SET dispatched_at = clock_timestamp(), dispatches = o.dispatches + 1
 WHERE o.id IN (SELECT r.id FROM recovery_replay r WHERE {NOBODYS}
   AND coalesce(r.dispatched_at, r.created_at)
       < clock_timestamp() - make_interval(secs => least(60, %(young)s * 2 ^ least(r.dispatches, 10)))
   AND EXISTS (SELECT FROM runs_workersession w WHERE w.ended_at IS NULL AND w.draining_at IS NULL
               AND w.serves @> ARRAY[r.release_id])
 ORDER BY r.id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING o.id, o.release_id
"""
GIVE_UP = f"""
UPDATE recovery_replay r SET ended_at = clock_timestamp(),
       error = 'no worker that serves the release has taken it in {WAITS / 60:.0f} minutes'
 WHERE {NOBODYS} AND r.created_at < clock_timestamp() - make_interval(secs => %(waits)s)
"""

Send = Callable[[int, str], bool]


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
            run=run, release=release, purpose=purpose, at=at, edits=kept_edits(edits), actor=actor,
            asks_model=asks_model, bulk_id=bulk_id,
        )  # fmt: skip
        if purpose == Purpose.REPLAY:
            record(
                actor, "run.replay", run=run.id, agent=run.agent, subject=str(release),
                replay=replay.pk, asks_model=asks_model,
            )  # fmt: skip
        transaction.on_commit(lambda: send(replay.pk, release.id))
    return replay


def kept_edits(edits: Sequence[Mapping[str, Any]]) -> Any:
    """As the row keeps them."""
    return column_json(tagged([dict(edit) for edit in edits]))


def refuse(run: Run, release: Release, at: int | None, edits: Sequence[Mapping[str, Any]], asks_model: bool) -> None:
    """Raises for what no worker could decide."""
    if run.input is not None:
        raise StatelessRun
    if release.agent != run.agent:
        raise OtherAgent(f"({release}: the run is of {run.agent})")
    last = read_head(connection, run.id).last_seq
    if at is not None and not 1 <= at <= last:
        raise BadInput(f"The journal has entries 1 to {last}, and no entry {at}.")
    if lost := problems([dict(edit) for edit in edits], "edits"):
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    if asks_model and not release.content.get("model"):
        raise BadInput(f"{release} asks no model: there is nothing to ask again.")
    if not is_served(release):
        raise ReleaseUnserved(str(release))


def release_named(agent: str, named: str) -> Release:
    """A release of the agent: by version, agent@version or digest. Raises UnknownRelease."""
    version = plain_text(named).removeprefix(f"{agent}@")
    known = Release.objects.filter(agent=agent)
    found = known.filter(id=version).first() or known.filter(version=version).order_by("-created_at", "-id").first()
    if found is None:
        versions = sorted(set(known.values_list("version", flat=True)))
        raise UnknownRelease(f"{agent} has {', '.join(versions) or 'none'}, not {version[:100]}.")
    return found


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


def send_again(conn: psycopg.Connection[Any], young: float, send: Send) -> int:
    """The sweep's part: orders that no message reached, or whose worker died, go out again; what waits too long ends.
    Returns how many messages went out. `young`: seconds that the first message has."""
    given = {"young": young, "longest": LONGEST + 60, "waits": WAITS}
    conn.execute(GIVE_UP, given)
    due = conn.execute(AGAIN, given).fetchall()
    return sum(send(replay_id, release_id) for replay_id, release_id in due)


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
