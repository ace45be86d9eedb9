"""Effects that happened twice: what a key would have prevented, seen when a fenced worker's success came late.

Told from the evidence: a success that settles nothing, beside the success of another attempt of the same call. Without
a key the other side has done it twice; somebody has to undo one of them there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models.expressions import RawSQL

from runs.models import Evidence
from runs.slots import Slot

WITHOUT_KEY = ("probed", "unkeyed")
LATE = """SELECT l.run_id, l.step FROM runs_evidence AS l
 WHERE l.outcome = 'succeeded' AND l.adopted_seq IS NULL {more}
   AND EXISTS (SELECT FROM journal_entry e WHERE e.run_id = l.run_id AND e.step = l.step AND e.kind = 'TOOL_CALL'
                  AND convert_from(e.body, 'UTF8')::jsonb ->> 'effect' IN ('probed', 'unkeyed'))
   AND EXISTS (SELECT FROM journal_entry e WHERE e.run_id = l.run_id AND e.settles = l.step AND e.kind = 'OBS'
                  AND convert_from(e.body, 'UTF8')::jsonb @> '{{"outcome": "succeeded"}}'
                  AND NOT convert_from(e.body, 'UTF8')::jsonb @> '{{"source": "operator"}}')"""
RUNS = f"SELECT run_id FROM ({LATE.format(more='')}) AS late"


def runs_with_repeated() -> RawSQL:
    """Ids of the runs with such an effect, for a filter. Evidence is rare: read whole."""
    return RawSQL(RUNS, [])


@dataclass(frozen=True, slots=True)
class Repeated:
    """A call that was done twice."""

    slot: Slot
    epoch: int  # whose success came late

    @property
    def attempt(self) -> int:
        """The attempt whose success came late, as far as its epoch tells."""
        own = [attempt.number for attempt in self.slot.attempts if attempt.epoch == self.epoch]
        return own[-1] if own else 1


def repeated_in(run_id: UUID, slots: Iterable[Slot]) -> list[Repeated]:
    """Calls of this run that were done twice, in the order of their steps."""
    likely = {slot.step: slot for slot in slots if was_sent_again(slot)}
    if not likely:
        return []
    rows = Evidence.objects.filter(run=run_id, step__in=likely, outcome="succeeded", adopted_seq__isnull=True)
    found = {row.step: Repeated(likely[row.step], row.epoch) for row in rows.order_by("step", "-id")}
    return list(found.values())


def was_sent_again(slot: Slot) -> bool:
    """Without a key, more than once, and the last of it succeeded."""
    sent = slot.kind == "call" and slot.effect in WITHOUT_KEY and len(slot.attempts) > 1
    return sent and slot.outcome == "succeeded" and slot.settled_by == "worker"
