"""Many runs to another release: where to, what workers say of each, and then the move of those that may."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import uuid4

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from journal.patience import patient
from runs.access import BULK, REPIN, VIEW, sees
from runs.bulk import (
    JUDGE,
    JUDGED_FIRST,
    find_bulk,
    forecast,
    order_bulk,
    verb_named,
    verdicts_of,
)
from runs.errors import BulkCountChanged, BulkEmpty, BulkTooLarge, QueryInvalid, ReleaseNotFound
from runs.models import BulkAct, Release, Stage, WorkerSession
from runs.pages.forms import REASON
from runs.pages.run_filter import pointer_at
from runs.pages.runs_list import reader_of
from runs.query_language import parse, written
from runs.query_meaning import runs_meant
from runs.signed_in import signed_in
from runs.staging import find_release

GET_OR_POST = ["GET", "POST"]
NO = (BulkEmpty, BulkTooLarge, BulkCountChanged)
MOST_AGENTS = 50
PATIENCE = 5.0  # seconds


class MoveForm(forms.Form):
    reason = forms.CharField(max_length=2000, error_messages=REASON, widget=forms.Textarea)
    counted = forms.IntegerField(min_value=0, max_value=10**9)
    request_id = forms.CharField(max_length=60)


def judging(request: HttpRequest, query: str, back: str) -> HttpResponseBase:
    """Where the runs are to go; ordered, workers judge each of them, and nothing is written."""
    verb = verb_named("pin")
    if not request.user.has_perm(verb.permission):
        raise PermissionDenied(verb.permission)
    context: dict[str, Any] = {"section": "runs", "verb": verb, "query": query, "back": back, "refusal": ""}
    status = 200
    try:
        targets = targets_for(request, query)
        release = chosen(request, targets)
        told = forecast(verb, query, reader_of(request), release) if release is not None else None
        if request.method == "POST" and release is not None and told is not None:
            act = order_bulk(
                verb=JUDGE, query=query, reason=JUDGED_FIRST, actor=request.user.get_username(),
                reader=reader_of(request), release=release, request_id=request.POST.get("request_id", "")[:60] or None,
            )  # fmt: skip
            return redirect("runs:bulk", bulk_id=act.pk)
        context |= {"offered": offered(request, targets), "release": release, "told": told}
    except QueryInvalid as wrong:
        context["fault"], status = pointer_at(query, wrong), 422
    except NO as no:
        context |= {"refusal": str(no), "offered": offered(request, targets), "release": release, "told": told}
        status = 409
    context["request_id"] = uuid4().hex
    return render(request, "runs/bulk_pin.html", context, status=status)


def targets_for(request: HttpRequest, query: str) -> list[Release]:
    """What live workers serve of the agents of these runs, by agent, the newest first. Raises QueryInvalid."""
    served = WorkerSession.objects.filter(ended_at=None, draining_at=None).values_list("serves", flat=True)
    ids = {release for serves in served for release in serves}
    with patient(PATIENCE):
        runs = runs_meant(parse(query), reader_of(request)).filter(verb_named("pin").acts)
        agents = list(runs.order_by().values_list("agent", flat=True).distinct()[:MOST_AGENTS])
    releases = Release.objects.filter(id__in=ids, agent__in=agents).exclude(stage=Stage.RETIRED)
    return list(releases.defer("content", "declared").order_by("agent", "-created_at", "-id"))


def offered(request: HttpRequest, targets: list[Release]) -> list[tuple[Release, str]]:
    """Each with the address of this page under which it is chosen."""
    given = request.GET.copy()
    found = []
    for each in targets:
        given["release"] = each.id
        found.append((each, f"?{given.urlencode()}"))
    return found


def chosen(request: HttpRequest, targets: list[Release]) -> Release | None:
    """The one that is named, else what takes new runs, else the newest."""
    named = request.POST.get("release") or request.GET.get("release") or ""
    found = next((each for each in targets if named in (each.id, str(each))), None)
    if found is None and named:
        raise ReleaseNotFound("No live worker serves it.")
    current = next((each for each in targets if each.stage == Stage.CURRENT), None)
    return found or current or next(iter(targets), None)


@require_http_methods(GET_OR_POST)
@signed_in(BULK)
def move(request: HttpRequest, bulk_id: int) -> HttpResponseBase:
    """After they were judged: those that were found compatible."""
    judged = find_bulk(bulk_id, request.user, request.user.get_username())
    if not request.user.has_perm(REPIN):
        raise PermissionDenied(REPIN)
    if judged.verb != JUDGE:
        raise ReleaseNotFound("This act has judged nothing.")
    form, refusal = MoveForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        try:
            return redirect("runs:bulk", bulk_id=moving(request, judged, form).pk)
        except NO as no:
            refusal = str(no)
    told = forecast(verb_named("pin"), judged.query, reader_of(request), judged.release, judged)
    context = {"section": "runs", "act": judged, "form": form, "told": told, "refusal": refusal,
               "verdicts": verdicts_of(judged), "request_id": form["request_id"].value() or uuid4().hex}  # fmt: skip
    return render(request, "runs/bulk_move.html", context, status=status_of(request, refusal))


def status_of(request: HttpRequest, refusal: str) -> int:
    return 200 if request.method == "GET" else 409 if refusal else 422


def moving(request: HttpRequest, judged: BulkAct, form: MoveForm) -> BulkAct:
    given = form.cleaned_data
    return order_bulk(
        verb="pin", query=judged.query, reason=given["reason"], actor=request.user.get_username(),
        reader=reader_of(request), expected=given["counted"], request_id=given["request_id"],
        release=judged.release, judged=judged,
    )  # fmt: skip


@require_GET
@signed_in(VIEW)
def from_release(request: HttpRequest, named: str) -> HttpResponseBase:
    """The open runs of a release are to go to another."""
    found = find_release(named)
    if not sees(request.user, found.agent):
        raise ReleaseNotFound
    query = f"{written('release', str(found))} status:open"
    return redirect(f"{reverse('runs:bulk_order')}?verb=pin&q={quote(query)}")
