"""Where the runs of a place that is drained could go on: nowhere, where no other live worker serves their release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from recovery.in_flight import InFlight, Reach, database_now, timeouts_of
from runs.access import Person, seen_by
from runs.models import Gate, Release, Run, Stage, WorkerSession
from runs.open_gates import OpenGates, names_of

WAITING = ("waiting", "awaiting_approval", "needs_reconciliation")


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A release that no other live worker serves: its runs wait until one does. `runs` in flight, `queued` ones, those
    that are `waiting` for something that may come; and whether new runs are started under it."""

    release_id: str
    release: str
    runs: int
    queued: int
    waiting: int
    takes_new: bool

    @property
    def now(self) -> bool:
        """Whether a run of it is under way, or would be."""
        return bool(self.runs or self.queued)

    @property
    def has_runs(self) -> bool:
        return self.now or bool(self.waiting)

    @property
    def told(self) -> str:
        """1 in flight, 2 queued, 6 waiting, and new runs."""
        said = [f"{self.runs} in flight", f"{self.queued} queued"]
        said += [f"{self.waiting} waiting"] if self.waiting else []
        return ", ".join(said) + (", and new runs" if self.takes_new else "")


def nowhere(reach: Reach, found: Iterable[InFlight], user: Person | None = None) -> list[Nowhere]:
    """Of a worker or a region: releases whose runs, open ones or new ones, could go on nowhere else."""
    if not reach.is_place:
        return []
    now = database_now()
    gates = OpenGates(dict(Gate.objects.filter(lifted_at=None).values_list("scope", "reason")))
    served = {release for session in reach.elsewhere if takes(session, gates, now) for release in session.serves}
    alone = {release for session in reach.sessions for release in session.serves} - served
    flying = Counter(one.release_id for one in found)
    standing = Run.objects.filter(status__in=("queued", *WAITING), release_id__in=alone)
    rows = seen_by(user, standing).order_by().values_list("release_id", "status").annotate(n=Count("id"))
    queued, waiting = Counter[str](), Counter[str]()
    for release_id, status, count in rows:
        (queued if status == "queued" else waiting)[release_id] += count
    taking = seen_by(user, Release.objects.filter(id__in=alone, stage__in=(Stage.CURRENT, Stage.CANARY)))
    new = set(taking.values_list("id", flat=True))
    ids = sorted(alone & (flying.keys() | queued.keys() | waiting.keys() | new))
    return [Nowhere(id, str(timeouts_of(id)), flying[id], queued[id], waiting[id], id in new) for id in ids]


def takes(session: WorkerSession, gates: OpenGates, now: datetime) -> bool:
    stopped = gates.over_place(names_of(session.name, session.pool), session.region) is not None
    return session.draining_at is None and session.expires_at > now and not stopped
