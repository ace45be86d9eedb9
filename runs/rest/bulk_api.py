"""The API of bulk acts: one verb on all runs that match a query."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Query, Router
from ninja.responses import Status as Answer
from pydantic import BaseModel, Field

from runs.access import BULK, VIEW, PermissionMissing, sees
from runs.bulk import (
    JUDGE,
    JUDGED_FIRST,
    Forecast,
    acts_seen_by,
    find_bulk,
    forecast,
    items_of,
    order_bulk,
    progress_of,
    stop_bulk,
    target_named,
    verb_named,
    verdicts_of,
)
from runs.errors import BulkUncounted
from runs.guards import actor_of, may
from runs.models import BulkAct, BulkItem, Status
from runs.query_language import LONGEST
from runs.query_meaning import Reader
from runs.rest.schemas import Given, Name, Reason, Sent, Storable, problems
from runs.short_ids import short_id

router = Router(tags=["bulk"])
LAST_ID = 2**63 - 1
BulkId = Annotated[int, Path(ge=1, le=LAST_ID)]
VerbName = Literal["hold", "resume", "release", "retry", "probe", "cancel", "pin"]
Ordered = Literal["hold", "resume", "release", "retry", "probe", "cancel", "pin", "judge"]
Outcome = Literal["done", "skipped", "failed", "left"]


class BulkBody(Sent):
    verb: VerbName
    query: Annotated[Storable, Field(max_length=LONGEST)] = Field(
        description="As in `GET /runs?query=`. Empty: every run."
    )
    reason: Reason = Field("", description="Written to the journal of each run. Every order needs one.")
    dry_run: bool = Field(
        False,
        description="Count only: by status, on how many it would act and which it would skip. Of `pin`: workers judge "
        "each run first; nothing is written into any, and the act that answers counts the verdicts.",
    )
    expected: int | None = Field(
        None, ge=0, description="On how many at most, as a dry run counted. `cancel` needs it: it cannot be undone."
    )
    request_id: Name | None = Field(None, description="The same order sent twice is one act.")
    release: Name | None = Field(None, description="Of `pin`: where the runs go, as `agent@version` or a digest.")
    judged: int | None = Field(
        None, ge=1, le=LAST_ID, description="Of `pin`: a dry run; only what it found compatible is moved."
    )


class Skip(BaseModel):
    runs: int
    why: str


class StatusForecast(BaseModel):
    status: Status
    acts: int
    skips: list[Skip]


class BulkForecast(BaseModel):
    """What an order would do now. Counts end at 100,001, those of runs that the verb is not for at 10,001."""

    verb: VerbName
    query: str
    acts: int
    skips: int
    by_status: list[StatusForecast]


class VerdictCounts(BaseModel):
    compatible: int
    fork_needed: int
    refused: int
    unjudged: int = Field(description="Of which no worker could say anything.")


class BulkOut(BaseModel):
    id: int
    verb: Ordered = Field(description="`judge`: a dry run of `pin`.")
    query: str
    reason: str
    actor: str
    created_at: datetime
    ended_at: datetime | None
    stopped_by: str = Field(description="Empty unless somebody stopped it.")
    left: int = Field(description="Runs whose turn has not come.")
    done: int
    skipped: int
    failed: int
    release: str | None = Field(description="Of `pin` and `judge`: where the runs go.")
    judged: int | None = Field(description="Of `pin`: the dry run that it follows.")
    verdicts: VerdictCounts | None = Field(description="Of `judge`: so far.")


class BulkList(BaseModel):
    items: list[BulkOut]
    next_cursor: str | None


class BulkItemOut(BaseModel):
    run_id: UUID
    name: str
    agent: str
    outcome: str | None = Field(description="done, skipped or failed; null while its turn has not come.")
    said: str = Field(description="Why it was skipped or failed.")
    at: datetime | None


class BulkItemList(BaseModel):
    items: list[BulkItemOut]
    next_cursor: str | None


class BulkPaging(Given):
    cursor: int | None = Field(None, ge=1, le=LAST_ID)
    limit: int = Field(50, ge=1, le=200)


class BulkItemPaging(Given):
    outcome: Outcome | None = None
    cursor: UUID | None = None
    limit: int = Field(100, ge=1, le=1000)


@router.post("/bulk", auth=may(BULK), response={200: BulkForecast, 202: BulkOut} | problems(400, 404, 409, 413))
def order(request: HttpRequest, given: BulkBody) -> Answer[BulkForecast] | Answer[BulkOut]:
    """Orders it: 202, and the sweeps carry it out, a run at a time. With `dry_run` it only counts: 200.

    Runs with a pending intent are skipped, except by `probe`, which asks their tools. A dry run of `pin` is an act of
    its own, 202: workers have to judge.
    """
    verb = verb_named(given.verb)
    if not request.user.has_perm(verb.permission):
        raise PermissionMissing(actor_of(request), verb.permission)
    reader, actor = Reader(request.user), actor_of(request)
    release = target_named(given.release, request.user)
    if given.dry_run and not verb.targeted:
        return Answer(200, forecast_out(forecast(verb, given.query, reader, release)))
    if verb.look == "danger" and given.expected is None:
        raise BulkUncounted
    judged = find_bulk(given.judged, request.user, actor) if given.judged is not None else None
    act = order_bulk(
        verb=JUDGE if given.dry_run else given.verb, query=given.query, actor=actor, reader=reader,
        reason=given.reason or (JUDGED_FIRST if given.dry_run else ""), expected=given.expected,
        request_id=given.request_id, release=release, judged=judged,
    )  # fmt: skip
    return Answer(202, bulk_out(act))


def forecast_out(told: Forecast) -> BulkForecast:
    counts = [
        StatusForecast(
            status=Status(count.status), acts=count.acts, skips=[Skip(runs=n, why=why) for n, why in count.skips]
        )
        for count in told.counts
    ]
    return BulkForecast(
        verb=cast(VerbName, told.verb.name), query=told.query, acts=told.acts, skips=told.skips, by_status=counts
    )


def bulk_out(act: BulkAct) -> BulkOut:
    progress = progress_of(act)
    return BulkOut(
        id=act.pk, verb=cast(Ordered, act.verb), query=act.query, reason=act.reason, actor=act.actor,
        created_at=act.created_at, ended_at=act.ended_at, stopped_by=act.stopped_by, left=progress.left,
        done=progress.done, skipped=progress.skipped, failed=progress.failed, judged=act.judged_id,
        release=None if act.release is None else str(act.release), verdicts=verdict_counts(act),
    )  # fmt: skip


def verdict_counts(act: BulkAct) -> VerdictCounts | None:
    if act.verb != JUDGE:
        return None
    found = verdicts_of(act)
    return VerdictCounts(
        compatible=found.compatible, fork_needed=found.fork_needed, refused=found.refused, unjudged=found.unjudged
    )


@router.get("/bulk", auth=may(VIEW), response={200: BulkList} | problems())
def bulks(request: HttpRequest, paging: Query[BulkPaging]) -> BulkList:
    """All bulk acts, the newest first. Whoever sees some agents alone sees their own acts alone."""
    acts = acts_seen_by(request.user, actor_of(request))
    if paging.cursor:
        acts = acts.filter(id__lt=paging.cursor)
    found: Sequence[BulkAct] = list(acts[: paging.limit + 1])
    more = len(found) > paging.limit
    shown = found[: paging.limit]
    return BulkList(items=[bulk_out(act) for act in shown], next_cursor=str(shown[-1].pk) if more else None)


@router.get("/bulk/{bulk_id}", auth=may(VIEW), response={200: BulkOut} | problems(404))
def bulk(request: HttpRequest, bulk_id: BulkId) -> BulkOut:
    """How far it is."""
    return bulk_out(find_bulk(bulk_id, request.user, actor_of(request)))


@router.get("/bulk/{bulk_id}/items", auth=may(VIEW), response={200: BulkItemList} | problems(404))
def items(request: HttpRequest, bulk_id: BulkId, paging: Query[BulkItemPaging]) -> BulkItemList:
    """Its runs with what became of each, by id."""
    act = find_bulk(bulk_id, request.user, actor_of(request))
    found, following = items_of(act, paging.outcome, paging.cursor, paging.limit)
    shown = [item_out(item) for item in found if sees(request.user, item.run.agent)]
    return BulkItemList(items=shown, next_cursor=str(following) if following else None)


def item_out(item: BulkItem) -> BulkItemOut:
    return BulkItemOut(
        run_id=item.run_id, name=short_id(item.run_id), agent=item.run.agent, outcome=item.outcome, said=item.said,
        at=item.at,
    )  # fmt: skip


@router.post("/bulk/{bulk_id}/stop", auth=may(BULK), response={200: BulkOut} | problems(400, 404, 409, 413))
def stop(request: HttpRequest, bulk_id: BulkId) -> BulkOut:
    """When it answers, nothing more is done; what was done stays."""
    act = find_bulk(bulk_id, request.user, actor_of(request))
    stop_bulk(act=act, actor=actor_of(request))
    return bulk_out(find_bulk(bulk_id, request.user, actor_of(request)))
