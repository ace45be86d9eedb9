"""Pages of what runs run on: workers, agents, and the gates that stop them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from runs.access import GATE, VIEW, sees
from runs.errors import GateNotFound, GateScopeUnknown
from runs.gates import check_reach, gates_seen, lift_gate, place_gate
from runs.models import Release, WorkerSession
from runs.pages.agent_page import agent_page, agent_rows, gates_over, is_settling
from runs.pages.forms import GateForm, ReasonForm
from runs.signed_in import signed_in

GET_OR_POST = ["GET", "POST"]
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
def workers(request: HttpRequest) -> HttpResponseBase:
    recent = timezone.now() - timedelta(hours=1)
    sessions = WorkerSession.objects.exclude(ended_at__lt=recent).annotate(held=Count("run"))
    context: dict[str, Any] = {"section": "workers", "now": timezone.now()}
    context["sessions"] = sessions.order_by("-ended_at", "name")
    return render(request, "runs/workers.html", context)


@require_GET
@signed_in(VIEW)
def agents(request: HttpRequest) -> HttpResponseBase:
    gates = gates_over("", request.user)
    context = {"section": "workers", "agents": agent_rows(request.user), "gates": gates, "settling": is_settling(gates)}
    return render(request, "runs/agents.html", context)


@require_GET
@signed_in(VIEW)
def agent(request: HttpRequest, name: str) -> HttpResponseBase:
    return render(
        request, "runs/agent.html", {"section": "workers", "page": agent_page(name, request.user), "name": name}
    )


@require_GET
@signed_in(VIEW)
def gates(request: HttpRequest) -> HttpResponseBase:
    """The panel alone, while a gate takes force."""
    name = agent_named(request)
    found = gates_over(name, request.user)
    context = {"gates": found, "settling": is_settling(found), "name": name}
    return render(request, "runs/_gates.html", context)


@require_http_methods(GET_OR_POST)
@signed_in(GATE)
def place(request: HttpRequest) -> HttpResponseBase:
    form = GateForm(request.POST or None, initial=request.GET.dict())
    if request.method == "POST" and form.is_valid():
        check_reach(request.user, form.cleaned_data["scope"])
        try:
            gate = place_gate(actor=request.user.get_username(), **form.cleaned_data)
        except GateScopeUnknown as wrong:
            form.add_error("scope", str(wrong))
        else:
            messages.success(request, f"Gate {gate.scope} is placed, with your name.")
            return back(request)
    context = {"section": "workers", "form": form, "agent": agent_named(request)}
    context["stops"] = STOPS.get(str(form["scope"].value() or "").partition(":")[0], "")
    return render(request, "runs/place_gate.html", context, status=422 if request.method == "POST" else 200)


@require_http_methods(GET_OR_POST)
@signed_in(GATE)
def lift(request: HttpRequest, gate_id: int) -> HttpResponseBase:
    gate = gates_seen(request.user).filter(id=gate_id).first()
    if gate is None:
        raise GateNotFound(f"({gate_id})")
    check_reach(request.user, gate.scope)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        lift_gate(gate_id=gate_id, actor=request.user.get_username(), **form.cleaned_data)
        messages.success(request, f"Gate {gate.scope} is lifted. What it held goes on by itself.")
        return back(request)
    context = {"section": "workers", "gate": gate, "form": form, "agent": agent_named(request)}
    return render(request, "runs/lift_gate.html", context, status=422 if request.method == "POST" else 200)


def agent_named(request: HttpRequest) -> str:
    """The agent on whose page the person was."""
    name = request.GET.get("agent", "")
    return name if "\0" not in name and sees(request.user, name) and Release.objects.filter(agent=name).exists() else ""


def back(request: HttpRequest) -> HttpResponseBase:
    name = agent_named(request)
    return redirect("runs:agent", name=name) if name else redirect("runs:agents")
