"""Workers, agents and gates as the API and the command line tell them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from pydantic import BaseModel, Field

from runs.access import Person, sees
from runs.costs import Cost, journaling_cost
from runs.errors import AgentNotFound
from runs.gates import sessions_behind
from runs.models import Gate, Release, Stage, WorkerSession
from runs.staging import main_release


class WorkerOut(BaseModel):
    id: UUID
    name: str
    host: str
    pid: int
    pool: str
    concurrency: int
    region: str
    serves: list[str]
    runs: int = Field(description="How many runs it holds.")
    started_at: datetime
    heartbeat_at: datetime
    expires_at: datetime
    draining_at: datetime | None
    ended_at: datetime | None
    end_reason: str


class WorkerList(BaseModel):
    items: list[WorkerOut]
    next_cursor: str | None


class ServedRelease(BaseModel):
    id: str
    version: str
    created_at: datetime
    stage: Stage
    workers: int = Field(description="Live workers that serve it.")


class AgentOut(BaseModel):
    """`version`, `tools` and the bounds are those of its current release; without one of its newest."""

    name: str
    version: str
    driver: str | None
    durability: str
    input: dict[str, Any] | None = Field(description="JSON schema of what a run is started with; null: anything.")
    tools: list[dict[str, Any]] = Field(description="Name, schema, effect class and policy of each.")
    budget: dict[str, Any] | None
    deadline: float | None
    limit: int | None
    unique: str | None
    releases: list[ServedRelease] = Field(description="The newest first.")
    journaling: Cost


class AgentList(BaseModel):
    items: list[AgentOut]
    next_cursor: str | None


def agent_out(name: str, user: Person | None = None) -> AgentOut:
    """Raises AgentNotFound, also for one outside of the user's scope."""
    known = list(Release.objects.filter(agent=name).order_by("-created_at", "id")) if "\0" not in name else []
    if not known or not sees(user, name):
        raise AgentNotFound(f"({name[:60]})")
    live = list(WorkerSession.objects.filter(ended_at__isnull=True).values_list("serves", flat=True))
    main = main_release(known)
    content = main.contract
    tools = content.get("tools")
    return AgentOut(
        name=name,
        version=main.version,
        driver=content.get("driver"),
        durability=content.get("durability", "journal"),
        input=content.get("input"),
        tools=tools if isinstance(tools, list) else [],
        budget=content.get("budget"),
        deadline=content.get("deadline"),
        limit=content.get("limit"),
        unique=content.get("unique"),
        releases=[
            ServedRelease(
                id=release.id,
                version=release.version,
                created_at=release.created_at,
                stage=Stage(release.stage),
                workers=sum(release.id in serves for serves in live),
            )
            for release in known
        ],
        journaling=journaling_cost(name),
    )


class GateOut(BaseModel):
    id: int
    scope: str
    reason: str
    actor: str
    created_at: datetime
    lifted_at: datetime | None
    drain: int | None = Field(description="The drain that it belongs to: lifting it calls that off.")
    in_force_at: list[str] = Field(description="Live workers that have heard of it.")
    not_yet_at: list[str] = Field(description="Live workers whose next heartbeat brings it.")


class GatePlaced(GateOut):
    warnings: list[str] = Field(description="In sentences: that its scope names nothing that is known.")


class GateList(BaseModel):
    items: list[GateOut]
    next_cursor: str | None


def gates_out(found: Sequence[Gate]) -> list[GateOut]:
    """Each with the workers at which it is in force: those whose heartbeat came after it."""
    live = WorkerSession.objects.filter(ended_at__isnull=True, expires_at__gt=timezone.now()).order_by("name")
    names = list(live.values_list("name", flat=True))
    drains = dict(Gate.objects.filter(id__in=[gate.pk for gate in found]).values_list("id", "drain"))
    return [_gate(gate, names, drains.get(gate.pk)) for gate in found]


def _gate(gate: Gate, live: Sequence[str], drain: int | None) -> GateOut:
    open_still = gate.lifted_at is None
    behind = sessions_behind(gate) if open_still else []
    return GateOut(
        id=gate.pk,
        scope=gate.scope,
        reason=gate.reason,
        actor=gate.actor,
        created_at=gate.created_at,
        lifted_at=gate.lifted_at,
        drain=drain,
        in_force_at=[name for name in live if open_still and name not in behind],
        not_yet_at=behind,
    )
