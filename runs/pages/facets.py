"""The facets beside the list, and its tabs: what there is to choose, and how many runs each would show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict

from runs.access import Person, agents_of, seen_by
from runs.counts import MOST, capped_counts, counted
from runs.errors import QueryInvalid
from runs.models import Release, Run, SavedView
from runs.pages.run_filter import Asked, asked_in
from runs.pages.sharing import shared
from runs.query_language import ENDED, OPEN
from runs.query_meaning import HAS, Reader, runs_meant

KEPT = 3.0  # seconds
MOST_AGENTS = 30
MOST_RELEASES = 30
SHOWN = 12  # choices of a facet; the others fold away
MOST_REGIONS = 20
MOST_VIEWS = 30
MOST_IN_VIEW = 1_000  # a saved view may ask for anything: it is counted less far
HAS_WORDS = {
    "intent": "Pending intent", "question": "Open question", "stranded": "Stranded pin",
    "takeover": "More than 1 epoch", "overbudget": "Over budget",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    word: str
    chosen: bool
    count: str


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    legend: str
    choices: Sequence[Choice]

    @property
    def shown(self) -> Sequence[Choice]:
        return self.choices[:SHOWN]

    @property
    def folded(self) -> Sequence[Choice]:
        return self.choices[SHOWN:]

    @property
    def unfolds(self) -> bool:
        """Something that was chosen is never out of sight."""
        return any(choice.chosen for choice in self.folded)


@dataclass(frozen=True, slots=True)
class Tab:
    """A view of the list. `view` is the saved one, `mine` whether this person may change it."""

    name: str
    address: str
    current: bool
    count: str
    view: SavedView | None = None
    mine: bool = False


OPEN_ADDRESS = "&".join(f"status={status}" for status in OPEN)
BUILT_IN = (
    ("Open", OPEN_ADDRESS),
    ("Needs a person", "has=person"),
    ("Stranded", "status=waiting_for_version"),
    ("Failed, last 24 h", "q=ended%3A%3C24h&status=failed"),
    ("All", "q="),
)


@dataclass(frozen=True, slots=True)
class Offered:
    """A value that a facet offers, and what it would show."""

    value: str
    word: str
    rows: Q


def facets_and_tabs(asked: Asked, user: Person, reader: Reader) -> tuple[list[Facet], list[Tab]]:
    """Every number of the page by one statement for those that stand fixed, and one for the saved views."""
    offered = offers(user)
    views = views_of(user)
    flat = [(name, one) for name, _, ones in offered for one in ones]
    fixed = [seen_by(user, Run.objects.filter(one.rows)) for _, one in flat]
    built_in = [rows_at(address, reader) for _, address in BUILT_IN]
    numbers = [
        counted(number)
        for number in kept(user, reader, [(name, one.value) for name, one in flat], [*fixed, *built_in], MOST)
    ]
    own = [rows_at(view.query, reader) for view in views]
    saved = [counted(n, MOST_IN_VIEW) for n in kept(user, reader, [view.query for view in views], own, MOST_IN_VIEW)]
    facets, at = [], 0
    for name, legend, ones in offered:
        chosen = asked.chosen.get(name, ())
        counts = numbers[at : at + len(ones)]
        at += len(ones)
        choices = [Choice(o.value, o.word, o.value in chosen, n) for o, n in zip(ones, counts, strict=True)]
        facets.append(Facet(name, legend, choices))
    return facets, list(tabs(asked, user, numbers[at:], views, saved))


def kept(user: Person, reader: Reader, of: Sequence[object], sets: Sequence[QuerySet[Run]], most: int) -> list[int]:
    """Counted anew every few seconds only, for all who see the same runs on the same day."""
    key = ("counts of runs", agents_of(user), str(reader.zone), tuple(map(str, of)), most)
    return shared.get(key, KEPT, lambda: capped_counts(sets, most))


def tabs(
    asked: Asked, user: Person, counts: Sequence[str], views: Sequence[SavedView], saved: Sequence[str]
) -> Iterator[Tab]:
    here = asked.address
    for (name, address), count in zip(BUILT_IN, counts, strict=True):
        yield Tab(name, address, same(address, here), count)
    for view, count in zip(views, saved, strict=True):
        yield Tab(view.name, view.query, same(view.query, here), count, view, view.owner_id == user.pk)


def same(address: str, here: str) -> bool:
    return asked_in(QueryDict(address)).address == here


def rows_at(address: str, reader: Reader) -> QuerySet[Run]:
    """What an address lists; nothing where it cannot be read any more."""
    try:
        return runs_meant(asked_in(QueryDict(address)).terms, reader)
    except QueryInvalid:
        return Run.objects.none()


def views_of(user: Person) -> list[SavedView]:
    """The person's own and the shared ones."""
    return list(SavedView.objects.filter(Q(owner=user.pk) | Q(shared=True)).select_related("owner")[:MOST_VIEWS])


# -- what is offered ---------------------------------------------------------------------------------------------------


def offers(user: Person) -> list[tuple[str, str, list[Offered]]]:
    by_status = [Offered(status, "", Q(status=status)) for status in (*OPEN, *ENDED)]
    by_agent = [Offered(name, name, Q(agent=name)) for name in agents_known(user)[:MOST_AGENTS]]
    by_release = [Offered(str(release), str(release), Q(release_id=release.id)) for release in releases_run(user)]
    by_region = [Offered(name, name, Q(region=name) & ~Q(region="")) for name in regions_known()]
    by_has = [Offered(value, word, HAS[value]) for value, word in HAS_WORDS.items()]
    found = [
        ("status", "Status", by_status), ("agent", "Agent", by_agent), ("release", "Release", by_release),
        ("region", "Region", by_region), ("has", "Has", by_has),
    ]  # fmt: skip
    return [(name, legend, ones) for name, legend, ones in found if ones]


def agents_known(user: Person | None) -> list[str]:
    within = agents_of(user)
    known = Release.objects.order_by("agent").values_list("agent", flat=True).distinct()
    return [name for name in known if within is None or name in within]


def releases_run(user: Person | None) -> list[Release]:
    """Those that have runs, the newest first: a release without any narrows nothing."""
    known = seen_by(user, Release.objects.only("id", "agent", "version"))
    return list(
        known.filter(Exists(Run.objects.filter(release=OuterRef("pk")))).order_by("-created_at", "id")[:MOST_RELEASES]
    )


# From one region to the next by the index, however many runs each has.
REGIONS = """
WITH RECURSIVE region (name) AS (
    SELECT min(region) FROM runs_run WHERE NOT region = ''
    UNION ALL
    SELECT (SELECT min(r.region) FROM runs_run r WHERE NOT r.region = '' AND r.region > region.name)
      FROM region WHERE region.name IS NOT NULL
)
SELECT name FROM region WHERE name IS NOT NULL LIMIT %s
"""


def regions_known() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(REGIONS, [MOST_REGIONS])
        return [row[0] for row in cursor.fetchall()]
