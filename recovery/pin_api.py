"""The API of moving a run to another release."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status as Answer
from pydantic import BaseModel, Field

from recovery.errors import NotJudgedYet
from recovery.models import Replay
from recovery.pins import judge_pin, reasons_of, repin_run
from runs.access import REPIN
from runs.guards import actor_of, may
from runs.queries import find_run
from runs.rest import answers
from runs.rest.api import CHANGED
from runs.rest.schemas import Name, Reason, RunDetail, Sent

router = Router()


class PinBody(Sent):
    release: Name = Field(description="Of the run's agent: a version, `agent@version`, or a digest.")
    reason: Reason = Field("", description="Written to the journal. Every move needs one.")
    dry_run: bool = Field(False, description="Judge only; nothing of the run changes.")


class PinReason(BaseModel):
    seq: int | None = Field(description="The entry that it is about.")
    code: str
    says: str


class PinVerdict(BaseModel):
    verdict: str = Field(description="compatible, fork needed or refused; empty if it could not be judged.")
    reasons: list[PinReason]
    as_of_seq: int | None = Field(description="The journal's end when it was judged.")
    error: str = Field(description="Why it could not be judged.")


class PinPending(BaseModel):
    replay: int = Field(description="The judgement that a worker has yet to make: `GET /replays/{id}`.")


@router.post(
    "/runs/{ref}/pin",
    auth=may(REPIN),
    response={200: RunDetail | PinVerdict, 202: PinPending} | {k: v for k, v in CHANGED.items() if k != 200},
    tags=["runs"],
)
def pin(request: HttpRequest, ref: str, given: PinBody) -> Answer[RunDetail] | Answer[PinVerdict] | Answer[PinPending]:
    """Moves the run to another release, if a worker that serves it decides the journal as it is recorded; else 409 with
    the verdict and the reasons. 202: no worker has judged it within 30 s; nothing was written, send it again.
    """
    run, actor = find_run(ref, request.user), actor_of(request)
    try:
        if given.dry_run:
            return Answer(200, verdict_out(judge_pin(run_id=run.id, release=given.release, actor=actor)))
        moved = repin_run(run_id=run.id, release=given.release, reason=given.reason, actor=actor)
    except NotJudgedYet as late:
        return Answer(202, PinPending(replay=late.replay))
    return Answer(200, answers.run_detail(moved))


def verdict_out(judgement: Replay) -> PinVerdict:
    reasons: list[dict[str, Any]] = reasons_of(judgement)
    return PinVerdict(
        verdict=judgement.verdict, as_of_seq=judgement.as_of_seq, error=judgement.error,
        reasons=[PinReason(seq=each["seq"], code=each["code"], says=each["says"]) for each in reasons],
    )  # fmt: skip
