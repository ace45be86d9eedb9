"""A row of the list of runs: where the run stands, in words, and its journal as a strip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from journal.outlines import Outline, read_outlines
from runs.models import ENDED, Run, Status
from runs.pages.on_the_way import draining_among
from runs.pages.strip import MOST, Strip, strip_of
from runs.templatetags.console import ago, duration

type Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """`note` stands behind the word of the status; `at` is the tool or wait it stands at, `says` what is to be known.

    `last_at` is the time of its last entry.
    """

    run: Run
    note: str
    at: str
    says: str
    strip: Strip | None
    last_seq: int
    last_at: datetime
    stateless: bool
    draining: bool = False

    @property
    def told(self) -> tuple[Any, ...]:
        """What a browser that has it need not be told again."""
        run = self.run
        return run.status, run.reason, run.since, run.epoch, run.session_id, self.last_seq, run.tokens, self.draining


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """Three statements, however many runs there are. Lists come without the inputs that tell stateless ones."""
    outlines = read_outlines([run.id for run in runs], MOST)
    unwritten = [run.id for run in runs if run.id not in outlines]
    stateless = set(Run.objects.filter(id__in=unwritten, input__isnull=False).values_list("id", flat=True))
    draining = draining_among(runs)
    return [row_of(run, outlines.get(run.id, []), stateless, draining) for run in runs]


def row_of(run: Run, entries: Sequence[Outline], stateless: Set[UUID], draining: Set[UUID]) -> Row:
    records: list[Record] = run.intents if isinstance(run.intents, list) and run.status not in ENDED else []
    doubts = {record["seq"] for record in records if record.get("state") == "in_doubt"}
    at, says = standing(run, records)
    steps = [entry.step for entry in entries if entry.step is not None]
    if run.status == Status.RUNNING and not says and steps:
        says = f"step {max(steps)}"  # the row is as of when it was last let go
    return Row(
        run=run,
        note=note_of(run, records),
        at=at,
        says=says,
        strip=strip_of(entries, doubts, run.forked_at or 0) if entries else None,
        last_seq=entries[-1].seq if entries else 0,
        last_at=entries[-1].recorded_at if entries else run.since,
        stateless=run.id in stateless,
        draining=run.id in draining,
    )


def note_of(run: Run, records: Sequence[Record]) -> str:
    """What the word of the status leaves open, in two or three words."""
    match run.status:
        case Status.HELD:
            return held_by(run.reason)
        case Status.WAITING if first(records, "asked") is not None:
            return "for an answer"
        case Status.AWAITING_APPROVAL if any(record.get("question") for record in records):
            return "a question is open"
        case Status.QUEUED if run.priority:
            return f"priority {run.priority}"
    return ""


def held_by(reason: str) -> str:
    if reason.startswith("gate "):
        return "by a gate"
    if reason.startswith("brake:"):
        return "by a brake"
    if reason.startswith("diverged:"):
        return "diverged"
    name, colon, _ = reason.removeprefix("held ").partition(": ")
    return name[:60] if colon and name.startswith("by ") else ""


def standing(run: Run, records: Sequence[Record]) -> tuple[str, str]:
    """The tool or wait, and what is to be known of it."""
    doubt, approval, ask = first(records, "in_doubt"), first(records, "awaiting_approval"), first(records, "asked")
    match run.status:
        case Status.NEEDS_RECONCILIATION if doubt is not None:
            return str(doubt["tool"]), f"no result for {since_of(doubt)}"
        case Status.AWAITING_APPROVAL if approval is not None:
            return str(approval["tool"]), approval_words(approval)
        case Status.WAITING if ask is not None:
            return "question", str(ask.get("summary") or run.reason.removeprefix("asks: "))
        case Status.QUEUED:
            return run.at or "start", run.reason or "waits for a free worker"
    return run.at, run.reason


def first(records: Sequence[Record], state: str) -> Record | None:
    return next((record for record in records if record.get("state") == state), None)


def since_of(record: Record) -> str:
    return ago(parse_datetime(str(record.get("since"))))


def approval_words(record: Record) -> str:
    """How many of how many agreed, and until when."""
    policy = record.get("policy") or {}
    quorum, granted = policy.get("quorum", 1), len(record.get("granted") or ())
    said = f"{granted} of {quorum} granted" if quorum > 1 else f"asked {since_of(record)} ago"
    due = parse_datetime(record["deadline"]) if record.get("deadline") else None
    if due is None:
        return said
    left = (due - timezone.now()).total_seconds()
    return f"{said}, due in {duration(left)}" if left > 0 else f"{said}, expired"
