"""Starting runs: START and the run row in one transaction; only then a message."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from journal.append import append_person, create_head, new_run_id
from journal.encoding import canonical, decode, encode, problems
from journal.entries import Draft, Kind
from journal.payloads import payload_store
from runs.dispatch import dispatch
from runs.errors import BadInput, RequestKeyTaken
from runs.models import Release, Run
from runs.registry import agents, release_for

LONGEST_KEY = 200


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
    chosen = release_for(agent, release)
    asked = {"input": input, "release": release, "labels": dict(labels or {})}
    digest = hashlib.sha256(canonical(asked)).digest()
    if request_key is not None and (known := started_under(agent, request_key, digest)) is not None:
        return known, False
    try:
        with transaction.atomic():
            run = write_start(chosen, input, actor, request_key, digest, dict(labels or {}))
    except IntegrityError:
        if request_key is None:
            raise
        known = started_under(agent, request_key, digest)
        if known is None:
            raise
        return known, False
    return run, True


def started_under(agent: str, request_key: str, digest: bytes) -> Run | None:
    run = Run.objects.select_related("release").filter(agent=agent, request_key=request_key).first()
    if run is not None and bytes(run.request_digest or b"") != digest:
        raise RequestKeyTaken(str(run.id))
    return run


def write_start(
    release: Release, input: Any, actor: str, request_key: str | None, digest: bytes, labels: dict[str, str]
) -> Run:
    run_id = new_run_id()
    own = agents().get(release.id)
    body = {
        "agent": release.agent,
        "input": decode(encode(input)),
        "release": release.id,
        "code": own.code_digest if own else "",
    }
    if labels:
        body["labels"] = labels
    body = payload_store().offload(run_id, body)
    create_head(run_id)
    append_person(run_id, [Draft(Kind.START, body)], request_id=None, actor=actor)
    run = Run.objects.create(
        id=run_id,
        agent=release.agent,
        release=release,
        labels=labels,
        request_key=request_key,
        request_digest=digest,
        as_of_seq=1,
    )
    transaction.on_commit(functools.partial(dispatch, run_id, release.id))
    run.refresh_from_db()
    return run


def check(input: Any, request_key: str | None, labels: Mapping[str, str] | None) -> None:
    lost = problems({"input": input}, "run")
    if lost:
        raise BadInput(f"{lost[0]} is of a type that the journal cannot keep.")
    if request_key is not None and not 0 < len(request_key) <= LONGEST_KEY:
        raise BadInput(f"A request key has 1 to {LONGEST_KEY} characters.")
    for name, value in (labels or {}).items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or ":" in name or "\0" in name + value:
            raise BadInput(f"Label {name!r}: names and values are texts, without NUL, and a name has no colon.")
    if request_key is not None and "\0" in request_key:
        raise BadInput("A request key has no NUL character.")
