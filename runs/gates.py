"""Gates: what people stop, in which scope. A worker hears of them at each claim and each heartbeat."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from runs.access import OutsideScope, Person, agents_of
from runs.audit import record
from runs.errors import GateExists, GateNotFound, GateScopeUnknown, ReasonMissing
from runs.models import Gate, Release, WorkerSession
from runs.secrets import struck_text
from runs.texts import plain_text, said_text

SCOPE = re.compile(r"all|agent:[^@,:\s]+|release:[^@,:\s]+@[^@,:\s]+|(worker|region|tool):[^\s\x00]+")
LONGEST_SCOPE = 200
UNSEEN = 1.0  # seconds: a gate is not seen before its commit, which comes after its time


def place_gate(*, scope: str, reason: str, actor: str, audited: bool = True) -> Gate:
    """Nothing in the scope is sent any more once its workers have heard of it; what is under way ends.

    `audited`: False where the caller keeps its own record of the act that this is a part of.
    Raises GateScopeUnknown, ReasonMissing, GateExists.
    """
    check_scope(scope)
    try:
        with transaction.atomic():
            gate = Gate.objects.create(scope=scope, reason=given_reason(reason), actor=actor)
            if audited:
                record(actor, "gate.place", agent=agent_of(scope), subject=scope, reason=gate.reason, gate=gate.pk)
            return gate
    except IntegrityError:
        there = Gate.objects.filter(scope=scope, lifted_at=None).first()
        if there is None:
            raise
        raise GateExists(scope, there.pk, there.actor, there.reason, there.created_at) from None


def lift_gate(
    *, gate_id: int | None = None, scope: str | None = None, reason: str, actor: str, audited: bool = True
) -> Gate:
    """What it stopped goes on, by the sweep. Named by its id or its scope. Raises ReasonMissing, GateNotFound."""
    said = given_reason(reason)
    named = Q(id=gate_id) if gate_id is not None else Q(scope=scope)
    with transaction.atomic():
        gate = Gate.objects.select_for_update().filter(named, lifted_at=None).first()
        if gate is None:
            raise GateNotFound(f"({gate_id if gate_id is not None else scope})")
        Gate.objects.filter(id=gate.pk).update(lifted_at=Now(), lifted_by=actor, lift_reason=said)
        if audited:
            record(actor, "gate.lift", agent=agent_of(gate.scope), subject=gate.scope, reason=said, gate=gate.pk)
        gate.refresh_from_db()
    return gate


def check_scope(scope: str) -> None:
    """Raises GateScopeUnknown."""
    if len(scope) > LONGEST_SCOPE or not SCOPE.fullmatch(scope) or plain_text(scope) != scope:
        raise GateScopeUnknown(f"Not {plain_text(scope)[:LONGEST_SCOPE]!r}.")


def unknown_in(scope: str) -> str:
    """That the scope names nothing that was ever here, in a sentence; empty if it does. A gate may come first."""
    kind, _, what = scope.partition(":")
    agent, _, version = what.partition("@")
    found: QuerySet[Any]
    match kind:
        case "worker":
            child = Q(pool="prefork", name__regex=rf"^{re.escape(what)}-[0-9]+$")
            found, none = WorkerSession.objects.filter(Q(name=what) | child), f"No worker is called {what}"
        case "region":
            found, none = WorkerSession.objects.filter(region=what), f"No worker is in region {what}"
        case "agent":
            found, none = Release.objects.filter(agent=what), f"No agent is called {what}"
        case "release":
            found, none = Release.objects.filter(agent=agent, version=version), f"There is no release {what}"
        case "tool":
            found = Release.objects.filter(content__tools__contains=[{"name": what}])
            none = f"No agent has a tool {what}"
        case _:
            return ""
    return "" if found.exists() else f"{none}: nothing is stopped so far."


def gates_seen(user: Person | None, *, lifted: bool | None = False) -> QuerySet[Gate]:
    """The open gates that may stop runs within the user's scope, the newest first; or the lifted ones; None: all."""
    rows = Gate.objects.order_by("-id")
    rows = rows if lifted is None else rows.filter(lifted_at__isnull=not lifted)
    agents = agents_of(user)
    if agents is None:
        return rows
    stops = Q(scope="all") | Q(scope__startswith="worker:") | Q(scope__startswith="region:")
    stops |= Q(scope__in=[f"agent:{agent}" for agent in agents])
    stops |= Q(scope__in=[f"tool:{name}" for name in tools_of(Release.objects.filter(agent__in=agents))])
    for agent in agents:
        stops |= Q(scope__startswith=f"release:{agent}@")
    return rows.filter(stops)


def check_reach(user: Person | None, scope: str) -> None:
    """Raises OutsideScope where a gate would stop, or let go, runs of agents that the user does not see."""
    agents = agents_of(user)
    if agents is None:
        return
    kind, _, what = scope.partition(":")
    if kind == "tool":
        reached = what not in tools_of(Release.objects.exclude(agent__in=agents))
    else:
        reached = agent_of(scope) in agents
    if not reached:
        raise OutsideScope


def tools_of(releases: QuerySet[Release]) -> set[str]:
    contents = releases.values_list("content__tools", flat=True)
    return {tool["name"] for tools in contents for tool in tools or ()}


def agent_of(scope: str) -> str:
    """The one agent that a gate stops, empty where it may stop several."""
    kind, _, what = scope.partition(":")
    return what.partition("@")[0] if kind in ("agent", "release") else ""


def sessions_behind(gate: Gate) -> list[str]:
    """Names of the live workers that may not have heard of the gate yet; without one it is in force everywhere."""
    live = WorkerSession.objects.filter(ended_at__isnull=True, expires_at__gt=Now())
    heard = gate.created_at + timedelta(seconds=UNSEEN)
    return list(live.filter(heartbeat_at__lte=heard).order_by("name").values_list("name", flat=True))


def given_reason(reason: str) -> str:
    """As it is kept. Raises ReasonMissing."""
    said = struck_text(plain_text(said_text(reason)))
    if not said:
        raise ReasonMissing
    return said
