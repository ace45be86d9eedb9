"""The API of drains: what one would touch, ordering, following, extending and lifting it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Body, Path, Query, Router
from ninja.responses import Status as Answer
from pydantic import BaseModel, Field

from recovery.drains import (
    DEFAULT_TIMEOUT,
    Preview,
    Progress,
    drains_seen,
    extend_drain,
    find_drain,
    lift_drain,
    order_drain,
    preview,
    progress,
)
from recovery.handed_over import handed_over
from recovery.in_flight import Blocker, InFlight
from recovery.models import Drain
from recovery.nowhere import Nowhere
from runs.access import DRAIN, VIEW, Person
from runs.gates import check_reach
from runs.guards import actor_of, may
from runs.rest.fleet_api import LAST_ID, following
from runs.rest.schemas import Given, Name, Reason, Sent, problems

router = Router(tags=["drains"])
DrainId = Annotated[int, Path(ge=1, le=LAST_ID)]
SCOPE = "all, agent:X, release:X@V, worker:W, region:R or tool:T"
LIFTED = "lifted over the API"  # the reason of who gives none


# -- shapes ------------------------------------------------------------------------------------------------------------


class CallOut(BaseModel):
    """A run in flight, with the call that may keep it longest from a checkpoint."""

    run_id: UUID
    agent: str
    version: str
    worker: str
    doing: str = Field(description="A tool's name, `model M`, `between steps` or `stateless run`.")
    seq: int | None
    step: int | None
    key: str
    effect: str
    since: datetime
    age: float = Field(description="Seconds.")
    ends_in_time: bool = Field(description="Whether its timeout is over before the deadline.")


class BlockerOut(BaseModel):
    name: str
    count: int
    oldest_age: float
    ends_in_time: bool


class NowhereOut(BaseModel):
    release: str
    runs: int = Field(description="In flight.")
    queued: int
    waiting: int = Field(description="For a person, a time or a signal.")
    takes_new: bool = Field(description="Whether new runs are started under it.")


class HandedOverOut(BaseModel):
    run_id: UUID
    agent: str
    version: str
    worker: str
    doing: str
    seq: int | None
    step: int | None
    key: str
    effect: str
    since: datetime
    age: float = Field(description="Seconds, when the drain ended.")
    lost: bool = Field(description="Whether its worker was gone by then.")
    status: str = Field(description="Of the run, by now.")
    outcome: str = Field(description="Of the call, by now: open, in doubt, or how it was settled.")
    settled_at: datetime | None


class DrainOut(BaseModel):
    id: int
    scope: str
    reason: str
    owner: str
    created_at: datetime
    deadline: datetime
    phase: str = Field(description="stopping, reaching, done, handed_over or lifted")
    phase_at: datetime
    ended_at: datetime | None
    gate: int = Field(description="It stays after the end, until the drain is lifted.")
    lifted_at: datetime | None
    lifted_by: str
    until_gone: bool
    seconds: dict[str, float] = Field(description="How long each phase took.")


class DrainDetail(DrainOut):
    """With what is in flight now. `began_with` and `at_checkpoint` are null for who sees only some agents."""

    as_of: datetime
    seconds_left: float
    began_with: int | None
    at_checkpoint: int | None
    remaining: int
    oldest_age: float | None
    in_flight: list[CallOut]
    left_behind: list[CallOut] = Field(description="Of workers that were lost since it began: at no checkpoint.")
    blockers: list[BlockerOut]
    not_yet_at: list[str] = Field(description="Live workers that may not have heard of the gate.")
    parked: dict[str, int] = Field(description="Runs in the scope that no worker holds, by status. They do not block.")
    at_gate: int = Field(description="Of them, those that wait for this gate alone.")
    in_doubt: int
    lost: int = Field(description="Runs whose worker was gone before: resume has them.")
    nowhere: list[NowhereOut]
    warnings: list[str]
    handed_over: list[HandedOverOut]


class DrainList(BaseModel):
    items: list[DrainOut]
    next_cursor: str | None


class PreviewOut(BaseModel):
    scope: str
    as_of: datetime
    deadline: datetime
    in_flight: list[CallOut]
    blockers: list[BlockerOut]
    workers: list[str]
    parked: dict[str, int]
    in_doubt: int
    arrivals: float | None = Field(description="New runs a second, over the last ten minutes: they would wait.")
    longest_timeout: float | None = Field(description="Of one call in the scope, in seconds.")
    too_short: bool = Field(description="Whether the deadline is below it.")
    nowhere: list[NowhereOut]
    warnings: list[str]
    taken_by: str = Field(description="What stops the scope already; empty: nothing.")


def calls_out(found: Sequence[InFlight], now: datetime, deadline: datetime) -> list[CallOut]:
    made = []
    for one in found:
        call = one.call
        made.append(
            CallOut(
                run_id=one.run_id, agent=one.agent, version=one.version, worker=one.worker, doing=one.doing,
                seq=call.seq if call else None, step=call.step if call else None, key=call.key if call else "",
                effect=call.effect if call else "", since=one.since, age=(now - one.since).total_seconds(),
                ends_in_time=one.ends_in_time(deadline),
            )
        )  # fmt: skip
    return made


def blockers_out(found: Sequence[Blocker], now: datetime, deadline: datetime) -> list[BlockerOut]:
    return [
        BlockerOut(
            name=one.name,
            count=one.count,
            oldest_age=(now - one.since).total_seconds(),
            ends_in_time=one.ends_in_time(deadline),
        )
        for one in found
    ]


def nowhere_out(found: Sequence[Nowhere]) -> list[NowhereOut]:
    return [nowhere_of(one) for one in found]


def nowhere_of(one: Nowhere) -> NowhereOut:
    return NowhereOut(
        release=one.release, runs=one.runs, queued=one.queued, waiting=one.waiting, takes_new=one.takes_new
    )


def drain_out(drain: Drain) -> DrainOut:
    return DrainOut(
        id=drain.pk,
        scope=drain.scope,
        reason=drain.reason,
        owner=drain.owner,
        created_at=drain.created_at,
        deadline=drain.deadline_at,
        phase=drain.phase,
        phase_at=drain.phase_at,
        ended_at=drain.ended_at,
        gate=drain.gate_id,
        lifted_at=drain.gate.lifted_at,
        lifted_by=drain.gate.lifted_by,
        until_gone=drain.until_gone,
        seconds=drain.report.get("seconds", {}),
    )


def drain_detail(drain: Drain, user: Person | None = None) -> DrainDetail:
    now: Progress = progress(drain, user)
    return DrainDetail(
        **drain_out(drain).model_dump(),
        as_of=now.as_of,
        seconds_left=now.seconds_left,
        began_with=now.began_with,
        at_checkpoint=now.at_checkpoint,
        remaining=now.remaining,
        oldest_age=now.oldest_age,
        in_flight=calls_out(now.in_flight, now.as_of, drain.deadline_at),
        left_behind=calls_out(now.left_behind, now.as_of, drain.deadline_at),
        blockers=blockers_out(now.blockers, now.as_of, drain.deadline_at),
        not_yet_at=list(now.not_yet_at),
        parked=dict(now.parked),
        at_gate=now.at_gate,
        in_doubt=now.in_doubt,
        lost=now.lost,
        nowhere=nowhere_out(now.nowhere),
        warnings=now.warnings,
        handed_over=[HandedOverOut.model_validate(one, from_attributes=True) for one in handed_over(drain, user)],
    )


def preview_out(seen: Preview) -> PreviewOut:
    return PreviewOut(
        scope=seen.scope,
        as_of=seen.as_of,
        deadline=seen.deadline_at,
        in_flight=calls_out(seen.in_flight, seen.as_of, seen.deadline_at),
        blockers=blockers_out(seen.blockers, seen.as_of, seen.deadline_at),
        workers=list(seen.workers),
        parked=dict(seen.parked),
        in_doubt=seen.in_doubt,
        arrivals=seen.arrivals,
        longest_timeout=seen.longest.seconds if seen.longest else None,
        too_short=bool(seen.too_short),
        nowhere=nowhere_out(seen.nowhere),
        warnings=seen.warnings,
        taken_by=seen.taken_by,
    )


# -- verbs -------------------------------------------------------------------------------------------------------------


class DrainPaging(Given):
    cursor: Annotated[int, Field(ge=0, le=LAST_ID)] | None = None
    limit: int = Field(100, ge=1, le=1000)
    in_force: bool | None = Field(None, description="Only those whose gate is there, or only those lifted.")


class PreviewBody(Sent):
    scope: Name = Field("all", description=SCOPE)
    timeout: float = Field(DEFAULT_TIMEOUT, description="Seconds to the deadline.")


class DrainBody(PreviewBody):
    reason: Reason
    until_gone: bool = Field(False, description="Of a worker: lifted by itself once no process of the name is left.")


class ExtendBody(Sent):
    seconds: float
    reason: Reason


class LiftBody(Sent):
    reason: Reason = LIFTED


@router.get("/drains", auth=may(VIEW), response={200: DrainList, **problems()})
def drains(request: HttpRequest, paging: Query[DrainPaging]) -> DrainList:
    """Drains in force and the history, the newest first."""
    rows = drains_seen(request.user)
    if paging.in_force is not None:
        rows = rows.filter(gate__lifted_at__isnull=paging.in_force)
    if paging.cursor is not None:
        rows = rows.filter(id__lt=paging.cursor)
    found = list(rows[: paging.limit + 1])
    return DrainList(
        items=[drain_out(one) for one in found[: paging.limit]], next_cursor=following(found, paging.limit)
    )


@router.post("/drains", auth=may(DRAIN), response={201: DrainDetail, **problems(400, 409, 413)})
def order(request: HttpRequest, given: DrainBody) -> Answer[DrainDetail]:
    """Nothing more is sent in the scope, its runs reach a checkpoint until the deadline. Read `warnings`."""
    check_reach(request.user, given.scope)
    drain = order_drain(
        scope=given.scope, timeout=given.timeout, reason=given.reason, actor=actor_of(request),
        until_gone=given.until_gone,
    )  # fmt: skip
    return Answer(201, drain_detail(drain, request.user))


@router.post("/drains/preview", auth=may(DRAIN), response={200: PreviewOut, **problems(400, 413)})
def look(request: HttpRequest, given: PreviewBody) -> PreviewOut:
    """What a drain would touch. Changes nothing."""
    check_reach(request.user, given.scope)
    return preview_out(preview(given.scope, given.timeout, request.user))


@router.get("/drains/{drain_id}", auth=may(VIEW), response={200: DrainDetail, **problems(404)})
def drain(request: HttpRequest, drain_id: DrainId) -> DrainDetail:
    """One drain, with what is in flight in its scope now and what became of what it handed over."""
    return drain_detail(find_drain(drain_id, request.user), request.user)


@router.post("/drains/{drain_id}/extend", auth=may(DRAIN), response={200: DrainDetail, **problems(400, 404, 409, 413)})
def extend(request: HttpRequest, drain_id: DrainId, given: ExtendBody) -> DrainDetail:
    """Moves the deadline of a drain that is under way by so many seconds."""
    check_reach(request.user, find_drain(drain_id, request.user).scope)
    moved = extend_drain(drain_id=drain_id, seconds=given.seconds, reason=given.reason, actor=actor_of(request))
    return drain_detail(moved, request.user)


@router.delete("/drains/{drain_id}", auth=may(DRAIN), response={200: DrainDetail, **problems(400, 404, 409, 413)})
def lift(
    request: HttpRequest,
    drain_id: DrainId,
    given: Annotated[LiftBody | None, Body()] = None,
    reason: Annotated[str, Query(max_length=10_000, description="For clients that send no body with DELETE.")] = LIFTED,
) -> DrainDetail:
    """Lifts its gate: what waits there goes on. One that is under way is called off."""
    check_reach(request.user, find_drain(drain_id, request.user).scope)
    lifted = lift_drain(drain_id=drain_id, reason=given.reason if given else reason, actor=actor_of(request))
    return drain_detail(lifted, request.user)
