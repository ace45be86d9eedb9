"""A canary beside the current release: how the runs of both fare since the canary takes its share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.fleet import FEW, Rates, rates
from runs.models import Release, Stage
from runs.pages.odds import differ
from runs.pages.release_diff import Summary, summary_of
from runs.pages.release_rows import Matrix, Row
from runs.pages.sharing import shared
from runs.releases_compared import diff

KEPT, DIFFS_KEEP = 5.0, 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many runs; `share` of 100, None of none."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        return 100 * self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of the comparison. `points`: the difference of the shares, None where one is missing. `told`: whether it is
    more than chance would explain; None where too few runs have finished to say."""

    name: str
    of: str
    current: Share
    canary: Share
    told: bool | None

    @property
    def points(self) -> float | None:
        if self.current.share is None or self.canary.share is None:
            return None
        return self.canary.share - self.current.share


@dataclass(frozen=True, slots=True)
class Canary:
    row: Row
    beside: Row
    canary: Rates
    current: Rates
    differs: Sequence[Summary]

    @property
    def since(self) -> datetime:
        return self.canary.since

    @property
    def few(self) -> bool:
        return self.canary.few or self.current.few

    @property
    def enough(self) -> int:
        return FEW

    @property
    def measures(self) -> list[Measure]:
        return [self._measure(*line) for line in LINES]

    def _measure(self, name: str, of: str, count: Callable[[Rates], int], total: Callable[[Rates], int]) -> Measure:
        mine, theirs = Share(count(self.canary), total(self.canary)), Share(count(self.current), total(self.current))
        told = None if self.few else differ(mine.count, mine.of, theirs.count, theirs.of)
        return Measure(name, of, theirs, mine, told)


LINES: Sequence[tuple[str, str, Callable[[Rates], int], Callable[[Rates], int]]] = (
    ("Failed", "of those finished", lambda one: one.failed, lambda one: one.finished),
    ("Ever in doubt", "of all", lambda one: one.in_doubt, lambda one: one.runs),
    ("Denied a call", "of all", lambda one: one.denied, lambda one: one.runs),
    ("Asked a person", "of all", lambda one: one.asked, lambda one: one.runs),
)


def canaries(found: Matrix) -> list[Canary]:
    """Of each agent that has one, since it takes the share that it takes now."""
    made = []
    for agent in found.agents:
        by_stage = {row.release.stage: row for row in agent.rows}
        canary, current = by_stage.get(Stage.CANARY), by_stage.get(Stage.CURRENT)
        if canary is not None and current is not None:
            since = canary.release.staged_at
            made.append(
                Canary(canary, current, rates_of(canary, since), rates_of(current, since), differing(current, canary))
            )
    return made


def differing(current: Row, canary: Row) -> Sequence[Summary]:
    """What is the same of both and what is not. Their contents never change; the code of their workers may."""
    ids = [current.release.id, canary.release.id]

    def ask() -> Sequence[Summary]:
        found = Release.objects.in_bulk(ids)
        before, after = (found[one] for one in ids)
        return summary_of(before, after, diff(before.contract, after.contract))

    return shared.get(("differing", *ids), DIFFS_KEEP, ask)


def rates_of(row: Row, since: datetime) -> Rates:
    return shared.get(("rates", row.release.id, since), KEPT, lambda: rates(row.release, since))
