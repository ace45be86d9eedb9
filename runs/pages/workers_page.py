"""The workers page: a row a session, with its lease and what it serves; of a lost one, what became of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.access import GATE, agents_of
from runs.models import Release, Run, WorkerSession
from runs.open_gates import OpenGates, names_of
from runs.pages.live import event, live_answer
from runs.pages.on_the_way import open_gates
from runs.pages.overview_numbers import LOST, Loss, Scope, became
from runs.pages.sharing import shared

RECENT = timedelta(hours=1)  # for so long a session that ended stays on the page
MOST = 300
KEPT = 1.5  # seconds that one drawing serves all who look
REDRAWN_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Served:
    """A release that a session executes, and the digest of the code it has for it."""

    release: str
    agent: str
    version: str
    code: str


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """`look` and `word`: its state. `late`: its last heartbeat should have been followed by another. `stopped`: the
    scope of the gate that it is under."""

    session: WorkerSession
    look: str
    word: str
    held: int
    late: bool
    serves: Sequence[Served]
    loss: Loss | None
    stopped: str = ""

    @property
    def filled(self) -> int:
        """Of 100: how much of what it may do at once it does."""
        return min(100, round(100 * self.held / max(self.session.concurrency, 1)))

    @property
    def scope(self) -> str:
        return f"worker:{self.session.name}"


@dataclass(frozen=True, slots=True)
class WorkersPage:
    rows: Sequence[WorkerRow]
    pools: Sequence[tuple[str, int]]
    pool: str
    counts: Mapping[str, int]

    @property
    def said(self) -> str:
        """11 serving, 1 draining, 1 lost"""
        told = [f"{self.counts[look]} {word}" for look, word in SUMMARY if self.counts.get(look)]
        return ", ".join(told) or "No worker is serving"


SUMMARY = (("ok", "serving"), ("draining", "draining"), ("warn", "late with a heartbeat"), ("lost", "lost"))
ORDER = ("lost", "warn", "draining", "ok", "off")


def workers_page(agents: Scope, pool: str = "") -> WorkersPage:
    now = timezone.now()
    sessions = sessions_since(now - RECENT)
    pools = sorted({session.pool for session in sessions})
    shown = [session for session in sessions if pool not in pools or session.pool == pool]
    held = leases_held([session.id for session in shown])
    lost = [Loss(s.id, s.name, s.ended_at, s.end_reason) for s in shown if s.ended_at and s.end_reason in LOST]
    told = {loss.session: loss for loss in became(lost, agents)}
    names = releases_of(shown, agents)
    gates = shared.get(("open gates",), KEPT, open_gates)
    rows = [row_of(s, held.get(s.id, 0), told.get(s.id), names, now, gates) for s in shown]
    rows.sort(key=lambda row: (ORDER.index(row.look), row.session.pool, row.session.name, str(row.session.id)))
    counts = {look: sum(row.look == look for row in rows) for look in ORDER}
    sizes = [(name, sum(session.pool == name for session in sessions)) for name in pools]
    return WorkersPage(rows, sizes, pool if pool in pools else "", counts)


def sessions_since(ended_after: datetime) -> list[WorkerSession]:
    """Those that have not ended, and those that ended since; each part by its own index."""
    every = WorkerSession.objects.defer("totals").order_by("-started_at")
    live = every.filter(ended_at__isnull=True)[:MOST]
    ended = every.filter(ended_at__gt=ended_after).order_by("-ended_at")[:MOST]
    return [*live, *ended]


def leases_held(sessions: Sequence[UUID]) -> dict[UUID, int]:
    found = Run.objects.filter(session__in=sessions).values_list("session").annotate(Count("id"))
    return dict(found)


def releases_of(sessions: Sequence[WorkerSession], agents: Scope) -> dict[str, tuple[str, str]]:
    """Agent and version by release id, within the viewer's scope."""
    ids = {release for session in sessions for release in session.serves}
    named = Release.objects.filter(Q() if agents is None else Q(agent__in=agents), id__in=ids)
    return {row[0]: (row[1], row[2]) for row in named.values_list("id", "agent", "version")}


def row_of(
    session: WorkerSession, held: int, loss: Loss | None, names: Mapping[str, tuple[str, str]], now: datetime,
    gates: OpenGates,
) -> WorkerRow:  # fmt: skip
    lease = session.expires_at - session.heartbeat_at
    late = session.ended_at is None and now - session.heartbeat_at > lease / 2
    answers_to = names_of(session.name, session.pool)
    over = (*(f"worker:{name}" for name in answers_to), f"region:{session.region}", "all")
    stopped = next((scope for scope in over if scope in gates.reasons), "") if session.ended_at is None else ""
    look, word = state_of(session, held, late, now, stopped)
    codes = session.codes if isinstance(session.codes, dict) else {}
    serves = sorted(
        (
            Served(release, *names[release], str(codes.get(release, "")))
            for release in session.serves
            if release in names
        ),
        key=lambda served: (served.agent, served.version),
    )
    return WorkerRow(session, look, word, held, late, serves, loss, stopped)


def state_of(session: WorkerSession, held: int, late: bool, now: datetime, stopped: str = "") -> tuple[str, str]:
    """Glyph and word."""
    if session.ended_at is not None:
        return ("lost", "Lost, fenced") if session.end_reason in LOST else ("off", "Ended")
    if session.expires_at < now:
        return "lost", "Silent past its lease"
    if late:
        return "warn", "Heartbeat late"
    if session.draining_at is not None or stopped:
        return "draining", f"Draining, {held} left" if held else "Drained"
    return "ok", "Serving"


# -- live --------------------------------------------------------------------------------------------------------------


@require_GET
async def live_workers(request: HttpRequest) -> HttpResponseBase:
    return await live_answer(request, lambda: WorkersPicture(request), pause=REDRAWN_EVERY, idle=REDRAWN_EVERY)


class WorkersPicture:
    """What one browser has of the page: rows change in place; the table is drawn anew when workers come or go."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._pool = request.GET.get("pool", "")
        self._told: dict[str, str] = {}

    def draw(self) -> str:
        drawn = drawing(self._request, self._pool)
        changed = {target: html for target, html in drawn.items() if self._told.get(target) != html}
        whole = [target for target in drawn if target.startswith("#session-")]
        if [target for target in self._told if target.startswith("#session-")] != whole:
            changed = {"#part-workers": drawn["#part-workers"], "#workers-head": drawn["#workers-head"]}
        else:
            changed.pop("#part-workers", None)
        self._told = dict(drawn)
        return event(changed) if changed else ""


def drawing(request: HttpRequest, pool: str) -> Mapping[str, str]:
    """By target, for all who may do the same with the same agents."""
    within = agents_of(request.user)
    may_gate = within is None and request.user.has_perm(GATE)  # a worker may have runs of any agent

    def make() -> Mapping[str, str]:
        page = workers_page(None if within is None else sorted(within), pool)
        context: dict[str, Any] = {"page": page, "may_gate": may_gate}
        rows = {
            f"#session-{row.session.id}": render_to_string("runs/workers/row.html", context | {"row": row})
            for row in page.rows
        }
        parts = {"#workers-head": "head", "#part-workers": "table"}
        return {to: render_to_string(f"runs/workers/{name}.html", context) for to, name in parts.items()} | rows

    return shared.get(("workers", within, may_gate, pool), KEPT, make)
