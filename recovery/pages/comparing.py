"""A fork beside its parent, or another relative: step by step."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import VIEW
from runs.queries import find_run
from runs.short_ids import short_id
from runs.signed_in import signed_in


@require_GET
@signed_in(VIEW)
def compare(request: HttpRequest, ref: str) -> HttpResponseBase:
    run = find_run(ref, request.user)
    return render(request, "recovery/compare.html", {"section": "runs", "run": run, "short": short_id(run.id)})
