"""What was in doubt and is not any more, newest first: off the index of rare kinds, over all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils.dateparse import parse_datetime

from journal.encoding import decode
from recovery.items import VERDICTS
from runs.access import Person, agents_of
from runs.errors import CursorUnknown
from runs.models import Run
from runs.short_ids import short_id
from runs.state import MACHINES

PAGE = 50
CHUNK = 200
MOST_CHUNKS = 25  # read for one page at most: behind them, the next page goes on
SETTLING = frozenset({"happened", "never_happened", "abort"})

# The condition on the kind is the index's, so that it serves; the verdict stands in the body, which no index knows.
# What a fork copied (epoch 0) is its source's.
FOUND = """
SELECT e.run_id, e.seq, e.step, e.actor, e.recorded_at, e.body, r.agent
  FROM journal_entry e JOIN runs_run r ON r.id = e.run_id
 WHERE e.kind IN ('NOTE', 'RECONCILE') AND e.kind = 'RECONCILE' AND e.epoch > 0
   AND (%(before)s::timestamptz IS NULL
        OR (e.recorded_at, e.run_id, e.seq) < (%(before)s, %(run)s::uuid, %(seq)s::bigint))
   AND (%(within)s::text[] IS NULL OR r.agent = ANY (%(within)s))
 ORDER BY e.recorded_at DESC, e.run_id DESC, e.seq DESC LIMIT %(limit)s
"""
# The intent of a step, and the entry that settled it.
AROUND = """
SELECT w.run, w.step, c.seq, c.body, o.body
  FROM unnest(%(runs)s::uuid[], %(steps)s::int[], %(seqs)s::bigint[]) WITH ORDINALITY AS w (run, step, seq, n)
  LEFT JOIN LATERAL (SELECT seq, body FROM journal_entry
                      WHERE run_id = w.run AND step = w.step AND kind = 'TOOL_CALL' LIMIT 1) AS c ON true
  LEFT JOIN LATERAL (SELECT body FROM journal_entry
                      WHERE run_id = w.run AND settles = w.step AND seq = w.seq + 1) AS o ON true
 ORDER BY w.n
"""


@dataclass(frozen=True, slots=True)
class Settled:
    """`answer`: what the OBS beside it says; None where there is none."""

    run_id: UUID
    agent: str
    seq: int
    step: int
    actor: str
    at: datetime
    body: Mapping[str, Any]
    call_seq: int
    tool: str
    summary: str
    answer: Mapping[str, Any] | None

    @property
    def short(self) -> str:
        return short_id(self.run_id)

    @property
    def word(self) -> str:
        return VERDICTS.get(str(self.body.get("verdict")), ("Settled", ""))[0]

    @property
    def evidence(self) -> str:
        said = self.body.get("evidence")
        if isinstance(said, Mapping):
            return f"late result {said.get('evidence')}, from epoch {said.get('epoch')}"
        return str(said or "")

    @property
    def cursor(self) -> str:
        return f"{self.at.isoformat()}~{self.run_id}~{self.seq}"


def by_people(actor: str, body: Mapping[str, Any]) -> bool:
    return actor not in MACHINES and body.get("verdict") in SETTLING


def by_itself(actor: str, body: Mapping[str, Any]) -> bool:
    return actor in MACHINES and body.get("verdict") in SETTLING


def list_settled(
    wanted: Callable[[str, Mapping[str, Any]], bool], user: Person, after: str = ""
) -> tuple[list[Settled], str | None]:
    """A page, and where to go on. Raises CursorUnknown."""
    within = agents_of(user)
    place = place_of(after) | {"within": None if within is None else sorted(within), "limit": CHUNK}
    found: list[tuple[Any, ...]] = []
    for _ in range(MOST_CHUNKS):
        with connection.cursor() as cursor:
            cursor.execute(FOUND, place)
            rows = [(*row[:5], decode(bytes(row[5])), row[6]) for row in cursor.fetchall()]
        found += [row for row in rows if wanted(row[3], row[5])]
        if len(rows) < CHUNK or len(found) > PAGE:
            break
        place |= {"before": rows[-1][4], "run": rows[-1][0], "seq": rows[-1][1]}
    else:
        rows = []
    settled = with_calls(found[:PAGE])
    more = len(found) > PAGE
    return settled, settled[-1].cursor if more and settled else None


def with_calls(found: Sequence[tuple[Any, ...]]) -> list[Settled]:
    given = {"runs": [row[0] for row in found], "steps": [row[2] for row in found], "seqs": [row[1] for row in found]}
    with connection.cursor() as cursor:
        cursor.execute(AROUND, given)
        around = cursor.fetchall()
    told = []
    for row, (_, _, call_seq, call, obs) in zip(found, around, strict=True):
        body = decode(bytes(call)) if call is not None else {}
        answer = decode(bytes(obs)) if obs is not None else None
        told.append(
            Settled(row[0], row[6], row[1], row[2], row[3], row[4], row[5], call_seq or row[1],
                    str(body.get("tool", "")), str(body.get("summary") or ""), answer)
        )  # fmt: skip
    return told


def place_of(cursor: str) -> dict[str, Any]:
    if not cursor:
        return dict.fromkeys(("before", "run", "seq"))
    try:
        at, run, seq = cursor.split("~")
        before, run_id, number = parse_datetime(at), UUID(run), int(seq)
    except ValueError:
        raise CursorUnknown(cursor) from None
    if before is None or not 0 < number < 2**63:
        raise CursorUnknown(cursor)
    return {"before": before, "run": run_id, "seq": number}


@dataclass(frozen=True, slots=True)
class OnRecord:
    """A question that nobody answered before its run was aborted."""

    run: Run
    record: Mapping[str, Any]

    @property
    def short(self) -> str:
        return short_id(self.run.id)


def list_on_record(user: Person, after: str = "") -> tuple[list[OnRecord], str | None]:
    """The newest runs first."""
    within = agents_of(user)
    runs = Run.objects.exclude(intents=[]).filter(ended_at__isnull=False).order_by("-id")
    if within is not None:
        runs = runs.filter(agent__in=sorted(within))
    if after:
        try:
            runs = runs.filter(id__lt=UUID(after))
        except ValueError:
            raise CursorUnknown(after) from None
    found = list(runs[: PAGE + 1])
    listed = [OnRecord(run, record) for run in found[:PAGE] for record in run.intents if record.get("state") in DOUBTED]
    return listed, str(found[PAGE - 1].id) if len(found) > PAGE else None


DOUBTED = ("aborted", "in_doubt")
