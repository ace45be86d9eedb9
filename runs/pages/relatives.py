"""The family of a run's forks, read from the rows: where each was forked, and how it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from runs.models import Run

MOST_SHOWN = 40
DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Relative:
    """`forked_at`: the last entry copied from `forked_from`; both None for the first run of the family."""

    id: UUID
    status: str
    reason: str
    version: str
    created_at: datetime
    forked_from: UUID | None
    forked_at: int | None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Relatives:
    """`all` in the order of a tree, the run itself among them; empty for a run that nobody forked."""

    of: UUID
    all: Sequence[Relative] = ()
    size: int = 0

    @property
    def more(self) -> int:
        return self.size - len(self.all)

    @property
    def forks(self) -> list[Relative]:
        """Of the run itself."""
        return [one for one in self.all if one.forked_from == self.of]

    @property
    def others(self) -> list[Relative]:
        return [one for one in self.all if one.id != self.of]

    @property
    def source(self) -> Relative | None:
        """What the run was forked from."""
        mine = next((one for one in self.all if one.id == self.of), None)
        return next((one for one in self.all if mine is not None and one.id == mine.forked_from), None)


def relatives_of(run: Run) -> Relatives:
    """The first few of the family, by age. One statement, and none for a run without relatives."""
    if run.lineage is None:
        return Relatives(run.id)
    family = Run.objects.filter(lineage=run.lineage).order_by("id")
    rows = family.values_list(
        "id", "status", "reason", "release__version", "created_at", "forked_from_id", "forked_at"
    )[: MOST_SHOWN + 1]
    found = [Relative(*row) for row in rows]
    size = len(found) if len(found) <= MOST_SHOWN else family.count()
    return Relatives(run.id, list(_as_tree(found[:MOST_SHOWN])), size)


def _as_tree(found: Sequence[Relative]) -> Iterator[Relative]:
    """Each behind what it was forked from; one whose source is not shown stands at the edge."""
    known = {one.id for one in found}
    below: dict[UUID | None, list[Relative]] = {}
    for one in found:
        below.setdefault(one.forked_from if one.forked_from in known else None, []).append(one)
    yield from _below(None, below, 0)


def _below(source: UUID | None, below: Mapping[UUID | None, Sequence[Relative]], depth: int) -> Iterator[Relative]:
    for one in below.get(source, ()):
        yield Relative(
            one.id, one.status, one.reason, one.version, one.created_at, one.forked_from, one.forked_at, depth
        )
        if depth < DEEPEST:
            yield from _below(one.id, below, depth + 1)
