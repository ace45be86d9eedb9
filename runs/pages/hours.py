"""Runs per hour: the last 24, in the viewer's zone, as an SVG made here.

Quarters of an hour that are over are counted once and kept: nothing ends in the past. They fit every zone's hours.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil
from typing import Any
from urllib.parse import quote_plus

from runs.pages.overview_numbers import SCOPED, Loss, Scope, rows

HOURS = 24
QUARTER = timedelta(minutes=15)
SETTLED = timedelta(minutes=5)  # a transaction that began before its quarter was over has committed by then
ENDED = f"""
SELECT date_bin('15 minutes', ended_at, 'epoch'::timestamptz) AS at,
       CASE WHEN status = 'failed' THEN 'failed' WHEN status = 'cancelled' OR person_acted THEN 'person'
            ELSE 'alone' END AS how, count(*)
  FROM runs_run WHERE ended_at >= %(since)s AND {SCOPED} GROUP BY 1, 2
"""

type Quarters = dict[datetime, Counter[str]]


class Kept:
    """Counts by quarter for each scope; only what may still change is asked for again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._quarters: dict[Hashable, Quarters] = {}

    def since(self, first: datetime, agents: Scope, now: datetime) -> Quarters:
        key = None if agents is None else tuple(agents)
        with self._lock:
            known = {at: counts for at, counts in self._quarters.get(key, {}).items() if at >= first}
        settled = now - SETTLED - QUARTER
        after = max((at + QUARTER for at in known if at <= settled), default=first)
        quarters = {at: counts for at, counts in known.items() if at < after}
        for at, how, count in rows(ENDED, since=after, agents=agents):
            quarters.setdefault(at, Counter())[how] += count
        # One that is over and had nothing is known too, else it would be asked for until something came.
        last = after
        while last <= settled:
            quarters.setdefault(last, Counter())
            last += QUARTER
        with self._lock:
            if len(self._quarters) > 100:
                self._quarters.clear()
            self._quarters[key] = quarters
        return quarters

    def clear(self) -> None:
        with self._lock:
            self._quarters.clear()


kept = Kept()


@dataclass(frozen=True, slots=True)
class Hour:
    at: datetime
    alone: int
    person: int
    failed: int

    @property
    def total(self) -> int:
        return self.alone + self.person

    @property
    def link(self) -> str:
        """The list of what ended in it; empty where nothing did."""
        begins = self.at.astimezone(UTC)
        query = f"ended:>={begins:%Y-%m-%dT%H:%MZ} ended:<{begins + timedelta(hours=1):%Y-%m-%dT%H:%MZ}"
        return f"/runs?q={quote_plus(query)}" if self.total or self.failed else ""

    @property
    def said(self) -> str:
        found = f"{self.at:%H:%M}: {self.alone} finished alone, {self.person} after a person"
        return f"{found}, {self.failed} failed" if self.failed else found


def hours_of(quarters: Mapping[datetime, Counter[str]], zone: tzinfo, now: datetime) -> list[Hour]:
    """The last 24, the newest of them under way; each begins where an hour begins on the viewer's clock."""
    first = first_hour(zone, now)
    found = []
    for n in range(HOURS):
        start = first + timedelta(hours=n)
        sums: Counter[str] = Counter()
        for quarter in range(4):
            sums += quarters.get(start + quarter * QUARTER, Counter())
        found.append(Hour(start.astimezone(zone), sums["alone"], sums["person"], sums["failed"]))
    return found


def first_hour(zone: tzinfo, now: datetime) -> datetime:
    """In UTC. Offsets are whole quarters of an hour everywhere today; others fall to the quarter before."""
    local = now.astimezone(zone)
    minutes = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    start = (local.astimezone(UTC) - minutes) - timedelta(hours=HOURS - 1)
    return start - timedelta(minutes=start.minute % 15, seconds=start.second, microseconds=start.microsecond)


# -- drawing -----------------------------------------------------------------------------------------------------------

LEFT, STEP, BAR = 34.0, 27.4, 19.0
NARROW = 12  # hours that a phone is shown, without scrolling
TOP, FLOOR, HEIGHT = 16.75, 118.0, 101.25
MOST_MARKS = 6


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened at one moment: a lost worker, a new release."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Rectangles, lines and texts in the drawing's units; `said` is the whole of it in words."""

    lines: Sequence[Mapping[str, Any]]
    bars: Sequence[Mapping[str, Any]]
    marks: Sequence[Mapping[str, Any]]
    labels: Sequence[Mapping[str, Any]]
    said: str
    peak: Hour | None
    failed: int
    ended: int
    width: int
    right: int


def chart(hours: Sequence[Hour], marks: Sequence[Mark]) -> Chart:
    """Of these hours, with the marks among them."""
    right = round(LEFT + len(hours) * STEP)
    marks = [mark for mark in marks if mark.at >= hours[0].at]
    top = scale(max((hour.total for hour in hours), default=0))
    lines = [
        {"value": top * n // 3, "y": f"{FLOOR - HEIGHT * n / 3:.2f}", "text_y": f"{FLOOR - HEIGHT * n / 3 + 3:.2f}"}
        for n in range(4)
    ]
    bars = [bar(n, hour, top) for n, hour in enumerate(hours)]
    labels = [
        {"x": f"{LEFT + n * STEP + BAR / 2:.1f}", "text": f"{hour.at:%H}"}
        for n, hour in enumerate(hours)
        if hour.at.hour % 3 == 0
    ]
    peak = max(hours, key=lambda hour: hour.total, default=None)
    failed, ended = sum(hour.failed for hour in hours), sum(hour.total for hour in hours)
    said = f"Runs per hour over the last {len(hours)} hours: {ended} finished, {failed} failed."
    if peak is not None and peak.total:
        said += f" Peak {peak.total} at {peak.at:%H:%M}."
    said += "".join(f" {mark.text} at {mark.at:%H:%M}." for mark in marks)
    return Chart(
        lines, bars, [drawn(mark, n, hours, right) for n, mark in enumerate(marks)], labels, said, peak, failed, ended,
        right + 4, right,
    )  # fmt: skip


def scale(most: int) -> int:
    """The top of the axis: three equal steps of a round number."""
    step = max(ceil(most / 3), 1)
    round_to = int(10 ** max(len(str(step)) - 2, 0)) * (5 if step >= 10 else 1)
    return 3 * ceil(step / round_to) * round_to


def bar(n: int, hour: Hour, top: int) -> dict[str, Any]:
    x = LEFT + n * STEP
    alone, person = HEIGHT * hour.alone / top, HEIGHT * hour.person / top
    return {
        "hour": hour,
        "x": f"{x:.1f}",
        "alone": {"y": f"{FLOOR - alone:.1f}", "height": f"{alone:.1f}"} if hour.alone else None,
        "person": {"y": f"{FLOOR - alone - person - 1:.1f}", "height": f"{person:.1f}"} if hour.person else None,
        "failed": f"M{x + BAR / 2:.1f} 122l4 7h-8z" if hour.failed else "",
    }


def drawn(mark: Mark, n: int, hours: Sequence[Hour], right: int) -> dict[str, Any]:
    passed = (mark.at - hours[0].at).total_seconds() / 3600
    x = LEFT + passed * STEP
    late = x > right - 110  # the text stands on the side where there is room
    return {"x": f"{x:.1f}", "text_x": f"{x - 3.5 if late else x + 3.5:.1f}", "anchor": "end" if late else "start",
            "text": mark.text, "text_y": 13 if n % 2 == 0 else 24}  # fmt: skip


RELEASES = """
SELECT agent, version, created_at FROM runs_release
 WHERE created_at > %(since)s AND (%(agents)s::text[] IS NULL OR agent = ANY (%(agents)s))
 ORDER BY created_at DESC LIMIT %(most)s
"""


def marks_of(lost: Sequence[Loss], agents: Scope, first: datetime, zone: tzinfo) -> list[Mark]:
    """Of the same hours, the newest few; what came within half an hour of one another is one mark."""
    new = rows(RELEASES, since=first, agents=agents, most=MOST_MARKS)
    found = [Mark(loss.at, f"lost {loss.name}") for loss in lost if loss.at >= first]
    found += [Mark(at, f"new {agent} {version}") for agent, version, at in new]
    groups: list[list[Mark]] = []
    for mark in sorted(found, key=lambda mark: mark.at, reverse=True):
        if groups and groups[-1][0].at - mark.at < timedelta(minutes=30):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return [one_of(group, zone) for group in reversed(groups[:MOST_MARKS])]


def one_of(group: Sequence[Mark], zone: tzinfo) -> Mark:
    others = f" and {len(group) - 1} more" if len(group) > 1 else ""
    return Mark(group[-1].at.astimezone(zone), f"{group[-1].text[:18]}{others}")
