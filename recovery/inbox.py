"""What waits for a person: read from the rows of parked runs, by a partial index. No journal is read for a list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf, isfinite
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from runs.access import ANSWER, APPROVE, RECONCILE, Person, agents_of
from runs.approvals import groups_of
from runs.consent import ADMIN
from runs.errors import CursorUnknown
from runs.models import DOUBT_STANDS_SQL
from runs.queries import ids_ending_in
from runs.short_ids import short_id

MOST_RUNS = 20_000  # of those with something open; what lies behind them comes when they are settled
PAGE = 50
RECORD = 6  # its place among the columns
SOON = timedelta(minutes=10)

DOUBT, APPROVAL, QUESTION = range(3)
GROUPS = {DOUBT: "Did it happen?", APPROVAL: "Waiting for approval, nearest deadline first", QUESTION: "Questions"}
TABS: dict[str, tuple[str, tuple[int, ...]]] = {
    "all": ("All", (DOUBT, APPROVAL, QUESTION)),
    "intents": ("Intents", (DOUBT,)),
    "approvals": ("Approvals", (APPROVAL,)),
    "questions": ("Questions", (QUESTION,)),
    "mine": ("Mine", (DOUBT, APPROVAL, QUESTION)),
}

# An intent in doubt waits for a person where the run says so; elsewhere a worker still asks or sends again by itself.
LISTED = f"""
WITH listed AS (
    SELECT r.id, r.agent, r.status, i.item, r.release_id,
           CASE WHEN i.item->>'state' = 'in_doubt' THEN 0
                WHEN i.item->>'state' = 'asked' OR jsonb_typeof(i.item->'question') = 'object' THEN 2 ELSE 1
           END AS place
      FROM (SELECT id, agent, status, intents, release_id FROM runs_run
             WHERE NOT intents = '[]' AND ended_at IS NULL
               AND (%(within)s::text[] IS NULL OR agent = ANY (%(within)s)) ORDER BY id LIMIT %(most)s) AS r,
           jsonb_array_elements(r.intents) AS i (item)
     WHERE i.item->>'state' IN ('awaiting_approval', 'asked')
        OR i.item->>'state' = 'in_doubt' AND r.status IN ({DOUBT_STANDS_SQL})
), judged AS (
    SELECT listed.*,
           CASE place WHEN 0 THEN %(reconciles)s WHEN 2 THEN %(answers)s
                ELSE %(approves)s
                 AND (%(any_group)s OR coalesce(item #>> '{{policy,group}}', 'approver') = ANY (%(groups)s))
                 AND NOT (coalesce((item #>> '{{policy,four_eyes}}')::boolean, false) AND item->>'asked_by' = %(me)s)
                 AND NOT coalesce(item->'granted' @> to_jsonb(%(me)s::text), false) END AS mine,
           CASE place WHEN 0 THEN 0
                ELSE coalesce(extract(epoch FROM (item->>'deadline')::timestamptz)::float8, 'Infinity') END AS due,
           extract(epoch FROM (item->>'since')::timestamptz)::float8 AS since,
           (%(text)s = '' OR id = ANY (%(ids)s)
            OR position(lower(%(text)s) IN lower(concat_ws(' ', agent, item->>'tool', item->>'summary',
                    item->>'asked_by', item->>'key', item #>> '{{question,text}}'))) > 0) AS found
      FROM listed
)
"""
COUNTS = (
    LISTED
    + """
SELECT agent, coalesce(item->>'tool', ''), place, mine, count(*) FILTER (WHERE found) FROM judged GROUP BY 1, 2, 3, 4
"""
)
ROWS = (
    LISTED
    + """
SELECT id, agent, status, release_id, place, mine, item, due, since FROM judged
 WHERE found AND place = ANY (%(places)s) AND (NOT %(only_mine)s OR mine)
   AND (%(agent)s = '' OR agent = %(agent)s) AND (%(tool)s = '' OR item->>'tool' = %(tool)s)
   AND (%(after_place)s::int IS NULL OR (place, due, since, id, (item->>'seq')::int)
        > (%(after_place)s, %(after_due)s::float8, %(after_since)s::float8, %(after_id)s::uuid, %(after_seq)s))
 ORDER BY place, due, since, id, (item->>'seq')::int LIMIT %(limit)s
"""
)
SHOWN = (
    LISTED
    + """
SELECT id, agent, status, release_id, place, mine, item, due, since FROM judged WHERE id = ANY (%(shown)s)
"""
)


@dataclass(frozen=True, slots=True)
class Query:
    """What the list shows, as its address says it."""

    tab: str = "all"
    agent: str = ""
    tool: str = ""
    text: str = ""

    @property
    def filtered(self) -> bool:
        return bool(self.agent or self.tool or self.text)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits. `record` is the run row's: see docs/operating.md for the fields."""

    run_id: UUID
    agent: str
    status: str
    release_id: str
    place: int
    mine: bool
    record: Mapping[str, Any]
    due: float
    since_posix: float

    @property
    def seq(self) -> int:
        return int(self.record["seq"])

    @property
    def id(self) -> str:
        """Of its row in the page."""
        return f"{self.run_id.hex}-{self.seq}"

    @property
    def short(self) -> str:
        return short_id(self.run_id)

    @property
    def tool(self) -> str:
        return str(self.record.get("tool", ""))

    @property
    def kind(self) -> str:
        return "ask" if self.record.get("state") == "asked" else "call"

    @property
    def question(self) -> Mapping[str, Any] | None:
        """A question back of an approver."""
        return self.record.get("question") if self.kind == "call" else None

    @property
    def title(self) -> str:
        said = str(self.record.get("summary") or "")
        if self.question is not None:
            return f"{self.question['by']} asks: {self.question['text']}"
        if self.place == DOUBT:
            return f"Did it happen? {said or self.tool}"
        return said or ("A question" if self.kind == "ask" else f"Call {self.tool}")

    @property
    def glyph(self) -> str:
        return "reconcile" if self.place == DOUBT else "approval"

    @property
    def since(self) -> datetime:
        return datetime.fromisoformat(self.record["since"])

    @property
    def deadline(self) -> datetime | None:
        given = self.record.get("deadline")
        return datetime.fromisoformat(given) if given else None

    @property
    def expired(self) -> bool:
        return bool(self.record.get("expired"))

    @property
    def soon(self) -> bool:
        return self.deadline is not None and self.deadline - timezone.now() < SOON

    @property
    def when(self) -> str:
        """How long it has waited, or how long it may yet."""
        if self.expired:
            return "expired"
        if self.deadline is None:
            return brief((timezone.now() - self.since).total_seconds())
        left = (self.deadline - timezone.now()).total_seconds()
        return f"due {brief(left)}" if left > 0 else "due now"

    @property
    def standing(self) -> str:
        """How far it has come: grants of how many."""
        if self.place != APPROVAL:
            return ""
        quorum = (self.record.get("policy") or {}).get("quorum", 1)
        return f"{len(self.record.get('granted') or ())} of {quorum}"

    @property
    def cursor(self) -> str:
        return f"{self.place}~{self.due!r}~{self.since_posix!r}~{self.run_id}~{self.seq}"

    @property
    def told(self) -> tuple[Any, ...]:
        """What its row shows: another value means that it has to be drawn anew."""
        return self.place, self.title, self.when, self.soon, self.standing, self.mine


@dataclass(frozen=True, slots=True)
class Counts:
    """By tab, under the filters; what may be filtered by, over all."""

    tabs: Mapping[str, int] = field(default_factory=dict)
    agents: Sequence[str] = ()
    tools: Sequence[str] = ()
    doubts: int = 0
    approvals: int = 0
    questions: int = 0

    @property
    def total(self) -> int:
        return self.doubts + self.approvals + self.questions


def brief(seconds: float) -> str:
    """4 s, 12 m, 3 h, 2 d: for a list. A page says it exactly."""
    seconds = max(0.0, seconds)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def allowed(user: Person, permission: str) -> bool:
    return isinstance(user, User) and user.has_perm(permission)


def may_answer(user: Person) -> bool:
    """Whether this one may answer questions, an agent's and an approver's."""
    return allowed(user, ANSWER)


def given(query: Query, user: Person) -> dict[str, Any]:
    within = agents_of(user)
    groups = groups_of(user)
    ids = ids_ending_in(query.text) if query.text else []
    with suppress(ValueError):
        ids.append(UUID(query.text))
    return {
        "within": None if within is None else sorted(within),
        "most": MOST_RUNS,
        "me": user.get_username(),
        "approves": allowed(user, APPROVE),
        "reconciles": allowed(user, RECONCILE),
        "answers": may_answer(user),
        "groups": sorted(groups),
        "any_group": ADMIN in groups,
        "text": query.text.replace("\0", ""),
        "ids": ids,
        "agent": query.agent.replace("\0", ""),
        "tool": query.tool.replace("\0", ""),
        "places": list(TABS[query.tab][1]),
        "only_mine": query.tab == "mine",
    }


def list_items(query: Query, user: Person, after: str = "", limit: int = PAGE) -> tuple[list[Item], str | None]:
    """A page of what waits, by group, and where to go on. Raises CursorUnknown."""
    asked = given(query, user) | after_of(after) | {"limit": limit + 1}
    with connection.cursor() as cursor:
        cursor.execute(ROWS, asked)
        found = [Item(*row) for row in loaded(cursor.fetchall())]
    return found[:limit], found[limit - 1].cursor if len(found) > limit else None


def items_of(run_ids: Sequence[UUID], user: Person) -> dict[str, Item]:
    """What is open in these runs, by `Item.id`."""
    with connection.cursor() as cursor:
        cursor.execute(SHOWN, given(Query(), user) | {"shown": list(run_ids)})
        return {item.id: item for item in (Item(*row) for row in loaded(cursor.fetchall()))}


def count_items(query: Query, user: Person) -> Counts:
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, given(query, user))
        rows = cursor.fetchall()
    agents = sorted({row[0] for row in rows})
    tools = sorted({row[1] for row in rows} - {""})
    shown = [
        (place, mine, count)
        for agent, tool, place, mine, count in rows
        if query.agent in ("", agent) and query.tool in ("", tool)
    ]
    tabs = {
        tab: sum(n for place, mine, n in shown if place in places and (tab != "mine" or mine))
        for tab, (_, places) in TABS.items()
    }
    of_all = {place: sum(row[4] for row in rows if row[2] == place) for place in GROUPS}
    return Counts(tabs, agents, tools, of_all[DOUBT], of_all[APPROVAL], of_all[QUESTION])


def loaded(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Django hands JSON out as text."""
    return [[json.loads(cell) if n == RECORD else cell for n, cell in enumerate(row)] for row in rows]


def after_of(cursor: str) -> dict[str, Any]:
    names = ("after_place", "after_due", "after_since", "after_id", "after_seq")
    if not cursor:
        return dict.fromkeys(names)
    try:
        place, due, since, run_id, seq = cursor.split("~")
        parts = (int(place), float(due), float(since), UUID(run_id), int(seq))
    except ValueError:
        raise CursorUnknown(cursor) from None
    if not isfinite(parts[2]) or (parts[1] not in (inf,) and not isfinite(parts[1])) or abs(parts[4]) > 2**31 - 1:
        raise CursorUnknown(cursor)
    return dict(zip(names, parts, strict=True))
