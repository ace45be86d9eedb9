"""The API of forks: what one would copy and could repeat, and starting it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status as Answer
from pydantic import BaseModel, Field

from journal.encoding import tagged
from recovery.fork_preview import LaterEffect, Preview
from recovery.forking import fork_run, preview
from runs.access import FORK, VIEW
from runs.guards import actor_of, may
from runs.queries import find_run
from runs.rest import answers
from runs.rest.api import LAST_SEQ
from runs.rest.schemas import Name, Reason, RunDetail, Sent, problems

router = Router(tags=["forks"])
MOST_POINTS = 1000
At = Annotated[int, Field(ge=1, le=LAST_SEQ, description="The last entry that is copied.")]


class ForkEdit(Sent):
    """Of START the input, of OBS the result, of ANSWER the value, of SIGNAL the payload, of a PLAN the moves."""

    seq: At
    value: Any


class ForkBody(Sent):
    at: At
    reason: Reason
    edits: list[ForkEdit] = Field(default_factory=list, max_length=100)
    release: str | None = Field(None, max_length=300, description="Another release: V, agent@V or its digest.")
    request_id: Name | None = Field(None, description="The same order sent twice is one fork.")


class LaterEffectOut(BaseModel):
    """A call, or a child that was started, behind the entry at which it is forked."""

    run_id: UUID
    seq: int
    step: int
    tool: str
    effect: str = Field(description="read, keyed, probed, unkeyed; child of a child.")
    key: str
    args: Any
    outcome: str = Field(description="How it was settled, else its state.")
    could_repeat: bool
    says: str
    at: datetime


class RelativeOut(BaseModel):
    id: UUID
    status: str
    reason: str


class ForkPreview(BaseModel):
    at: int
    allowed: bool
    why_not: str = Field(description="Why it cannot be forked at this entry.")
    refusals: list[str] = Field(description="What else would refuse it.")
    before: int | None = Field(description="The nearest entry up to `at` at which it can be forked.")
    after: int | None
    points: list[int] = Field(description=f"Where it can be forked; the last {MOST_POINTS}.")
    release: str
    served: bool
    copied: int
    steps: int
    lifts: list[str] = Field(description="What stopped the run there and will not stop the fork.")
    effects: list[LaterEffectOut]
    could_repeat: dict[str, int] = Field(description="How many effects could repeat, by class.")
    family: list[RelativeOut] = Field(description="Its open relatives.")


@router.get("/runs/{ref}/fork", auth=may(VIEW), response={200: ForkPreview, **problems(404, 409)})
def preview_fork(
    request: HttpRequest,
    ref: str,
    at: Annotated[int | None, Query(ge=1, le=LAST_SEQ)] = None,
    release: Annotated[str | None, Query(max_length=300)] = None,
) -> ForkPreview:
    """What a fork at this entry would copy, and which later effects it could repeat. Without `at`: at the last one."""
    return told(preview(find_run(ref, request.user), at, release))


@router.post("/runs/{ref}/fork", auth=may(FORK), response={201: RunDetail, **problems(400, 404, 409, 413)})
def fork(request: HttpRequest, ref: str, given: ForkBody) -> Answer[RunDetail]:
    """Starts a new run with entries 1 to `at` copied. A call that a relative has made too waits for approval."""
    made = fork_run(
        run_id=find_run(ref, request.user).id,
        at=given.at,
        reason=given.reason,
        actor=actor_of(request),
        edits=[edit.model_dump() for edit in given.edits],
        release=given.release,
        request_id=given.request_id,
    )
    return Answer(201, answers.run_detail(made))


def told(found: Preview) -> ForkPreview:
    return ForkPreview(
        at=found.at,
        allowed=found.allowed,
        why_not=found.why_not,
        refusals=list(found.refusals),
        before=found.before,
        after=found.after,
        points=list(found.points[-MOST_POINTS:]),
        release=str(found.release),
        served=found.served,
        copied=found.copied,
        steps=found.steps,
        lifts=list(found.lifts),
        effects=effects_told(found.effects),
        could_repeat=dict(found.by_class),
        family=[RelativeOut(id=run.id, status=run.status, reason=run.reason) for run in found.family],
    )


def effects_told(effects: Sequence[LaterEffect]) -> list[LaterEffectOut]:
    return [
        LaterEffectOut(
            run_id=one.run, seq=one.seq, step=one.step, tool=one.tool, effect=one.effect, key=one.key,
            args=tagged(one.args), outcome=one.outcome, could_repeat=one.could_repeat, says=one.says, at=one.at,
        )
        for one in effects
    ]  # fmt: skip
