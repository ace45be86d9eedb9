"""The tree that a run stands in, read from the rows: its ancestors, and the runs below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from runs.models import ENDED
from runs.pages.timeline import Kin
from runs.queries import standing_below

MOST_SHOWN = 40
DEEPEST = 64

ANCESTORS = """
WITH RECURSIVE line AS (
    SELECT id, parent_id, parent_step, agent, status, reason, 0 AS depth FROM runs_run WHERE id = %(run)s
    UNION ALL
    SELECT r.id, r.parent_id, r.parent_step, r.agent, r.status, r.reason, line.depth + 1
      FROM runs_run r JOIN line ON r.id = line.parent_id WHERE line.depth < %(deepest)s
)
SELECT id, agent, status, reason, depth, parent_step FROM line WHERE depth > 0 ORDER BY depth DESC
"""
BELOW = """
WITH RECURSIVE tree AS (
    SELECT id, agent, status, reason, parent_step, 1 AS depth, ARRAY[parent_step] AS path
      FROM runs_run WHERE parent_id = %(run)s
    UNION ALL
    SELECT r.id, r.agent, r.status, r.reason, r.parent_step, tree.depth + 1, tree.path || r.parent_step
      FROM runs_run r JOIN tree ON r.parent_id = tree.id WHERE tree.depth < %(deepest)s
)
"""
COUNTS = BELOW + "SELECT depth, status, count(*) FROM tree GROUP BY depth, status ORDER BY depth, status"
SHOWN = BELOW + "SELECT id, agent, status, reason, depth, parent_step FROM tree ORDER BY path LIMIT %(most)s"
CHILDREN = "SELECT id, agent, status, reason, 1, parent_step FROM runs_run WHERE id = ANY (%(ids)s)"
OPEN_BELOW = BELOW + "SELECT count(*) FROM tree WHERE NOT status = ANY (%(ended)s)"


@dataclass(frozen=True, slots=True)
class Family:
    """`ancestors` from the root down; `below` in the order of their steps, the first few; counts over all of them."""

    ancestors: Sequence[Kin] = ()
    below: Sequence[Kin] = ()
    by_status: Mapping[str, int] = field(default_factory=dict)
    by_depth: Sequence[int] = ()
    standing: Sequence[str] = ()  # what of it does not go on by itself

    @property
    def parent(self) -> Kin | None:
        return self.ancestors[-1] if self.ancestors else None

    @property
    def size(self) -> int:
        return sum(self.by_depth)

    @property
    def more(self) -> int:
        return self.size - len(self.below)

    @property
    def deeper(self) -> int:
        """Runs below the children."""
        return sum(self.by_depth[1:])


def family_of(run_id: UUID, *, has_parent: bool, has_children: bool) -> Family:
    """What the caller knows not to be there is not asked for."""
    given = {"run": run_id, "deepest": DEEPEST, "most": MOST_SHOWN}
    ancestors = _kin(ANCESTORS, given) if has_parent else ()
    if not has_children:
        return Family(ancestors)
    by_status: dict[str, int] = {}
    by_depth: dict[int, int] = {}
    for depth, status, count in _rows(COUNTS, given):
        by_status[status] = by_status.get(status, 0) + count
        by_depth[depth] = by_depth.get(depth, 0) + count
    standing = list(standing_below(run_id).values())
    return Family(ancestors, _kin(SHOWN, given), by_status, list(by_depth.values()), standing)


def children_named(ids: Sequence[UUID]) -> dict[UUID, Kin]:
    return {kin.id: kin for kin in _kin(CHILDREN, {"ids": list(ids)})} if ids else {}


def open_below(run_id: UUID) -> int:
    """How many runs a cancel of this one would reach beside itself."""
    found = _rows(OPEN_BELOW, {"run": run_id, "deepest": DEEPEST, "ended": list(ENDED)})
    return int(found[0][0])


def _kin(sql: str, given: Mapping[str, Any]) -> list[Kin]:
    return [Kin(*row) for row in _rows(sql, given)]


def _rows(sql: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
