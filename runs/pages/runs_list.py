"""The list of runs: its page, the part of it that a filter changes, and what may be written in the query field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import BULK, SAVE_VIEW, VIEW
from runs.bulk import JUDGE, VERBS, Verb
from runs.errors import QueryInvalid
from runs.listing import ORDERS, page_of
from runs.models import Run
from runs.pages.facets import facets_and_tabs
from runs.pages.rows import rows_of
from runs.pages.run_filter import Asked, asked_in, pointer_at
from runs.pages.suggestions import suggestions
from runs.pages.zones import zone_of
from runs.query_language import KEYS
from runs.query_meaning import Reader, runs_meant
from runs.signed_in import signed_in

RESULTS = "section#results"  # as htmx 4 names it in HX-Target


@require_GET
@signed_in(VIEW)
def list_page(request: HttpRequest) -> HttpResponseBase:
    """The whole page; for a filter's own request its results and tabs alone."""
    reader = reader_of(request)
    asked = asked_in(request.GET)
    context = results(request, asked, reader)
    context["facets"], context["tabs"] = facets_and_tabs(asked, request.user, reader)
    part = request.headers.get("HX-Target") == RESULTS
    status = 422 if context["fault"] and not part else 200
    answer = render(request, "runs/_results.html" if part else "runs/list.html", context, status=status)
    answer.headers["Vary"] = "HX-Request, HX-Target, Cookie"
    return answer


def reader_of(request: HttpRequest) -> Reader:
    return Reader(request.user, zone_of(request))


def results(request: HttpRequest, asked: Asked, reader: Reader) -> dict[str, Any]:
    """What is below the query field. Raises CursorUnknown."""
    runs: Sequence[Run] = ()
    cursor, fault = None, asked.fault
    try:
        if fault is None:
            runs, cursor = page_of(asked.terms, reader, asked.order, asked.after)
    except QueryInvalid as wrong:  # what only the database knows: a parent that is none
        fault = wrong
    return {
        "section": "runs",
        "asked": asked,
        "orders": [(name, word) for name, (word, _) in ORDERS.items()],
        "rows": rows_of(runs),
        "cursor": cursor,
        "fault": None if fault is None else pointer_at(asked.q, fault),
        "shown": ",".join(run.id.hex for run in runs),
        "top": top_of(asked, reader, fault),
        "keys": [(key, rule.hint) for key, rule in KEYS.items()],
        "verbs": verbs_for(request),
        "may_save": request.user.has_perm(SAVE_VIEW),
        "partial": request.headers.get("HX-Target") == RESULTS,
    }


def top_of(asked: Asked, reader: Reader, fault: QueryInvalid | None) -> UUID:
    """The newest run that matches now: whatever matches and is above it came later."""
    rows = Run.objects.none() if fault else runs_meant(asked.terms, reader)
    newest = rows.order_by("-id").values_list("id", flat=True).first()
    return newest or UUID(int=0)


def verbs_for(request: HttpRequest) -> Sequence[Verb]:
    """The bulk acts that this person may order."""
    if not request.user.has_perm(BULK):
        return ()
    return [verb for verb in VERBS.values() if verb.name != JUDGE and request.user.has_perm(verb.permission)]


@require_GET
@signed_in(VIEW)
def suggest(request: HttpRequest) -> HttpResponseBase:
    """The list under the query field, for where the caret stands."""
    text, at = request.GET.get("q", "")[:4_000], request.GET.get("at", "")
    caret = int(at) if at.isascii() and at.isdigit() and len(at) < 6 else len(text)
    found = [] if "\0" in text else suggestions(text, caret, request.user)
    return render(request, "runs/_suggestions.html", {"suggestions": found})
