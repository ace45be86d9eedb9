"""Starting runs: START and the run row in one transaction; only then a message."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, transaction

from journal.append import new_run_id
from journal.encoding import canonical, encode, problems
from journal.entries import Draft, Kind, seal
from journal.payloads import payload_store
from runs import stateless
from runs.audit import PROGRAMS, told
from runs.dispatch import dispatch
from runs.errors import (
    BadInput,
    BusinessIdTaken,
    InputRefused,
    NoCurrentRelease,
    ReleaseTakesNoRuns,
    RequestKeyTaken,
    UnknownAgent,
    UnknownRelease,
)
from runs.inputs import input_faults, refused_input
from runs.labels import wrong_labels
from runs.models import Release, Run, Status
from runs.moves import LONGEST_SLEEP, some
from runs.registry import agents, announce_one, release_for
from runs.secrets import is_unreadable, sealed_by
from runs.texts import is_writable
from runs.trees import business_id_of

LONGEST_KEY = 200
START = """
SELECT id, created_at, runs_audit_v2(id IS NOT NULL AND %s, %s, %s, %s, %s, id, %s, %s, %s, %s::jsonb)
  FROM runs_start_v2(%s, %s, %s, %s::jsonb, %s, %s, %s::int, %s::float8, %s, %s, %s, %s, %s)
"""
NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"


def start_run(
    *,
    agent: str,
    input: Any,
    actor: str,
    request_key: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
    deadline: float | datetime | None = None,
    priority: int = 0,
) -> tuple[Run, bool]:
    """The run, and whether it was made now.

    Raises UnknownAgent, UnknownRelease, NoCurrentRelease, ReleaseTakesNoRuns, BadInput (InputRefused),
    RequestKeyTaken, BusinessIdTaken.
    """
    check(input, request_key, labels)
    check_bounds(deadline, priority)
    if not is_writable(agent):
        raise UnknownAgent("Its name is no text.")
    if release is not None and not is_writable(release):
        raise UnknownRelease("Its name is no text.")
    order = Order(agent, input, dict(labels or {}), release, request_key)
    try:
        chosen = release_for(agent, release, request_key)
        if faults := input_faults(chosen.content.get("input"), input):
            raise refused_input(faults)
    except (InputRefused, NoCurrentRelease, ReleaseTakesNoRuns):
        if (before := started_under(order)) is not None:  # a repeated start gets its run, whatever the stages are now
            return before, False
        raise
    content = chosen.content
    business_id = business_id_of(content.get("unique"), order.labels)
    ends = ends_at(deadline if deadline is not None else content.get("deadline"))
    takes = content.get("input")
    new = NewRun(chosen, sealed_by(takes, input), actor, order.labels, request_key, order.digest(takes), priority, ends,
                 business_id)  # fmt: skip
    run = write_start(new)
    if run is None:
        return existing(new, order), False
    # Robust: the run is committed by then, and a message is only a hint.
    transaction.on_commit(functools.partial(dispatch, run.id, chosen.id), robust=True)
    return run, True


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for: under one request key always the same. `release`: as it was named, if it was."""

    agent: str
    input: Any
    labels: dict[str, str]
    release: str | None
    request_key: str | None

    def digest(self, takes: Mapping[str, Any] | None) -> bytes | None:
        """`takes`: schema of the input, which says what of it is secret."""
        if self.request_key is None:
            return None
        asked = {"input": sealed_by(takes, self.input), "release": self.release, "labels": self.labels}
        return hashlib.sha256(canonical(asked)).digest()


@dataclass(frozen=True, slots=True)
class NewRun:
    """What is to be started. `deadline`: POSIX seconds by the database's clock."""

    release: Release
    input: Any
    actor: str
    labels: dict[str, str]
    request_key: str | None
    request_digest: bytes | None
    priority: int
    deadline: float | None
    business_id: str | None


def existing(new: NewRun, order: Order) -> Run:
    """The run that has this request key already. Raises BusinessIdTaken if it is the business id that is taken."""
    if (before := started_under(order)) is not None:
        return before
    holder = Run.objects.filter(agent=order.agent, business_id=new.business_id, ended_at__isnull=True).first()
    raise BusinessIdTaken(new.business_id or "", str(holder.id) if holder else None)


def ends_at(deadline: float | datetime | None) -> float | None:
    if deadline is None or isinstance(deadline, datetime):
        return deadline.timestamp() if deadline is not None else None
    with connection.cursor() as cursor:
        cursor.execute(NOW)
        return float(cursor.fetchone()[0]) + deadline


def check_bounds(deadline: float | datetime | None, priority: int) -> None:
    if isinstance(deadline, datetime) and deadline.tzinfo is None:
        raise BadInput("A deadline needs a time zone.")
    if isinstance(deadline, datetime) and not 1 < deadline.year < 9999:
        raise BadInput("A deadline is in the years 2 to 9998.")
    if isinstance(deadline, (int, float)) and not 0 < deadline <= LONGEST_SLEEP:
        raise BadInput("A deadline is a number of seconds above 0, up to ten years, or a time with a zone.")
    if type(priority) is not int or not 0 <= priority <= 9:
        raise BadInput("A priority is a whole number from 0 to 9.")


def started_under(order: Order) -> Run | None:
    """The run that has this request key. Raises RequestKeyTaken if it was started with other content."""
    if order.request_key is None:
        return None
    run = Run.objects.select_related("release").filter(agent=order.agent, request_key=order.request_key).first()
    # Under its own release: another one may hold other parts of the input secret.
    if run is not None and bytes(run.request_digest or b"") != order.digest(run.release.content.get("input")):
        raise RequestKeyTaken(str(run.id))
    return run


def write_start(new: NewRun) -> Run | None:
    """One statement. None: the request key or the business id is taken."""
    release = new.release
    if release.content.get("durability") == "stateless":
        return write_stateless(new)
    own = agents().get(release.id)
    code = own.code_digest if own else ""
    body: dict[str, Any] = {"agent": release.agent, "input": new.input, "release": release.id, "code": code}
    body |= some(labels=new.labels or None, deadline=new.deadline, priority=new.priority or None)
    run_id: UUID | None = None
    if len(encode(body)) > payload_store().limit:
        run_id = new_run_id()
        body = payload_store().offload(run_id, body)
    ((salt, payload, data),) = seal([Draft(Kind.START, body)])
    given = [
        *started(new).values(),
        run_id, release.agent, release.id, json.dumps(new.labels), new.request_key, new.request_digest, new.priority,
        new.deadline or 0.0, new.business_id, new.actor, salt, payload, data,
    ]  # fmt: skip
    row = ask(given)
    if row is not None and row[0] is None and own is not None:  # known to this process, but not to this database
        announce_one(own, serving=False)
        row = ask(given)
    if row is None:
        return None
    return Run(
        id=row[0], agent=release.agent, release=release, status=Status.QUEUED, since=row[1], created_at=row[1],
        labels=new.labels, request_key=new.request_key, request_digest=new.request_digest, epoch=0, as_of_seq=1,
        crashes=0, crash_seq=0, dispatches=0, priority=new.priority, business_id=new.business_id,
        deadline_at=datetime.fromtimestamp(new.deadline, UTC) if new.deadline else None,
        reason="waits for a worker", parent_told=False, awaits=[], awaits_any=False, awaits_signals=[],
    )  # fmt: skip


def started(new: NewRun) -> dict[str, Any]:
    """What the audit list says of it, once it has an id."""
    found = told(new.actor, "run.start", None, new.release.agent, "", "", some(request_key=new.request_key))
    return {"only_if": new.actor not in PROGRAMS} | {name: found[name] for name in found if name != "about"}


def write_stateless(new: NewRun) -> Run | None:
    """One row, without a journal."""
    release = new.release
    given = (release.id, release.agent, new.input, new.labels, new.request_key, new.request_digest, new.priority,
             new.deadline, new.business_id, started(new))  # fmt: skip
    row = stateless.begin(*given)
    if row is not None and row[0] is None and (own := agents().get(release.id)) is not None:
        announce_one(own, serving=False)
        row = stateless.begin(*given)
    if row is None or row[0] is None:
        return None
    return Run.objects.select_related("release").get(id=row[0])


def ask(given: Sequence[Any]) -> tuple[UUID, datetime, str] | None:
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:  # Django's does not prepare
        return cursor.execute(START, given, prepare=True).fetchone()


def check(input: Any, request_key: str | None, labels: Mapping[str, str] | None) -> None:
    lost = problems({"input": input}, "run")
    if lost:
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    if request_key is not None and not 0 < len(request_key) <= LONGEST_KEY:
        raise BadInput(f"A request key has 1 to {LONGEST_KEY} characters.")
    if request_key is not None and not is_writable(request_key):
        raise BadInput("A request key is whole Unicode text without NUL.")
    if labels is not None and not isinstance(labels, Mapping):
        raise BadInput("Labels are texts by name.")
    if wrong := wrong_labels(labels or {}):
        raise BadInput(wrong)
    if is_unreadable(request_key, *(labels or {}), *(labels or {}).values()):
        raise BadInput("The request key or a label matches HOLDFAST_REDACT, and both are shown: use another.")
