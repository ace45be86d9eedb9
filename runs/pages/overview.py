"""The overview: what needs a person, what is under way, how it went, and whether it holds.

All viewers of one scope share what was asked of the database a moment ago; the hours are each viewer's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from urllib.parse import quote_plus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.access import DRAIN, VIEW, Person, agents_of
from runs.models import Status
from runs.pages import hours, overview_numbers
from runs.pages.conditions import Condition, conditions
from runs.pages.live import event, live_answer
from runs.pages.overview_numbers import (
    MOST_AGENTS,
    MOST_COUNTED,
    MOST_RUNS,
    OPEN,
    Broken,
    Chains,
    Loss,
    Recovered,
    Scope,
    Stopped,
    Waiting,
)
from runs.pages.sharing import shared
from runs.pages.zones import zone_of
from runs.query_language import quoted
from runs.signed_in import signed_in
from runs.templatetags.console import STATUSES

NOW_KEEPS, MONTH_KEEPS = 1.0, 30.0  # seconds that an answer serves all who ask
LOSSES_SHOWN = 5
NEEDS_LOOKING = (Status.WAITING_FOR_VERSION, Status.HELD, Status.QUARANTINED)
PARTS = ("head", "needs", "agents", "hours", "holding", "recoveries")


@require_GET
@signed_in(VIEW)
def overview(request: HttpRequest) -> HttpResponseBase:
    context = {"section": "overview", **context_of(request.user, zone_of(request))}
    return render(request, "runs/overview.html", context)


@require_GET
async def live_overview(request: HttpRequest) -> HttpResponseBase:
    return await live_answer(request, lambda: OverviewPicture(request), pause=1.0)


class OverviewPicture:
    """What one browser has of the overview, by part."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._told: dict[str, str] = {}

    def draw(self) -> str:
        drawn = drawing(self._request.user, zone_of(self._request))
        changed = {part: html for part, html in drawn.items() if self._told.get(part) != html}
        self._told |= changed
        return event({f"#part-{part}": html for part, html in changed.items()}) if changed else ""


def drawing(user: Person, zone: tzinfo) -> Mapping[str, str]:
    """The parts, drawn once for all viewers of this scope and zone who may do the same."""

    def make() -> Mapping[str, str]:
        context = context_of(user, zone)
        return {part: render_to_string(f"runs/overview/{part}.html", context) for part in PARTS}

    return shared.get(("overview", agents_of(user), str(zone), user.has_perm(DRAIN)), NOW_KEEPS, make)


def context_of(user: Person, zone: tzinfo) -> dict[str, Any]:
    within = agents_of(user)
    agents: Scope = None if within is None else sorted(within)
    now = shared.get(("overview now", within), NOW_KEEPS, lambda: Now.ask(agents, conditions(user)))
    month = shared.get(("overview month", within), MONTH_KEEPS, lambda: Month.ask(agents, now))
    at = timezone.now()
    quarters = shared.get(
        ("overview hours", within), NOW_KEEPS, lambda: hours.kept.since(at - timedelta(hours=25), agents, at)
    )
    first = hours.first_hour(zone, at)
    marks = hours.marks_of(month.losses, agents, first, zone)
    day = hours.hours_of(quarters, zone, at)
    return {
        "needs": needs_of(now),
        "may_drain": user.has_perm(DRAIN),
        "broken": now.broken,
        "agents": agent_rows(now, month),
        "now": now,
        "month": month,
        "chart": hours.chart(day, marks),
        "recent": hours.chart(day[-hours.NARROW :], marks),
        "zone": str(zone),
        "losses": month.losses[:LOSSES_SHOWN],
    }


@dataclass(frozen=True, slots=True)
class Now:
    """What holds at this moment."""

    waiting: Mapping[str, Waiting]
    stopped: Mapping[str, Stopped]
    open_runs: Mapping[str, Mapping[str, int]]
    broken: Sequence[Broken]
    workers: int
    lines: Sequence[Condition]

    @classmethod
    def ask(cls, agents: Scope, lines: Sequence[Condition]) -> Now:
        return cls(
            overview_numbers.waiting_intents(agents),
            overview_numbers.longest_stopped(NEEDS_LOOKING, agents),
            overview_numbers.open_runs(agents),
            overview_numbers.broken_chains(agents),
            overview_numbers.serving_workers(),
            lines,
        )

    def of_status(self, status: str) -> int:
        return sum(counts.get(status, 0) for counts in self.open_runs.values())

    @property
    def in_flight(self) -> str:
        most = max((self.of_status(status) for status in OPEN), default=0)
        total = sum(self.of_status(status) for status in OPEN)
        return f"{total:,}+" if most >= MOST_COUNTED else f"{total:,}"


@dataclass(frozen=True, slots=True)
class Month:
    """What is counted over 30 days, and changes slowly."""

    resumed: Mapping[str | None, Recovered]
    orphans: int
    effects: Mapping[str, int]
    repeated: Mapping[str, int]
    costs: Mapping[str, float]
    releases: Mapping[str, tuple[list[str], str]]
    chains: Chains
    losses: Sequence[Loss]

    @classmethod
    def ask(cls, agents: Scope, now: Now) -> Month:
        named = busiest(now.open_runs)
        since = datetime.now(UTC) - timedelta(days=overview_numbers.DAYS)
        return cls(
            overview_numbers.resumed_after_loss(agents),
            overview_numbers.not_yet_resumed(agents),
            overview_numbers.effects(agents),
            overview_numbers.repeated_effects(agents),
            overview_numbers.cost_a_run(named),
            overview_numbers.releases_served(named),
            overview_numbers.chains(),
            overview_numbers.losses(since, 50, agents),
        )

    @property
    def resumed_runs(self) -> int:
        return self.resumed[None].runs if None in self.resumed else 0

    @property
    def lost_runs(self) -> int:
        return self.resumed_runs + self.orphans

    @property
    def p95(self) -> float | None:
        return self.resumed[None].p95 if None in self.resumed else None

    @property
    def effects_in_all(self) -> int:
        return sum(self.effects.values())

    @property
    def repeated_in_all(self) -> int:
        return sum(self.repeated.values())


@dataclass(frozen=True, slots=True)
class Need:
    """A row of what needs a person. `look`: glyph and hue. `act`: the word on its link."""

    id: str
    look: str
    word: str
    count: str
    since: datetime
    link: str
    act: str
    intent: Waiting | None = None
    run: Stopped | None = None
    operation: Condition | None = None
    elsewhere: str = ""

    @property
    def act_link(self) -> str:
        """Where it is put right: in the list itself, or elsewhere."""
        return self.elsewhere or self.link


INTENT_ROWS = (  # state, look, word, tab of the inbox, act
    ("in_doubt", "reconcile", "Intents to reconcile", "intents", "Reconcile"),
    ("awaiting_approval", "approval", "Approvals waiting", "approvals", "Review"),
    ("asked", "waiting", "Questions to answer", "questions", "Answer"),
)
STATUS_ROWS = (
    (Status.WAITING_FOR_VERSION, "Stranded runs"),
    (Status.HELD, "Runs held"),
    (Status.QUARANTINED, "Runs quarantined"),
)

ELSEWHERE = {Status.WAITING_FOR_VERSION: ("Releases", "/releases")}  # act and place, where the list is not the place


def needs_of(now: Now) -> list[Need]:
    """The oldest first."""
    found = [
        Need(f"operation-{one.gate}", one.look, "Runs still draining", f"{one.left:,}", one.since, one.link, one.act,
             operation=one)
        for one in now.lines if one.left
    ]  # fmt: skip
    for state, look, word, tab, act in INTENT_ROWS:
        if (one := now.waiting.get(state)) is not None:
            count = overview_numbers.counted(one.count, MOST_RUNS)
            found.append(Need(state, look, word, count, one.oldest, f"/inbox?tab={tab}", act, intent=one))
    for status, word in STATUS_ROWS:
        if (run := now.stopped.get(status)) is not None:
            count = overview_numbers.counted(max(now.of_status(status), 1))
            link = runs_link(f"status:{status}")
            act, elsewhere = ELSEWHERE.get(status, ("Show", ""))
            look = STATUSES[status][0]
            found.append(Need(status, look, word, count, run.since, link, act, run=run, elsewhere=elsewhere))
    return sorted(found, key=lambda need: need.since)


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of one status: a piece of the meter, `x` and `width` in thousandths."""

    status: str
    look: str
    word: str
    count: int
    x: int
    width: int
    link: str


@dataclass(frozen=True, slots=True)
class AgentRow:
    name: str
    parts: Sequence[Part]
    in_flight: int
    versions: Sequence[str]
    model: str
    repeated: int
    effects: int
    resumed: Recovered | None
    cost: float | None
    link: str

    @property
    def recovered_link(self) -> str:
        return runs_link(f"agent:{quoted(self.name)} has:takeover")

    @property
    def cost_link(self) -> str:
        return runs_link(f"agent:{quoted(self.name)} cost:>0")


def busiest(open_runs: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Agents with runs in flight, those with the most first."""
    return sorted(open_runs, key=lambda agent: (-sum(open_runs[agent].values()), agent))[:MOST_AGENTS]


def agent_rows(now: Now, month: Month) -> list[AgentRow]:
    found = []
    for agent in busiest(now.open_runs):
        counts = now.open_runs[agent]
        versions, model = month.releases.get(agent, ([], ""))
        found.append(
            AgentRow(
                agent, parts_of(agent, counts), sum(counts.values()), versions[:3], model,
                month.repeated.get(agent, 0), month.effects.get(agent, 0), month.resumed.get(agent),
                month.costs.get(agent), runs_link(f"agent:{quoted(agent)} status:open"),
            )
        )  # fmt: skip
    return found


def parts_of(agent: str, counts: Mapping[str, int]) -> list[Part]:
    total, x, found = sum(counts.values()), 0, []
    shown = [status for status in OPEN if counts.get(status)]
    for n, status in enumerate(shown):
        width = 1000 - x if n == len(shown) - 1 else max(round(1000 * counts[status] / total), 8)
        look, word = STATUSES[status]
        link = runs_link(f"agent:{quoted(agent)} status:{status}")
        found.append(Part(status, look, word, counts[status], x, max(width - 6, 6), link))
        x += width
    return found


def runs_link(query: str) -> str:
    return f"/runs?q={quote_plus(query)}"
