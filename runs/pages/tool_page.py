"""A tool of an agent: its contract in words, what its calls do just now, and the gate that holds all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs.access import VIEW, Person, seen_by
from runs.errors import ToolNotFound
from runs.gates import gates_seen
from runs.models import Gate, Permit, Release
from runs.pages.agent_page import Parameter, parameters_of, permits_for, permits_of
from runs.policies import ANY_ONE, Policy
from runs.queries import IntentView, list_intents
from runs.rest.fleet import GateOut, agent_out, gates_out
from runs.signed_in import signed_in

MOST_READ = 500  # runs with unsettled intents
MOST_GATES = 5  # earlier ones


@dataclass(frozen=True, slots=True)
class Now:
    """Unsettled calls of the tool, of the runs that the person may see. `capped`: there may be more than were read."""

    in_flight: int
    in_doubt: int
    awaiting: int
    to_send: int
    capped: bool


@dataclass(frozen=True, slots=True)
class ToolPage:
    """`granted` and `waiting`: permits of its limit, None and 0 without one; of all agents, as the limit is."""

    agent: str
    version: str
    contract: Mapping[str, Any]
    now: Now
    granted: int | None
    waiting: int
    line_since: datetime | None
    others: Sequence[str]
    gate: GateOut | None
    wider: Sequence[GateOut]
    earlier: Sequence[Gate]

    @property
    def scope(self) -> str:
        return f"tool:{self.contract['name']}"

    @property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.contract.get("parameters"))

    @property
    def policy(self) -> Policy | None:
        """Who approves each call, if each is to be approved: with a rule, those that it says."""
        said = self.contract.get("approval")
        return Policy.of(said) if isinstance(said, Mapping) else ANY_ONE if said else None

    @property
    def settling(self) -> bool:
        return self.gate is not None and bool(self.gate.not_yet_at)


@require_GET
@signed_in(VIEW)
def tool(request: HttpRequest, name: str, tool: str) -> HttpResponseBase:
    page = tool_page(name, tool, request.user)
    return render(request, "runs/tool.html", {"section": "workers", "page": page, "name": name, "t": page.contract})


def tool_page(name: str, tool: str, user: Person) -> ToolPage:
    """Of the agent's current release. Raises AgentNotFound, ToolNotFound."""
    agent = agent_out(name, user)
    contract = next((one for one in agent.tools if one["name"] == tool), None)
    if contract is None:
        raise ToolNotFound(f"({tool[:60]})")
    scope = f"tool:{tool}"
    gates = gates_out(list(gates_seen(user)))
    releases = [*(f"release:{name}@{release.version}" for release in agent.releases), f"agent:{name}", "all"]
    granted, waiting = permits_for(contract, permits_of([scope]).get(scope))
    line = Permit.objects.filter(scope=scope, granted_at__isnull=True).order_by("asked_at").first()
    return ToolPage(
        agent=name,
        version=agent.version,
        contract=contract,
        now=counted(tool, user),
        granted=granted,
        waiting=waiting,
        line_since=line.asked_at if line is not None else None,
        others=others_with(tool, name, user),
        gate=next((gate for gate in gates if gate.scope == scope), None),
        wider=[gate for gate in gates if gate.scope in releases],
        earlier=list(Gate.objects.filter(scope=scope, lifted_at__isnull=False).order_by("-lifted_at")[:MOST_GATES]),
    )


def counted(tool: str, user: Person) -> Now:
    found, more = list_intents(limit=MOST_READ, user=user)
    places = Counter(place_of(view) for view in found if view.tool == tool)
    return Now(
        places["in_flight"], places["in_doubt"], places["awaiting_approval"], places["pending"], more is not None
    )


def place_of(view: IntentView) -> str:
    """A call is in flight while the worker that sent it lives and has not lost it."""
    attempts = view.slot.attempts
    if view.state == "in_doubt" and view.worker and attempts and attempts[-1].unknown_at is None:
        return "in_flight"
    return view.state


def others_with(tool: str, agent: str, user: Person) -> list[str]:
    """Other agents that call a tool of this name: a gate of the tool stops theirs too."""
    rows = seen_by(user, Release.objects.filter(content__tools__contains=[{"name": tool}]).exclude(agent=agent))
    return list(rows.order_by("agent").values_list("agent", flat=True).distinct())
