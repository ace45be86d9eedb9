"""An act on a run that was on screen: it is written if it still applies, else it is said what happened meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from journal.append import lock_head
from journal.entries import STEERING, Entry, Kind
from journal.read import read_head
from runs.models import ENDED, Run
from runs.pages.controls import Control, refusal
from runs.pages.summaries import summary
from runs.queries import entries_of, state_of
from runs.slots import Slot

MOST_SINCE = 200  # entries that are read for what happened meanwhile
MOST_SHOWN = 8
TELLING = frozenset({*STEERING, Kind.DONE})


@dataclass(frozen=True, slots=True)
class Since:
    """An entry that came while a page was on screen."""

    seq: int
    actor: str
    at: Any
    text: str


class MovedOn(Exception):
    """The run moved on, and the act does not apply any more. `since`: what happened, the last at the end."""

    def __init__(self, why: str, since: Sequence[Since]) -> None:
        super().__init__(why)
        self.why, self.since = why, since


def act_once(run: Run, act: Control, given: Mapping[str, Any], seen: int | None, actor: str) -> None:
    """Writes it, unless the same person has just written the same: a second click. Raises MovedOn.

    `seen`: the head seq that was on screen. The head is held from the look at the run until the act is written.
    """
    if run.input is not None:  # stateless: there is no head
        act.command(run_id=run.id, actor=actor, **given)
        return
    with transaction.atomic():
        lock_head(run.id)
        if seen is not None and written_since(run.id, seen, act, given, actor):
            return
        now = Run.objects.select_related("release", "session").get(id=run.id)
        if seen is not None and (why := refusal(act, now, state_of(run.id))):
            raise MovedOn(why, since(run.id, seen))
        act.command(run_id=run.id, actor=actor, **given)


def written_since(run_id: UUID, seen: int, act: Control, given: Mapping[str, Any], actor: str) -> bool:
    said = {name: str(value).strip() for name, value in given.items() if name in ("reason", "text")}
    if act.kind == Kind.SIGNAL:  # its id says whether it is the same
        return False
    wanted = said if act.kind == Kind.NOTE else {"verb": act.verb} | said
    return any(
        entry.kind == act.kind and entry.actor == actor and wanted.items() <= entry.body.items()
        for entry in entries_of(run_id, after=seen, limit=MOST_SINCE)
    )


def since(run_id: UUID, seen: int) -> list[Since]:
    """What steered or ended the run after `seen`, the last ones."""
    found = [entry for entry in entries_of(run_id, after=seen, limit=MOST_SINCE) if entry.kind in TELLING]
    return [Since(e.seq, e.actor, e.recorded_at, f"{entry_named(e)}: {summary(e)}") for e in found[-MOST_SHOWN:]]


def head_of(run: Run) -> int:
    return 0 if run.input is not None else read_head(None, run.id).last_seq


@dataclass(frozen=True, slots=True)
class Finishing:
    """What a cancel leaves: calls that are under way, intents in doubt, open runs below."""

    under_way: Sequence[Slot]
    in_doubt: Sequence[Slot]
    below: int


def finishing(run: Run, slots: Sequence[Slot], below: int) -> Finishing:
    """A call is under way while a live session drives the run; without one, what was sent is in doubt."""
    driven = run.session is not None and run.session.ended_at is None and run.status not in ENDED
    doubtful = [slot for slot in slots if slot.kind == "call" and slot.state == "in_doubt"]
    under_way = [slot for slot in doubtful if driven and slot.attempts[-1].unknown_at is None]
    return Finishing(under_way, [slot for slot in doubtful if slot not in under_way], below)


def entry_named(entry: Entry) -> str:
    verb = entry.body.get("verb") or entry.body.get("verdict")
    return f"{entry.kind}({verb})" if verb else str(entry.kind)
