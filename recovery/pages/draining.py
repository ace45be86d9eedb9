"""Drains: what is in force and how far it is, what one would touch, ordering, extending and calling off, history."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from recovery.drain_forms import DrainForm, ExtendForm, targets_for
from recovery.drains import (
    drains_seen,
    extend_drain,
    find_drain,
    in_force,
    lift_drain,
    order_drain,
    preview,
    progress,
)
from recovery.errors import DrainEnded, DrainExists, DrainLifted
from recovery.models import Drain
from recovery.pages.drain_ended import report_of, steered
from recovery.pages.drain_panels import Blast, Panel, panel_of, past_of
from runs.access import DRAIN, VIEW, agents_of
from runs.errors import GateExists, GateScopeUnknown
from runs.gates import check_reach
from runs.pages.asked import whole
from runs.pages.dialogs import asks_for_dialog, dialog_or_page, done
from runs.pages.forms import ReasonForm
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
PER_PAGE = 30


@require_GET
@signed_in(VIEW)
def drains(request: HttpRequest) -> HttpResponseBase:
    form = form_of(request, scope=request.GET.get("scope", ""))
    return render(request, "recovery/drains.html", page_context(request) | form_context(request, form))


@require_GET
@signed_in(VIEW)
def drain(request: HttpRequest, drain_id: int) -> HttpResponseBase:
    found = find_drain(drain_id, request.user)
    context: dict[str, Any] = {"section": "drains", "past": past_of(found, request.user), "drain": found}
    context["panel"] = panel_for(request, found) if found.gate.lifted_at is None else None
    context |= {"report": report_of(found, request.user), "steered": steered(found)}
    return render(request, "recovery/drain.html", context)


def page_context(request: HttpRequest) -> dict[str, Any]:
    """What is in force, and a page of history."""
    before = whole(request.GET.get("before"))
    rows = drains_seen(request.user)
    shown = list((rows if before is None else rows.filter(pk__lt=before))[: PER_PAGE + 1])
    return {
        "section": "drains",
        "panels": [panel_for(request, one) for one in in_force(request.user)],
        "history": [past_of(one, request.user) for one in shown[:PER_PAGE]],
        "older": shown[PER_PAGE - 1].pk if len(shown) > PER_PAGE else None,
        "before": before,
    }


def panel_for(request: HttpRequest, one: Drain) -> Panel:
    return panel_of(progress(one, request.user), request.user, DRAIN)


# -- a new one ---------------------------------------------------------------------------------------------------------


def form_of(request: HttpRequest, given: Any = None, *, scope: str = "") -> DrainForm:
    return DrainForm(targets_for(request.user), given, scope=scope, may_all=agents_of(request.user) is None)


def form_context(request: HttpRequest, form: DrainForm) -> dict[str, Any]:
    may = request.user.has_perm(DRAIN)
    return {"section": "drains", "form": form, "may_drain": may, "blast": blast_of(request, form) if may else None}


def blast_of(request: HttpRequest, form: DrainForm) -> Blast | None:
    """None where the form names nothing that a gate may stop."""
    if not form.scope:
        return None
    try:
        return Blast(preview(form.scope, form.seconds, request.user), form.seconds)
    except GateScopeUnknown:
        return None


@require_POST
@signed_in(DRAIN)
def preview_drain(request: HttpRequest) -> HttpResponseBase:
    """What it would touch: for htmx the part of the page, else all of it. Writes nothing."""
    context = form_context(request, form_of(request, request.POST)) | {"previewed": True}
    if request.headers.get("HX-Request") == "true":
        return render(request, "recovery/_blast.html", context | {"partial": True})
    return render(request, "recovery/drains.html", page_context(request) | context)


@require_POST
@signed_in(DRAIN)
def order(request: HttpRequest) -> HttpResponseBase:
    """Asks once, then does it."""
    form = form_of(request, request.POST)
    if not form.is_valid():
        return wrong(request, form)
    scope, actor = form.cleaned_data["scope"], request.user.get_username()
    check_reach(request.user, scope)
    context, status = form_context(request, form), 200
    if request.POST.get("sure") == "1":
        try:
            made = order_drain(actor=actor, **form.cleaned_data)
            return done(request, reverse("recovery:drains"), f"{made.scope} is being drained, with your name.")
        except GateScopeUnknown as unknown:
            form.add_error(None, str(unknown))
            return wrong(request, form)
        except (DrainExists, GateExists) as first:
            mine = Drain.objects.filter(
                scope=scope, gate__lifted_at=None, owner=actor, reason=form.cleaned_data["reason"].strip()
            )
            if mine.exists():  # a second click
                return done(request, reverse("recovery:drains"), f"{scope} is being drained, with your name.")
            context["first"], status = first, 409
    return dialog_or_page(request, "recovery/order_drain.html", context, status)


def wrong(request: HttpRequest, form: DrainForm) -> HttpResponseBase:
    """The form again with what is wrong in it; for the dialog that was asked for, where the form stands."""
    context = form_context(request, form)
    if asks_for_dialog(request):
        answer = render(request, "recovery/_drain_form.html", context, status=422)
        answer.headers["HX-Retarget"], answer.headers["HX-Reswap"] = "#start", "outerMorph"
        return answer
    return render(request, "recovery/drains.html", page_context(request) | context, status=422)


# -- one that is in force ----------------------------------------------------------------------------------------------


@require_http_methods(GET_OR_POST)
@signed_in(DRAIN)
def extend(request: HttpRequest, drain_id: int) -> HttpResponseBase:
    found = reached(request, drain_id)
    form = ExtendForm(request.POST if request.method == "POST" else None)
    over = DrainEnded(found.pk, found.phase, found.ended_at) if found.ended_at is not None else None
    if request.method == "POST" and form.is_valid():
        try:
            now = extend_drain(drain_id=drain_id, actor=request.user.get_username(), **form.cleaned_data)
            said = f"The deadline is {now.deadline_at:%H:%M:%S} UTC now."
            return done(request, reverse("recovery:drain", args=[drain_id]), said)
        except DrainEnded as ended:
            over = ended
    status = 200 if request.method == "GET" else 409 if over else 422
    return dialog_or_page(request, "recovery/extend_drain.html", dialog_context(request, found, form, over), status)


@require_http_methods(GET_OR_POST)
@signed_in(DRAIN)
def lift(request: HttpRequest, drain_id: int) -> HttpResponseBase:
    """Calls off a drain that is under way; of one that is over, lets go on what waits at its gate."""
    found, actor = reached(request, drain_id), request.user.get_username()
    form = ReasonForm(request.POST if request.method == "POST" else None)
    gate, over = found.gate, None
    if gate.lifted_at is not None:
        over = DrainLifted(found.pk, gate.lifted_by, gate.lifted_at)
    if request.method == "POST" and form.is_valid():
        try:
            lift_drain(drain_id=drain_id, actor=actor, **form.cleaned_data)
            messages.success(request, f"The gate {found.scope} is lifted. What waits there goes on by itself.")
            return done(request, reverse("recovery:drain", args=[drain_id]))
        except DrainLifted as lifted:
            over = lifted
            if lifted.actor == actor:  # a second click
                return done(request, reverse("recovery:drain", args=[drain_id]))
    status = 200 if request.method == "GET" else 409 if over else 422
    return dialog_or_page(request, "recovery/lift_drain.html", dialog_context(request, found, form, over), status)


def reached(request: HttpRequest, drain_id: int) -> Drain:
    """Raises DrainNotFound, OutsideScope."""
    found = find_drain(drain_id, request.user)
    check_reach(request.user, found.scope)
    return found


def dialog_context(request: HttpRequest, found: Drain, form: ReasonForm, over: Exception | None) -> dict[str, Any]:
    panel = panel_for(request, found)
    back = reverse("recovery:drain", args=[found.pk])
    return {"section": "drains", "drain": found, "panel": panel, "form": form, "over": over, "back": back}
