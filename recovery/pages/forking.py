"""A fork before it starts: what is copied, what it could repeat, and the order."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from recovery.pages.targets import targets_of
from runs.access import FORK
from runs.queries import find_run
from runs.short_ids import short_id
from runs.signed_in import signed_in


@require_http_methods(["GET", "POST"])
@signed_in(FORK)
def fork(request: HttpRequest, ref: str) -> HttpResponseBase:
    run = find_run(ref, request.user)
    targets, target = targets_of(run, request.GET.get("release", ""))
    context = {"section": "runs", "run": run, "short": short_id(run.id), "targets": targets, "target": target}
    return render(request, "recovery/fork.html", context)
