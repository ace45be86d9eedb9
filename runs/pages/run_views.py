"""The page of one run and its fragments: guard, query, render. The address holds what is shown."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import VIEW
from runs.pages.asked import whole
from runs.pages.controls import controls_of
from runs.pages.inspector import entry_page, payload_answer
from runs.pages.run_page import Reading, RunPage, default_seq
from runs.queries import find_run
from runs.short_ids import short_id
from runs.signed_in import signed_in


@require_GET
@signed_in(VIEW)
def run_page(request: HttpRequest, ref: str) -> HttpResponseBase:
    run = find_run(ref, request.user)
    seq, after = whole(request.GET.get("seq")), whole(request.GET.get("after"))
    page = Reading(run.id).refresh().page(run, after=after, seq=seq)
    return render(request, "runs/run.html", run_context(page, seq))


def run_context(page: RunPage, seq: int | None) -> dict[str, Any]:
    chosen = seq if seq is not None and 1 <= seq <= page.last_seq else default_seq(page)
    return {
        "section": "runs",
        "page": page,
        "run": page.run,
        "short": short_id(page.run.id),
        "controls": controls_of(page.run, page.state),
        "chosen": chosen,
        "entry": None if page.stateless else entry_page(page.run, page.state, chosen),
    }


@require_GET
@signed_in(VIEW)
def entry(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    run = find_run(ref, request.user)
    found = entry_page(run, Reading(run.id).refresh().state, seq)
    if found is None:
        raise Http404("There is no such entry.")
    return render(request, "runs/_entry.html", {"run": run, "short": short_id(run.id), "entry": found})


@require_GET
@signed_in(VIEW)
def payload(request: HttpRequest, ref: str, seq: int, sha256: str) -> HttpResponseBase:
    return payload_answer(find_run(ref, request.user), seq, sha256)
