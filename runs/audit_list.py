"""Reading the audit list: what was asked for, page by page, and its export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import CharField, Max, Q, QuerySet
from django.db.models.functions import Cast

from runs.access import Person, agents_of
from runs.models import AuditRecord
from runs.queries import ids_ending_in
from runs.short_ids import short_id
from runs.texts import plain_text

PER_PAGE = 50
AT_ONCE = 1000  # records that an export reads at once
MOST_SEARCHED = 200_000  # the newest: a word may be anywhere in a record
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "runs": ("Run actions", ("run.",)),
    "approvals": ("Approvals", ("intent.approve", "intent.deny", "intent.edit", "intent.ask", "intent.answer")),
    "reconciliations": ("Reconciliations", ("intent.reconcile", "intent.adopt", "intent.probe")),
    "releases": ("Releases", ("release.",)),
    "gates": ("Gates and drains", ("gate.", "drain.")),
    "bulk": ("Bulk acts", ("bulk.",)),
    "people": ("Tokens, scopes and logins", ("token.", "user.", "login", "logout")),
    "views": ("Views and exports", ("view.", "audit.")),
    "refused": ("Refused", ("refused", "login.refused")),
}
KEYS = ("who", "run", "agent", "door", "act")


@dataclass(frozen=True, slots=True)
class Asked:
    """A filter. `words`: each is looked for everywhere; `keys`: `who:ada`, `run:r-…`, `agent:X`, `door:api`."""

    q: str = ""
    group: str = ""
    since: datetime | None = None
    before: datetime | None = None

    @property
    def keys(self) -> list[tuple[str, str]]:
        pairs = [word.partition(":") for word in self.q.split()]
        return [(key, value) for key, colon, value in pairs if colon and key in KEYS]

    @property
    def words(self) -> list[str]:
        return [word for word in self.q.split() if word.partition(":")[0] not in KEYS or ":" not in word]


def records(asked: Asked, user: Person | None) -> QuerySet[AuditRecord]:
    """The newest first. Somebody with a scope is told of its agents' runs, and of what they did themselves."""
    rows = AuditRecord.objects.order_by("-id")
    agents = agents_of(user)
    if agents is not None:
        own = "" if user is None else user.get_username()
        rows = rows.filter(Q(agent__in=agents) | Q(agent="", actor=own))
    if asked.group in GROUPS:
        starts = Q()
        for start in GROUPS[asked.group][1]:
            starts |= Q(act__startswith=start)
        rows = rows.filter(starts)
    if asked.since:
        rows = rows.filter(at__gte=asked.since)
    if asked.before:
        rows = rows.filter(at__lt=asked.before)
    for key, value in asked.keys:
        rows = rows.filter(named(key, plain_text(value)))
    return saying(rows, [plain_text(word) for word in asked.words])


def named(key: str, value: str) -> Q:
    match key:
        case "who":
            return Q(actor=value)
        case "run":
            return Q(run__in=runs_called(value))
        case "act":
            return Q(act__startswith=value)
    return Q(**{key: value})


def saying(rows: QuerySet[AuditRecord], words: Sequence[str]) -> QuerySet[AuditRecord]:
    if not words:
        return rows
    newest = AuditRecord.objects.aggregate(Max("id"))["id__max"] or 0
    rows = rows.filter(id__gt=newest - MOST_SEARCHED).alias(told=Cast("detail", CharField()))
    for word in words:
        anywhere = Q(run__in=runs_called(word))
        for field in ("actor", "act", "subject", "reason", "told", "agent", "address"):
            anywhere |= Q(**{f"{field}__icontains": word})
        rows = rows.filter(anywhere)
    return rows


def runs_called(ref: str) -> list[UUID]:
    found = ids_ending_in(ref)
    with suppress(ValueError):
        found.append(UUID(ref))
    return found


def page_of(asked: Asked, user: Person | None, after: int | None) -> tuple[list[AuditRecord], int | None]:
    """`after` is the cursor of the page before: the id of its last record."""
    rows = records(asked, user)
    if after is not None:
        rows = rows.filter(id__lt=after)
    found = list(rows[: PER_PAGE + 1])
    return found[:PER_PAGE], found[PER_PAGE - 1].pk if len(found) > PER_PAGE else None


# -- export ------------------------------------------------------------------------------------------------------------

COLUMNS = ("at", "actor", "role", "act", "run", "agent", "subject", "reason", "door", "address", "detail")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def told(row: AuditRecord) -> dict[str, Any]:
    return {
        "id": row.pk, "at": row.at.isoformat().replace("+00:00", "Z"), "actor": row.actor, "role": row.role,
        "act": row.act, "run": str(row.run) if row.run else None, "agent": row.agent, "subject": row.subject,
        "reason": row.reason, "door": row.door, "address": row.address, "detail": row.detail,
    }  # fmt: skip


def as_lines(rows: Sequence[AuditRecord]) -> str:
    return "".join(f"{json.dumps(told(row), allow_nan=False)}\n" for row in rows)


def as_csv(rows: Sequence[AuditRecord]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([cell(told(row)[name]) for name in COLUMNS] for row in rows)
    return out.getvalue()


def cell(value: Any) -> str:
    """A spreadsheet would compute what begins like a formula: it gets an apostrophe in front."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return f"'{text}" if text.startswith(FORMULAS) else text


def batches(asked: Asked, user: Person | None) -> Iterator[list[AuditRecord]]:
    """All that was asked for and was there at the first look, the newest first."""
    after: int | None = None
    while True:
        rows = records(asked, user)
        found = list(rows[:AT_ONCE] if after is None else rows.filter(id__lt=after)[:AT_ONCE])
        if not found:
            return
        after = found[-1].pk
        yield found


def link_of(row: AuditRecord) -> str:
    """Where what it tells of is shown; empty where there is no such place."""
    if row.run is None:
        return ""
    seq = row.detail.get("seq") if isinstance(row.detail, dict) else None
    return f"/runs/{short_id(row.run)}" + (f"?seq={seq}" if isinstance(seq, int) else "")
