"""How a drain ended: what was handed over, and what became of it since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_datetime

from journal.models import Head
from recovery.handed_over import went_on
from recovery.models import Drain
from recovery.pages.drain_panels import seen_of
from runs.access import Person
from runs.models import DOUBT_STANDS, AuditRecord, Run
from runs.queries import state_of
from runs.slots import Slot

MOST_FOLDED = 100  # runs whose journals are read to say what became of their calls


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A run that was not at a checkpoint at the deadline. `call`: what became of the call that it was in, in words.

    `wrote`: whether its journal has an entry since; `went_on`: whether that is more than an answer.
    """

    told: Mapping[str, Any]
    run: Run | None
    wrote: bool
    went_on: bool
    call: str
    in_doubt: bool

    @property
    def run_id(self) -> UUID:
        return UUID(self.told["run"])

    @property
    def since(self) -> datetime | None:
        return parse_datetime(self.told["since"])


@dataclass(frozen=True, slots=True)
class Report:
    runs: Sequence[HandedOver]
    lost: int
    more: int


def report_of(drain: Drain, user: Person) -> Report:
    if drain.ended_at is None:
        return Report((), 0, 0)
    told = seen_of(drain.report, user)
    ids = [UUID(one["run"]) for one in told]
    rows = Run.objects.select_related("release").in_bulk(ids)
    wrote = set(
        Head.objects.filter(run_id__in=ids, last_recorded_at__gt=drain.ended_at).values_list("run_id", flat=True)
    )
    further = went_on(drain, told)
    shown = [became(one, rows.get(UUID(one["run"])), drain, wrote, further) for one in told[:MOST_FOLDED]]
    return Report(shown, int(drain.report.get("lost", 0)), len(told) - len(shown))


def became(told: Mapping[str, Any], run: Run | None, drain: Drain, wrote: set[UUID], further: set[UUID]) -> HandedOver:
    slot = None
    if run is not None and run.input is None and told.get("step") is not None:
        slot = state_of(run.id).slots.get(int(told["step"]))
    doubt = slot is not None and slot.in_doubt and run is not None and run.status in DOUBT_STANDS
    run_id = UUID(told["run"])
    return HandedOver(told, run, run_id in wrote, run_id in further, call_words(slot, drain.ended_at), doubt)


def call_words(slot: Slot | None, deadline: datetime | None) -> str:
    """`answered at 14:31:02: succeeded`, `sent again, attempt 2, …`."""
    if slot is None or deadline is None:
        return ""
    later = [attempt for attempt in slot.attempts if attempt.at > deadline]
    again = f"sent again as attempt {later[-1].number}" if later else ""
    if slot.settled and slot.obs_at is not None:
        ended = f"{slot.outcome} at {slot.obs_at:%H:%M:%S} UTC"
        return f"{again}, {ended}" if again else f"answered late: {ended}" if slot.obs_at > deadline else ended
    return again or "not answered yet"


def steered(drain: Drain) -> list[AuditRecord]:
    """Who moved its deadline, the oldest first."""
    rows = AuditRecord.objects.filter(act="drain.extend", detail__drain=drain.pk).order_by("-id")[:20]
    return list(rows)[::-1]
