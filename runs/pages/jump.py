"""Jump: to a run by what a person has of it, its id (short or whole), request key, business id or a label."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from runs.access import VIEW, Person, seen_by
from runs.models import Run
from runs.queries import UNLISTED, ids_ending_in
from runs.short_ids import short_id
from runs.signed_in import signed_in

MOST = 20
LONGEST = 300


@require_GET
@signed_in(VIEW)
def jump(request: HttpRequest) -> HttpResponseBase:
    """Straight to the run if there is one only; what a suggestion list shows is the same list, as a fragment."""
    q = request.GET.get("q", "").strip()[:LONGEST]
    runs = runs_called(q, request.user)
    if request.headers.get("HX-Request") == "true":
        return render(request, "runs/_jump_results.html", {"runs": runs[:8], "q": q})
    if len(runs) == 1:
        return redirect("runs:run", ref=short_id(runs[0].id))
    return render(request, "runs/jump.html", {"section": "runs", "runs": runs, "q": q, "most": MOST})


def runs_called(q: str, user: Person | None) -> Sequence[Run]:
    """The newest MOST runs that it names, each way by its own index. `key:value` is also a label."""
    if not q or "\0" in q:
        return []
    ids = ids_called(q)
    key, colon, value = q.partition(":")
    listed = seen_by(user, Run.objects.select_related("release").defer(*UNLISTED).order_by("-id"))
    found = {run.id: run for run in listed.filter(id__in=ids)[:MOST]}
    if colon and key.strip() and value.strip():
        labelled = listed.filter(labels__contains={key.strip(): value.strip()})
        found |= {run.id: run for run in labelled[:MOST]}
    return sorted(found.values(), key=lambda run: run.id, reverse=True)[:MOST]


# Each part by its own index: one condition with OR would read the whole table.
NAMED = """
(SELECT id FROM runs_run WHERE request_key = %(text)s ORDER BY id DESC LIMIT 1000)
UNION (SELECT id FROM runs_run WHERE business_id = %(text)s ORDER BY id DESC LIMIT 1000)
"""


def ids_called(q: str) -> set[UUID]:
    """Of runs whose id, request key or business id it is; of an effect's key (`<run>:7`) its run's."""
    head, _, step = q.rpartition(":")
    ref = head if head and step.isdigit() else q
    ids = set(ids_ending_in(ref))
    with suppress(ValueError):
        ids.add(UUID(ref))
    with connection.cursor() as cursor:
        cursor.execute(NAMED, {"text": q})
        return ids | {row[0] for row in cursor.fetchall()}
