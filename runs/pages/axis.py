"""Where entries and what they took stand on the line: by time with long waits folded, by time, or by seq. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil, log

FOLD_SECONDS = 30.0  # a longer wait is folded into a narrow band
FOLD_PERCENT = 7.0
MOST_FOLDED = 50.0  # percent of the line, all folds together
TICKS = (0, 30, 50, 70, 100)
NEAR, APART, FAR_APART = 10.0, 19.0, 40.0  # percent; milliseconds need more room
AT_AN_END = 27.0  # from the first label, which begins at its place, or to the last, which ends there
GROWS = 1.3  # a run that goes on is drawn with room to the right, so that an entry more moves no bar before it
LEAST = 5.0  # seconds that its line has room for at least


@dataclass(frozen=True, slots=True)
class Bar:
    """Places in percent of the lane; `look` is the pattern, as run.css draws it (pt is a moment)."""

    look: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Axis:
    """Time to percent. `folds` are the bands (x, width) of waits that were folded; `ticks` are (x, label)."""

    cuts: list[tuple[float, float]]  # (seconds since the first entry, percent), ascending
    start: datetime
    folds: list[tuple[float, float]]
    ticks: list[tuple[float, str]]
    zone: str = "UTC"

    def place(self, at: datetime) -> float:
        seconds = (at - self.start).total_seconds()
        i = min(max(bisect_right([t for t, _ in self.cuts], seconds), 1), len(self.cuts) - 1)
        (t0, x0), (t1, x1) = self.cuts[i - 1], self.cuts[i]
        part = (seconds - t0) / (t1 - t0) if t1 > t0 else 0.0
        return round(x0 + min(max(part, 0.0), 1.0) * (x1 - x0), 3)

    def bar(self, look: str, began: datetime, ended: datetime, seq: int | None = None) -> Bar:
        """`seq`: of the entry that ends it; None where it goes on to now."""
        x = self.place(began)
        return Bar(look, x, round(self.place(ended) - x, 3))


@dataclass(frozen=True, slots=True)
class SeqAxis:
    """Every entry as wide as any other. What took time goes from the entry that it began at to its own."""

    first: int
    times: list[datetime]
    ticks: list[tuple[float, str]]
    room: int
    folds: tuple[tuple[float, float], ...] = ()
    zone: str = "seq"

    def place(self, seq: int) -> float:
        return round(100 * (seq - self.first + 0.5) / self.room, 3)

    def bar(self, look: str, began: datetime, ended: datetime, seq: int | None = None) -> Bar:
        end = 100.0 if seq is None else self.place(seq)
        x = self.place(self.first + max(bisect_right(self.times, began) - 1, 0))
        return Bar(look, min(x, end), round(max(end - x, 0.0), 3))


type AnyAxis = Axis | SeqAxis


def axis_over(times: Sequence[datetime], now: datetime, *, folded: bool = True, grows: bool = False) -> Axis:
    """`times` ascending. `grows`: the run goes on."""
    start = times[0] if times else now
    points = sorted({(at - start).total_seconds() for at in times} | {0.0})
    spans = list(pairwise(points))
    waits = [span for span in spans if folded and span[1] - span[0] > FOLD_SECONDS]
    fold = min(FOLD_PERCENT, MOST_FOLDED / len(waits)) if waits else 0.0
    busy = sum(b - a for a, b in spans) - sum(b - a for a, b in waits)
    rest, room = 100 - fold * len(waits), max(roomy(busy), LEAST) if grows else busy
    cuts, folds, x = [(0.0, 0.0)], [], 0.0
    for a, b in spans:
        width = fold if folded and b - a > FOLD_SECONDS else rest * (b - a) / room
        if folded and b - a > FOLD_SECONDS:
            folds.append((round(x, 3), round(width, 3)))
        x += width
        cuts.append((b, x))
    cuts.append((points[-1] + 1e-6, max(x, 0.0)))
    return Axis(cuts, start, folds, time_ticks(cuts, folds, start))


def seq_axis(first: int, times: Sequence[datetime], *, grows: bool = False) -> SeqAxis:
    room = max(len(times), 1)
    room = ceil(roomy(room)) if grows else room
    every = max(ceil(room / 10 / 5) * 5, 1) if room > 12 else 1
    marks = [n for n in range(first, first + len(times)) if n == first or n % every == 0]
    ticks = [(round(100 * (n - first + 0.5) / room, 3), str(n)) for n in marks]
    return SeqAxis(first, list(times), ticks, room)


def roomy(size: float) -> float:
    """The next of a few lengths, so that growing changes it seldom."""
    return float(GROWS ** ceil(log(size, GROWS) + 0.2)) if size > 0 else size


def time_ticks(
    cuts: Sequence[tuple[float, float]], folds: Sequence[tuple[float, float]], start: datetime
) -> list[tuple[float, str]]:
    """Times at a few places of the lane, none inside a fold; milliseconds where seconds would repeat."""
    found: list[tuple[float, datetime]] = []
    for x in (out_of(x, folds) for x in TICKS):
        if x is None or x > cuts[-1][1] + 0.01:
            continue
        if x > 95 and len(found) > 1 and x - found[-1][0] < AT_AN_END:
            found.pop()
        if found and x - found[-1][0] < (AT_AN_END if len(found) == 1 else APART):
            continue
        i = min(max(bisect_right([place for _, place in cuts], x), 1), len(cuts) - 1)
        (t0, x0), (t1, x1) = cuts[i - 1], cuts[i]
        seconds = t0 + (t1 - t0) * ((x - x0) / (x1 - x0) if x1 > x0 else 0.0)
        found.append((round(x, 3), start.astimezone(UTC) + timedelta(seconds=seconds)))
    if len({f"{at:%H:%M:%S}" for _, at in found}) == len(found):
        return [(x, f"{at:%H:%M:%S}") for x, at in found]
    few = [(x, at) for n, (x, at) in enumerate(found) if n == 0 or x - found[0][0] >= FAR_APART]
    return [(x, f"{at:%H:%M:%S}.{at.microsecond // 1000:03}") for x, at in few[:2]]


def out_of(x: float, folds: Sequence[tuple[float, float]]) -> float | None:
    """The place itself, or the near edge of the fold that it lies in; None where that is far or another fold's."""
    inside = next(((left, left + width) for left, width in folds if left <= x < left + width), None)
    if inside is None:
        return float(x)
    nearest = min(inside, key=lambda edge: abs(edge - x))
    other = any(left < nearest < left + width for left, width in folds)
    return None if other or abs(nearest - x) > NEAR else nearest
