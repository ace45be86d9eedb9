"""Tokens and money: by day, by agent, by model, as the answers of models told it. Days are UTC's, as in the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal
from math import ceil, floor, log10
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.access import VIEW, Person, agents_of
from runs.pages.money import dollars, exactly
from runs.pages.sharing import shared
from runs.signed_in import signed_in
from runs.spending import Spending, Sum, spending_of

SPANS = (7, 30, 90)
USUAL = 30
COST, TOKENS = MEASURES = ("cost", "tokens")
KEPT = 5.0  # seconds that many viewers share one answer
LEFT, FLOOR, HEIGHT, WIDTH = 74.0, 180.0, 159.0, 1_000.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for. `agent`, `model`: empty means all."""

    days: int = USUAL
    by: str = ""
    agent: str = ""
    model: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Asked:
        days, by = str(given.get("days", "")), str(given.get("by", ""))
        return cls(
            int(days) if days.isdigit() and days.isascii() and int(days) in SPANS else USUAL,
            by if by in MEASURES else "", str(given.get("agent", "")), str(given.get("model", "")),
        )  # fmt: skip

    def query(self, **changed: Any) -> str:
        said = {"days": self.days, "by": self.by, "agent": self.agent, "model": self.model} | changed
        return "?" + urlencode({n: v for n, v in said.items() if v and not (n == "days" and v == USUAL)})


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table; `link` narrows the page to it."""

    name: str
    sum: Sum
    link: str = ""


@dataclass(frozen=True, slots=True)
class SpendingPage:
    asked: Asked
    by: str
    total: Sum
    agents: Sequence[Line]
    models: Sequence[Line]
    days: Sequence[Line]
    chart: Chart
    since: date
    until: date

    @property
    def spans(self) -> list[tuple[int, str]]:
        return [(days, self.asked.query(days=days)) for days in SPANS]

    @property
    def measures(self) -> list[tuple[str, str]]:
        return [(name, self.asked.query(by=name)) for name in MEASURES]

    @property
    def without_agent(self) -> str:
        return self.asked.query(agent="")

    @property
    def without_model(self) -> str:
        return self.asked.query(model="")


@require_GET
@signed_in(VIEW)
def spending(request: HttpRequest) -> HttpResponseBase:
    page = spending_page(Asked.of(request.GET), request.user)
    return render(request, "runs/spending.html", {"section": "workers", "page": page})


def spending_page(asked: Asked, user: Person) -> SpendingPage:
    until = timezone.now().astimezone(UTC).date()
    since = until - timedelta(days=asked.days - 1)
    rows = [
        row
        for row in read(since, until, user)
        if asked.agent in ("", row.agent) and asked.model in ("", row.model or NAMELESS)
    ]
    total = added(row.sum for row in rows)
    by = asked.by or (COST if total.cost else TOKENS)
    known = grouped(rows, lambda row: row.day)
    days = [since + timedelta(days=n) for n in range(asked.days)]
    by_day = [Line(f"{day:%Y-%m-%d}", known.get(day, Sum())) for day in days]
    agents = grouped(rows, lambda row: row.agent)
    models = grouped(rows, lambda row: row.model or NAMELESS)
    return SpendingPage(
        asked, by, total, lines(agents, by, lambda name: asked.query(agent=name)),
        lines(models, by, lambda name: asked.query(model=name)),
        [line for line in reversed(by_day) if line.sum != Sum()], chart(days, by_day, by), since, until,
    )  # fmt: skip


NAMELESS = "(a function)"


def read(since: date, until: date, user: Person) -> list[Spending]:
    agents = agents_of(user)
    key = ("spending", since, until, None if agents is None else tuple(sorted(agents)))

    def ask() -> list[Spending]:
        with connection.cursor() as cursor:
            return spending_of(cursor, since, until, agents)

    return shared.get(key, KEPT, ask)


def added(sums: Iterable[Sum]) -> Sum:
    total = Sum()
    for one in sums:
        total += one
    return total


def grouped[K](rows: Sequence[Spending], key: Callable[[Spending], K]) -> dict[K, Sum]:
    found: dict[K, Sum] = {}
    for row in rows:
        found[key(row)] = found.get(key(row), Sum()) + row.sum
    return found


def lines(sums: Mapping[str, Sum], by: str, link: Callable[[str], str]) -> list[Line]:
    """The dearest first."""
    found = [Line(name, total, link(name)) for name, total in sums.items()]
    return sorted(found, key=lambda line: (-measure(line.sum, by), -line.sum.tokens, line.name))


def measure(total: Sum, by: str) -> float:
    return float(total.cost) if by == COST else float(total.tokens)


# -- drawing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chart:
    """Rectangles and texts in the drawing's units; `said` is the whole of it in words. No bars: nothing was used."""

    lines: Sequence[Mapping[str, Any]]
    bars: Sequence[Mapping[str, Any]]
    labels: Sequence[Mapping[str, Any]]
    said: str
    left: int = round(LEFT)
    right: int = round(WIDTH)
    width: int = round(WIDTH) + 4
    text_y: int = round(FLOOR) + 17
    height: int = round(FLOOR) + 28


def chart(days: Sequence[date], told: Sequence[Line], by: str) -> Chart:
    """Where a price is unknown a bar of money has a mark: it is higher than it is drawn."""
    step = (WIDTH - LEFT) / len(days)
    bar = round(step * 0.7, 2)
    most = max((measure(line.sum, by) for line in told), default=0.0)
    top = scale(most) if most > 0 else 1.0
    bars = []
    for n, line in enumerate(told):
        height = HEIGHT * measure(line.sum, by) / top
        x = LEFT + n * step
        unknown = by == COST and line.sum.unpriced
        mark = f"M{x + bar / 2:.1f} {FLOOR - height - 9:.1f}l3.5 6h-7z" if unknown else ""
        if height or mark:
            bars.append({"x": f"{x:.1f}", "y": f"{FLOOR - height:.1f}", "height": f"{height:.1f}", "width": bar,
                         "mark": mark, "said": f"{line.name}: {in_words(line.sum)}"})  # fmt: skip
    every = max(len(days) // 10, 1)
    labels = [
        {"x": f"{LEFT + n * step + bar / 2:.1f}", "text": f"{day:%m-%d}"}
        for n, day in enumerate(days)
        if (len(days) - 1 - n) % every == 0
    ]
    axis = [{"value": short(top * n / 3, by), "y": f"{FLOOR - HEIGHT * n / 3:.2f}",
             "text_y": f"{FLOOR - HEIGHT * n / 3 + 3:.2f}"} for n in range(4 if most > 0 else 1)]  # fmt: skip
    said = f"{'Cost' if by == COST else 'Tokens'} by day over {len(days)} days: {in_words(added(x.sum for x in told))}."
    return Chart(axis, bars, labels, said)


def in_words(total: Sum) -> str:
    found = f"{total.tokens:,} tokens in {total.requests:,} request{'' if total.requests == 1 else 's'}"
    found += f", cost {exactly(total.cost)}" if total.requests > total.unpriced else ""
    return f"{found}, {total.unpriced:,} of unknown price" if total.unpriced else found


def scale(most: float) -> float:
    """The top of the axis: three equal steps of a round number; `most` is above 0."""
    unit = 10.0 ** floor(log10(most / 3))
    return 3 * unit * next(n for n in (1, 2, 2.5, 5, 10) if 3 * unit * n >= most * 0.999999)


def short(value: float, by: str) -> str:
    if by == COST:
        return dollars(Decimal(f"{value:.10f}")) if value else "$0"
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + name
    return str(ceil(value))
