"""The matrix of releases as the page shows it: columns of live workers, open runs by status, what is folded away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from django.urls import reverse

from runs.access import Person
from runs.fleet import FleetRow, Server, fleet
from runs.models import Release, Stage
from runs.pages.facts import digest_of, model_of, prompt_of
from runs.pages.overview import runs_link
from runs.pages.overview_numbers import OPEN, rows
from runs.query_language import quoted
from runs.templatetags.console import STATUSES

MOST_COLUMNS = 6
TAKING = (Stage.CURRENT, Stage.CANARY)


@dataclass(frozen=True, slots=True)
class Part:
    """Its open runs of one status."""

    status: str
    look: str
    word: str
    count: int
    link: str


@dataclass(frozen=True, slots=True)
class Digests:
    """In hexadecimal; empty where there is nothing to digest."""

    model: str
    prompt: str
    tools: str


@dataclass(frozen=True, slots=True)
class Row:
    """A release of the matrix. `columned`: how many live workers serve it, by the matrix's columns. `share`: of 100 new
    runs, how many it takes. `gone_at`: when the last worker that served it ended; None if one is there or none ever
    was. `named`: the term of a query that finds its runs."""

    fleet: FleetRow
    digests: Digests
    share: int
    columned: Sequence[tuple[int, str]]
    gone_at: datetime | None
    named: str

    @property
    def release(self) -> Release:
        return self.fleet.release

    @property
    def codes(self) -> Sequence[str]:
        return [code for code in self.fleet.codes if code]

    @property
    def parts(self) -> list[Part]:
        return [
            Part(status, *STATUSES[status], count, runs_link(f"{self.named} status:{status}"))
            for status in OPEN
            if (count := self.fleet.runs.get(status))
        ]

    @property
    def is_stranded(self) -> bool:
        return not self.fleet.served and self.fleet.open_runs > 0

    @property
    def elsewhere(self) -> int:
        """Open runs that stand for another reason than the missing worker."""
        return self.fleet.open_runs - self.fleet.stranded

    @property
    def is_past(self) -> bool:
        """Whether nothing of it is left that anybody would look for: it is folded away."""
        return not self.fleet.servers and not self.fleet.runs and self.release.stage not in TAKING

    @property
    def state(self) -> tuple[str, str]:
        """Glyph and word."""
        stage = self.release.stage
        if self.is_stranded:
            return "stranded", "Stranded"
        if self.fleet.served:
            return ("draining", "Retiring") if stage == Stage.RETIRING else ("ok", "Served")
        if stage == Stage.RETIRED:
            return "off", "Retired"
        return ("warn", "Not served") if stage in TAKING else ("off", "Not served")

    @property
    def share_word(self) -> str:
        return f"{self.share}% of new runs"

    @property
    def open_link(self) -> str:
        return runs_link(f"{self.named} status:open")

    @property
    def all_link(self) -> str:
        return runs_link(self.named)

    @property
    def pin_link(self) -> str:
        return reverse("runs:pin_release", args=[self.release.id])

    @property
    def cancel_link(self) -> str:
        return f"{reverse('runs:bulk_order')}?verb=cancel&q={quote(f'{self.named} status:open')}"


@dataclass(frozen=True, slots=True)
class AgentRows:
    name: str
    rows: Sequence[Row]

    @property
    def takes_canary(self) -> bool:
        """Whether a canary may be set up: beside a current release, one at a time."""
        stages = {row.release.stage for row in self.rows}
        return Stage.CURRENT in stages and Stage.CANARY not in stages


@dataclass(frozen=True, slots=True)
class Matrix:
    """`by`: what the columns are, pool or region. `past`: how many releases are folded away, or shown on request."""

    agents: Sequence[AgentRows]
    by: str
    columns: Sequence[str]
    past: int

    @property
    def stranded(self) -> list[Row]:
        """Those with the most stranded runs first."""
        found = [row for agent in self.agents for row in agent.rows if row.is_stranded]
        return sorted(found, key=lambda row: (-row.fleet.stranded, row.release.agent, row.release.id))


def matrix(user: Person | None, *, past: bool = False, agent: str | None = None) -> Matrix:
    """Of the agents that this person sees, or of one. `past`: also releases with neither runs nor workers."""
    found = fleet(user, agent=agent, retired=True)
    by, columns = columns_of({server.session: server for row in found for server in row.servers}.values())
    made = rows_of(found, by, columns)
    shown: dict[str, list[Row]] = {}
    for row in made:
        if past or not row.is_past:
            shown.setdefault(row.release.agent, []).append(row)
    groups = [AgentRows(name, group) for name, group in shown.items()]
    return Matrix(groups, by, columns, sum(row.is_past for row in made))


def columns_of(servers: Iterable[Server]) -> tuple[str, list[str]]:
    """Regions where workers are in several, else pools. What there is no column for is counted in the last."""
    there = list(servers)
    regions = sorted({server.region for server in there})
    by, found = ("region", regions) if len(regions) > 1 else ("pool", sorted({server.pool for server in there}))
    if len(found) > MOST_COLUMNS:
        found = [*found[: MOST_COLUMNS - 1], "others"]
    return by, found


def rows_of(found: Sequence[FleetRow], by: str, columns: Sequence[str]) -> list[Row]:
    digests = digests_of([row.release.id for row in found])
    gone = last_served([row.release.id for row in found if row.unserved])
    versions = Counter((row.release.agent, row.release.version) for row in found)
    canaries = {row.release.agent: row.release.share for row in found if row.release.stage == Stage.CANARY}
    return [
        Row(
            row, digests[row.release.id], share_of(row.release, canaries), columned(row.servers, by, columns),
            gone.get(row.release.id),
            named_in_query(row.release, versions[row.release.agent, row.release.version] == 1),
        )
        for row in found
    ]  # fmt: skip


def share_of(release: Release, canaries: Mapping[str, int]) -> int:
    """Of 100 new runs of its agent, how many it takes."""
    if release.stage == Stage.CANARY:
        return release.share
    return 100 - canaries.get(release.agent, 0) if release.stage == Stage.CURRENT else 0


def columned(servers: Sequence[Server], by: str, columns: Sequence[str]) -> list[tuple[int, str]]:
    places = [str(getattr(server, by)) for server in servers]
    found = Counter(place if place in columns else "others" for place in places)
    return [(found[column], column) for column in columns]


def named_in_query(release: Release, alone: bool) -> str:
    """By its id where another content had the same version."""
    return f"release:{quoted(f'{release.agent}@{release.version}' if alone else release.id)}"


# By the index over what sessions serve, one release at a time.
LAST_SERVED = """
SELECT r.id, max(s.ended_at) FROM unnest(%(ids)s::varchar[]) AS r (id)
  JOIN runs_workersession s ON s.serves @> ARRAY[r.id] GROUP BY r.id
"""


def last_served(releases: Sequence[str]) -> dict[str, datetime]:
    """By release that nobody serves: when its last worker ended."""
    return dict(rows(LAST_SERVED, ids=list(releases))) if releases else {}


MOST_KEPT = 5_000
_digests: dict[str, Digests] = {}  # a release's content never changes


def digests_of(releases: Sequence[str]) -> dict[str, Digests]:
    if len(_digests) > MOST_KEPT:
        _digests.clear()
    missing = [one for one in releases if one not in _digests]
    for release_id, content in Release.objects.filter(id__in=missing).values_list("id", "content"):
        _digests[release_id] = digests_in(content)
    return {one: _digests[one] for one in releases}


def digests_in(content: Mapping[str, object]) -> Digests:
    return Digests(model_of(content), digest_of(prompt_of(content)), digest_of(content.get("tools")))
