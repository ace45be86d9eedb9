"""Drains: what is in force and how far it is, what one would touch, ordering, extending and calling off, history."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import VIEW
from runs.signed_in import signed_in


@require_GET
@signed_in(VIEW)
def drains(request: HttpRequest) -> HttpResponseBase:
    return render(request, "recovery/drains.html", {"section": "drains"})


@require_GET
@signed_in(VIEW)
def drain(request: HttpRequest, drain_id: int) -> HttpResponseBase:
    return render(request, "recovery/drains.html", {"section": "drains"})
