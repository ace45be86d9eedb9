"""Pages of what runs run on: workers, agents, and the gates that stop them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Count
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from runs.access import VIEW
from runs.models import WorkerSession
from runs.pages.agent_page import agent_page, agent_rows, gates_over, is_settling
from runs.signed_in import signed_in


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
