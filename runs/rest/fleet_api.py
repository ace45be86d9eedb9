"""The API of what runs run on: workers, agents, and the gates that stop them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils import timezone
from ninja import Body, Path, Query, Router
from ninja.responses import Status as Answer
from pydantic import Field

from runs.access import GATE, VIEW, agents_of, seen_by
from runs.errors import GateNotFound
from runs.gates import check_reach, gates_seen, lift_gate, place_gate, unknown_in
from runs.guards import actor_of, may
from runs.models import Release, WorkerSession
from runs.rest import answers
from runs.rest.fleet import AgentList, AgentOut, GateList, GateOut, GatePlaced, WorkerList, agent_out, gates_out
from runs.rest.schemas import Given, Name, ReasonBody, Sent, problems

router = Router(tags=["fleet"])
LAST_ID = 2**63 - 1


class Paging(Given):
    cursor: UUID | None = None
    limit: int = Field(100, ge=1, le=1000)


@router.get("/workers", auth=may(VIEW), response={200: WorkerList, **problems()})
def workers(request: HttpRequest, paging: Query[Paging]) -> WorkerList:
    """Sessions that live, and those that ended within the last hour, the newest first."""
    recent = Q(ended_at__isnull=True) | Q(ended_at__gt=timezone.now() - answers.RECENTLY)
    rows = WorkerSession.objects.filter(recent).annotate(runs=Count("run")).order_by("-id")
    if paging.cursor:
        rows = rows.filter(id__lt=paging.cursor)
    found = list(rows[: paging.limit + 1])
    return WorkerList(
        items=[answers.worker(row) for row in found[: paging.limit]],
        next_cursor=following(found, paging.limit),
    )


def following(found: Sequence[Any], limit: int) -> str | None:
    """The cursor of the next page, where one row more than `limit` was found."""
    return str(found[limit - 1].id) if len(found) > limit else None


class AgentPaging(Given):
    cursor: Name | None = None
    limit: int = Field(50, ge=1, le=200)


@router.get("/agents", auth=may(VIEW), response={200: AgentList, **problems()})
def agents(request: HttpRequest, paging: Query[AgentPaging]) -> AgentList:
    """Every agent that a worker has announced, by name."""
    names = seen_by(request.user, Release.objects.order_by("agent")).values_list("agent", flat=True).distinct()
    if paging.cursor:
        names = names.filter(agent__gt=paging.cursor)
    found = list(names[: paging.limit + 1])
    more = found[paging.limit - 1] if len(found) > paging.limit else None
    return AgentList(items=[agent_out(name, request.user) for name in found[: paging.limit]], next_cursor=more)


@router.get("/agents/{name}", auth=may(VIEW), response={200: AgentOut, **problems(404)})
def agent(request: HttpRequest, name: str) -> AgentOut:
    """One agent: its releases, its tools, and what a journal costs its runs."""
    return agent_out(name, request.user)


class GateBody(Sent):
    scope: Name = Field(description="all, agent:X, release:X@V, worker:W, region:R or tool:T")
    reason: Annotated[str, Field(max_length=10_000)]


class GatePaging(Given):
    cursor: Annotated[int, Field(ge=0, le=LAST_ID)] | None = None
    limit: int = Field(100, ge=1, le=1000)


@router.get("/gates", auth=may(VIEW), response={200: GateList, **problems()})
def gates(request: HttpRequest, paging: Query[GatePaging]) -> GateList:
    """What is stopped now, the newest first, and where that is in force already."""
    rows = gates_seen(request.user)
    if paging.cursor is not None:
        rows = rows.filter(id__lt=paging.cursor)
    found = list(rows[: paging.limit + 1])
    return GateList(items=gates_out(found[: paging.limit]), next_cursor=following(found, paging.limit))


@router.post("/gates", auth=may(GATE), response={201: GatePlaced, **problems(400, 409, 413)})
def place(request: HttpRequest, given: GateBody) -> Answer[GatePlaced]:
    """Stops dispatch in a scope: nothing there is sent any more once its workers have heard of it."""
    check_reach(request.user, given.scope)
    gate = place_gate(scope=given.scope, reason=given.reason, actor=actor_of(request))
    (placed,) = gates_out([gate])
    warnings = [sentence for sentence in [unknown_in(gate.scope)] if sentence]
    return Answer(201, GatePlaced(**placed.model_dump(), warnings=warnings))


@router.delete("/gates/{gate_id}", auth=may(GATE), response={200: GateOut, **problems(400, 404, 409, 413)})
def lift(
    request: HttpRequest,
    gate_id: Annotated[int, Path(ge=1, le=LAST_ID)],
    given: Annotated[ReasonBody | None, Body()] = None,
    reason: Annotated[str, Query(max_length=10_000, description="For clients that send no body with DELETE.")] = "",
) -> GateOut:
    """Lets what waits at the gate go on."""
    if (gate := gates_seen(request.user).filter(id=gate_id).first()) is not None:
        check_reach(request.user, gate.scope)
    elif agents_of(request.user) is not None:
        raise GateNotFound(f"({gate_id})")
    return gates_out([lift_gate(gate_id=gate_id, reason=given.reason if given else reason, actor=actor_of(request))])[0]
