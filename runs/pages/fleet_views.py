"""Pages of what runs run on: workers, agents, and the gates that stop them."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import GATE, VIEW, agents_of
from runs.pages.agent_page import agent_page, agent_rows, gates_over, is_settling
from runs.pages.workers_page import workers_page
from runs.signed_in import signed_in


@require_GET
@signed_in(VIEW)
def workers(request: HttpRequest) -> HttpResponseBase:
    within = agents_of(request.user)
    page = workers_page(None if within is None else sorted(within), request.GET.get("pool", ""))
    context = {"section": "workers", "page": page, "may_gate": within is None and request.user.has_perm(GATE)}
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
