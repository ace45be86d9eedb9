"""Starting runs: START and the run row in one transaction; only then a message."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, transaction

from journal.append import new_run_id
from journal.encoding import canonical, encode, problems
from journal.entries import Draft, Kind, seal
from journal.payloads import payload_store
from runs.dispatch import dispatch
from runs.errors import BadInput, RequestKeyTaken, UnknownAgent, UnknownRelease
from runs.models import Release, Run, Status
from runs.registry import agents, announce, release_for

LONGEST_KEY = 200
START = "SELECT id, created_at FROM runs_start_v1(%s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s)"


def start(
    agent: str,
    input: Any = None,
    *,
    request_key: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> UUID:
    """Start a run; its id. Safe inside a transaction: the run goes out when that commits.

    `request_key`: the same key with the same agent, input, release and labels gives the same run.
    """
    run, _ = start_run(agent=agent, input=input, actor="sdk", request_key=request_key, release=release, labels=labels)
    return run.id


def start_run(
    *,
    agent: str,
    input: Any,
    actor: str,
    request_key: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> tuple[Run, bool]:
    """The run, and whether it was made now.

    Raises UnknownAgent, UnknownRelease, BadInput, RequestKeyTaken.
    """
    check(input, request_key, labels)
    if not is_writable(agent):
        raise UnknownAgent("Its name is no text.")
    if release is not None and not is_writable(release):
        raise UnknownRelease("Its name is no text.")
    chosen = release_for(agent, release)
    asked = {"input": input, "release": release, "labels": dict(labels or {})}
    digest = hashlib.sha256(canonical(asked)).digest() if request_key is not None else None
    run = write_start(chosen, input, actor, request_key, digest, dict(labels or {}))
    if run is None:
        assert request_key is not None
        return started_under(agent, request_key, digest), False
    transaction.on_commit(functools.partial(dispatch, run.id, chosen.id))
    return run, True


def started_under(agent: str, request_key: str, digest: bytes | None) -> Run:
    """The run that has this request key. Raises RequestKeyTaken if it was started with other content."""
    run = Run.objects.select_related("release").get(agent=agent, request_key=request_key)
    if bytes(run.request_digest or b"") != digest:
        raise RequestKeyTaken(str(run.id))
    return run


def write_start(
    release: Release, input: Any, actor: str, request_key: str | None, digest: bytes | None, labels: dict[str, str]
) -> Run | None:
    """One statement. None: the request key is taken."""
    own = agents().get(release.id)
    code = own.code_digest if own else ""
    body: dict[str, Any] = {"agent": release.agent, "input": input, "release": release.id, "code": code}
    if labels:
        body["labels"] = labels
    run_id: UUID | None = None
    if len(encode(body)) > payload_store().limit:
        run_id = new_run_id()
        body = payload_store().offload(run_id, body)
    ((salt, payload, data),) = seal([Draft(Kind.START, body)])
    given = [run_id, release.agent, release.id, json.dumps(labels), request_key, digest, actor, salt, payload, data]
    row = ask(given)
    if row is not None and row[0] is None:  # known to this process, but not to this database
        announce()
        row = ask(given)
    if row is None:
        return None
    return Run(
        id=row[0], agent=release.agent, release=release, status=Status.QUEUED, since=row[1], created_at=row[1],
        labels=labels, request_key=request_key, request_digest=digest, epoch=0, as_of_seq=1,
        crashes=0, crash_seq=0, dispatches=0,
    )  # fmt: skip


def is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def ask(given: Sequence[Any]) -> tuple[UUID, datetime] | None:
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:  # Django's does not prepare
        return cursor.execute(START, given, prepare=True).fetchone()


def check(input: Any, request_key: str | None, labels: Mapping[str, str] | None) -> None:
    lost = problems({"input": input}, "run")
    if lost:
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    if request_key is not None and not 0 < len(request_key) <= LONGEST_KEY:
        raise BadInput(f"A request key has 1 to {LONGEST_KEY} characters.")
    texts = [request_key or "", *(labels or {}), *(labels or {}).values()]
    if any(isinstance(text, str) and not is_writable(text) for text in texts):
        raise BadInput("A request key and labels are whole Unicode text: no lone surrogates.")
    for name, value in (labels or {}).items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or ":" in name or "\0" in name + value:
            raise BadInput(f"Label {name!r}: names and values are texts, without NUL, and a name has no colon.")
    if request_key is not None and "\0" in request_key:
        raise BadInput("A request key has no NUL character.")
