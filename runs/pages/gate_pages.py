"""Gates: what is stopped now and by whom, placing one, lifting one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from runs.access import GATE, VIEW, sees
from runs.errors import GateExists, GateNotFound, GateScopeUnknown
from runs.gates import check_reach, gates_seen, lift_gate, place_gate
from runs.models import Gate, Release
from runs.pages.agent_page import gates_over, is_settling
from runs.pages.dialogs import dialog_or_page, done
from runs.pages.forms import GateForm, ReasonForm
from runs.pages.way_back import way_back
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
MOST_LIFTED = 20
STOPS = {
    "all": "No run goes on, whatever its agent.",
    "agent": "No run of this agent goes on.",
    "release": "No run of this release goes on.",
    "worker": "This worker takes up nothing more.",
    "region": "No worker of this region takes up anything more.",
    "tool": "No call of this tool is sent, whatever agent makes it. Other calls of the same runs go on.",
}


@require_GET
@signed_in(VIEW)
def gates(request: HttpRequest) -> HttpResponseBase:
    """Every open gate and the last that were lifted; for htmx the panel alone, while a gate takes force."""
    name = agent_named(request)
    found = gates_over(name, request.user)
    context: dict[str, Any] = {"gates": found, "settling": is_settling(found), "name": name, "section": "workers"}
    if request.headers.get("HX-Request") == "true":
        return render(request, "runs/_gates.html", context)
    context["lifted"] = gates_seen(request.user, lifted=True).order_by("-lifted_at")[:MOST_LIFTED]
    return render(request, "runs/gates.html", context)


@require_http_methods(GET_OR_POST)
@signed_in(GATE)
def place(request: HttpRequest) -> HttpResponseBase:
    form = GateForm(request.POST if request.method == "POST" else None, initial=request.GET.dict())
    status = 200 if request.method == "GET" else 422
    context: dict[str, Any] = {"section": "workers", "form": form, "back": back(request)}
    if request.method == "POST" and form.is_valid():
        actor, scope = request.user.get_username(), form.cleaned_data["scope"]
        check_reach(request.user, scope)
        try:
            place_gate(actor=actor, **form.cleaned_data)
            return done(request, back(request), f"Gate {scope} is placed, with your name.")
        except GateScopeUnknown as wrong:
            form.add_error("scope", str(wrong))
        except GateExists as first:
            there = Gate.objects.get(id=first.gate_id)
            if (there.actor, there.reason) == (actor, form.cleaned_data["reason"].strip()):  # a second click
                return done(request, back(request), f"Gate {scope} is placed, with your name.")
            context["first"], status = first, 409
    kind, _, what = str(form["scope"].value() or "").partition(":")
    context |= {"stops": STOPS.get(kind, ""), "tool": what if kind == "tool" else ""}
    return dialog_or_page(request, "runs/place_gate.html", context, status)


@require_http_methods(GET_OR_POST)
@signed_in(GATE)
def lift(request: HttpRequest, gate_id: int) -> HttpResponseBase:
    gate = gates_seen(request.user, lifted=None).filter(id=gate_id).first()
    if gate is None:
        raise GateNotFound(f"({gate_id})")
    check_reach(request.user, gate.scope)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    actor, status = request.user.get_username(), 200 if request.method == "GET" else 422
    if request.method == "POST" and form.is_valid():
        try:
            lift_gate(gate_id=gate_id, actor=actor, **form.cleaned_data)
        except GateNotFound:
            gate.refresh_from_db()
            status = 409
        if status != 409 or gate.lifted_by == actor:
            return done(request, back(request), f"Gate {gate.scope} is lifted. What it held goes on by itself.")
    context = {"section": "workers", "gate": gate, "form": form, "back": back(request), "late": status == 409}
    return dialog_or_page(request, "runs/lift_gate.html", context, status)


def agent_named(request: HttpRequest) -> str:
    """The agent on whose page the person was."""
    name = request.GET.get("agent", "")
    return name if "\0" not in name and sees(request.user, name) and Release.objects.filter(agent=name).exists() else ""


def back(request: HttpRequest) -> str:
    name = agent_named(request)
    return way_back(request, reverse("runs:agent", args=[name]) if name else reverse("runs:gates"))
