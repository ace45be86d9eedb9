"""What the page of one run shows: the row, the fold of its journal, a window of its entries, one entry whole."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from journal.entries import Entry, Kind
from journal.read import read_entries
from runs.models import ENDED, Run, Status, WorkerSession
from runs.slots import Slot
from runs.state import RunState
from runs.timeline import Holder, Timeline, timeline

WINDOW = 200  # entries drawn at once
QUIET = timedelta(seconds=1)

RELEASED_BY = {
    Status.QUEUED: "The next free worker takes it.",
    Status.AWAITING_APPROVAL: "Someone who may approve decides.",
    Status.NEEDS_RECONCILIATION: "Someone says, with evidence, whether it happened.",
    Status.WAITING: "Its time comes; no worker is held meanwhile.",
    Status.WAITING_FOR_VERSION: "A worker that serves its release joins.",
    Status.HELD: "An operator resumes it.",
    Status.QUARANTINED: "An operator releases it.",
}


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds the run. `silent`: the session has not ended, but its lease has lapsed."""

    session: WorkerSession | None
    live: bool
    silent: bool

    @property
    def lost(self) -> bool:
        return self.session is not None and not self.live

    @property
    def may_be_killed(self) -> bool:
        """Only in a demo, and only a process of this machine."""
        return bool(settings.HOLDFAST_DEMO and self.live and self.session and self.session.host == socket.gethostname())


@dataclass(frozen=True, slots=True)
class RunPage:
    """`entries` is the window drawn, `earlier` the `after=` of the window before it (None at the start)."""

    run: Run
    state: RunState
    lease: Lease
    line: Timeline
    last_seq: int
    first_seq: int
    now: datetime

    @property
    def earlier(self) -> int | None:
        return max(self.first_seq - 1 - WINDOW, 0) if self.first_seq > 1 else None

    @property
    def later(self) -> int | None:
        end = self.first_seq + WINDOW - 1
        return end if end < self.last_seq else None

    @property
    def ended(self) -> bool:
        return self.run.status in ENDED

    @property
    def released_by(self) -> str:
        return RELEASED_BY.get(Status(self.run.status), "")

    @property
    def open_questions(self) -> list[Slot]:
        """Intents that wait for a person: to be approved, or in doubt while no live worker is on them."""
        waiting = ("awaiting_approval",) if self.lease.live else ("awaiting_approval", "in_doubt")
        return [slot for slot in self.state.unsettled() if slot.state in waiting] if not self.ended else []

    @property
    def outcome(self) -> tuple[str, Any] | None:
        done = self.state.done
        return (
            next(((name, done[name]) for name in ("result", "error", "cancelled") if name in done), None)
            if done
            else None
        )


def lease_of(run: Run, now: datetime) -> Lease:
    session = run.session
    live = session is not None and session.ended_at is None and session.expires_at > now
    silent = session is not None and session.ended_at is None and session.expires_at + QUIET < now
    return Lease(session, live, silent)


class Reading:
    """A journal read so far; `refresh` reads on from its last entry, so that a stream folds each entry once."""

    def __init__(self, run_id: UUID) -> None:
        self.entries: list[Entry] = []
        self.state = RunState(run_id)

    def refresh(self) -> Reading:
        for entry in read_entries(connection, self.state.run_id, after=self.state.seq):
            self.entries.append(entry)
            self.state.apply(entry)
        self.state.committed_seq = self.state.seq
        return self

    def page(self, run: Run, *, after: int | None = None, seq: int | None = None) -> RunPage:
        """The newest window, the one after `after`, or the one that holds `seq`."""
        now = timezone.now()
        lease = lease_of(run, now)
        shown = window(self.entries, after=after, seq=seq)
        line = timeline(shown, self.state, now=now, held=lease.live, holders=holders_in(shown))
        return RunPage(run, self.state, lease, line, self.state.seq, shown[0].seq if shown else 1, now)


def holders_in(entries: Sequence[Entry]) -> dict[str, Holder]:
    """The sessions that take-over notes name."""
    named = {str(e.body[who]) for e in entries if e.kind == Kind.NOTE for who in ("from", "session") if e.body.get(who)}
    rows = WorkerSession.objects.filter(id__in=named) if named else []
    return {str(row.id): Holder(row.name, row.heartbeat_at) for row in rows}


def window(entries: Sequence[Entry], *, after: int | None = None, seq: int | None = None) -> Sequence[Entry]:
    last = len(entries)
    if after is None:
        newest = max(last - WINDOW, 0)
        after = newest if seq is None or seq > newest else (max(seq, 1) - 1) // WINDOW * WINDOW
    return entries[after : after + WINDOW]


def default_seq(page: RunPage) -> int:
    """The entry to show when the address names none: what waits for a person, else the last."""
    questions = page.open_questions
    return questions[0].seq if questions else page.last_seq
