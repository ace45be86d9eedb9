"""Reading runs: rows, folds, and the short ids that people read aloud."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime

from journal.entries import Entry, Kind
from journal.payloads import payload_store
from journal.read import read_entries
from runs.errors import BadInput, JournalDamaged, RunAmbiguous, RunNotFound
from runs.models import Run
from runs.state import RunState, fold

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
SHORT_BITS = 40
READ_ALIKE = str.maketrans("ilo", "110")


def short_id(run_id: UUID) -> str:
    """`r-` and the last 40 bits: eight characters that are hard to mistake."""
    tail = run_id.int & ((1 << SHORT_BITS) - 1)
    return "r-" + "".join(ALPHABET[(tail >> shift) & 31] for shift in range(SHORT_BITS - 5, -1, -5))


def find_run(ref: str) -> Run:
    """By UUID or short id. Raises RunNotFound, RunAmbiguous (listing both)."""
    runs = Run.objects.select_related("release", "session")
    try:
        found = list(runs.filter(id=UUID(ref)))
    except ValueError:
        found = list(runs.filter(id__in=ids_ending_in(ref))[:10])
    if not found:
        raise RunNotFound(f"({ref[:60]})")
    if len(found) > 1:
        raise RunAmbiguous([str(run.id) for run in found])
    return found[0]


def ids_ending_in(ref: str) -> list[UUID]:
    text = ref.lower().removeprefix("r-").translate(READ_ALIKE)
    if not re.fullmatch(f"[{ALPHABET}]{{8}}", text):
        return []
    tail = 0
    for character in text:
        tail = tail << 5 | ALPHABET.index(character)
    with connection.cursor() as cursor:
        cursor.execute(ENDING_IN, [tail.to_bytes(5, "big")])
        return [row[0] for row in cursor.fetchall()]


ENDING_IN = "SELECT id FROM runs_run WHERE substring(uuid_send(id) FROM 12) = %s LIMIT 10"


def list_runs(
    *,
    status: Sequence[str] = (),
    agent: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
    text: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> tuple[list[Run], str | None]:
    """The newest first, by keyset: `after` is the cursor of the page before. Raises BadInput for a wrong cursor."""
    runs = Run.objects.select_related("release", "session").order_by("-id")
    if status:
        runs = runs.filter(status__in=status)
    if agent:
        runs = runs.filter(agent=agent)
    if release:
        name, _, version = release.partition("@")
        runs = runs.filter(Q(release_id=release) | Q(release__agent=name, release__version=version))
    if labels:
        runs = runs.filter(labels__contains=dict(labels))
    if text:
        runs = matching(runs, text)
    if after:
        try:
            runs = runs.filter(id__lt=UUID(after))
        except ValueError:
            raise BadInput("The cursor is not one that a list gave.") from None
    found = list(runs[: limit + 1])
    return found[:limit], str(found[limit - 1].id) if len(found) > limit else None


def matching(runs: QuerySet[Run], text: str) -> QuerySet[Run]:
    """Runs that this text names: by id, short id, request key or agent."""
    if "\0" in text:
        return runs.none()
    wanted = Q(request_key=text) | Q(agent=text)
    try:
        wanted |= Q(id=UUID(text))
    except ValueError:
        if ids := ids_ending_in(text):
            wanted |= Q(id__in=ids)
    return runs.filter(wanted)


@dataclass(frozen=True, slots=True)
class IntentView:
    """One unsettled intent: what it would do, exactly, and since when it waits."""

    run_id: UUID
    seq: int
    step: int
    tool: str
    args: dict[str, Any]
    key: str
    digest: str
    effect: str
    state: str
    since: datetime
    deadline: datetime | None
    attempt: int


def open_intents(*, state: str | None = None, after: UUID | None = None, limit: int = 1000) -> list[IntentView]:
    """Those of `limit` runs, from the run behind `after` on; the oldest first.

    Parked runs tell theirs in their row; a running one's are in its journal.
    """
    runs = Run.objects.exclude(intents=[]).order_by("id")
    if after:
        runs = runs.filter(id__gt=after)
    if state:
        runs = runs.filter(intents__contains=[{"state": state}])
    found: list[IntentView] = []
    for run in runs[:limit]:
        wanted = [i for i in run.intents if state is None or i["state"] == state]
        bodies = read_bodies(run.id, [i["seq"] for i in wanted])
        found += [intent_view(run.id, listed, *bodies[listed["seq"]]) for listed in wanted if listed["seq"] in bodies]
    return sorted(found, key=lambda view: view.since)


def read_bodies(run_id: UUID, seqs: Sequence[int]) -> dict[int, tuple[dict[str, Any], str]]:
    """TOOL_CALL bodies by seq, each with the digest that an approval binds to now."""
    entries = read_entries(connection, run_id, kinds=[Kind.TOOL_CALL, Kind.APPROVAL])
    asked = {e.step: e.body["digest"] for e in entries if e.kind == Kind.APPROVAL and e.body["verdict"] == "requested"}
    return {
        e.seq: (payload_store().resolve(e.body), asked.get(e.step, e.body["digest"]))
        for e in entries
        if e.kind == Kind.TOOL_CALL and e.seq in seqs
    }


def intent_view(run_id: UUID, listed: Mapping[str, Any], body: Mapping[str, Any], digest: str) -> IntentView:
    since = parse_datetime(listed["since"])
    assert since is not None
    deadline = parse_datetime(listed["deadline"]) if listed.get("deadline") else None
    return IntentView(
        run_id, listed["seq"], listed["step"], body["tool"], body["args"], body["key"], digest, body["effect"],
        listed["state"], since, deadline, listed.get("attempt", 0),
    )  # fmt: skip


def entries_of(run_id: UUID, after: int = 0, limit: int | None = None) -> list[Entry]:
    return read_entries(connection, run_id, after=after, limit=limit)


def state_of(run_id: UUID, at: int | None = None) -> RunState:
    """The fold of the journal, whole or up to and with seq `at`."""
    entries = read_entries(connection, run_id, limit=at)
    for seq, entry in enumerate(entries, 1):
        if entry.seq != seq:
            raise JournalDamaged(seq)
    return fold(run_id, entries)
