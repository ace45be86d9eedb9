"""The API of putting things right."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status as Answer
from pydantic import Field

from recovery.commands import reconcile_intent
from runs.access import RECONCILE
from runs.guards import actor_of, may
from runs.queries import find_run
from runs.rest import answers
from runs.rest.api import CHANGED, Seq
from runs.rest.schemas import Given, RunDetail

router = Router()
A_WORKER_MUST_ACT = ("probe", "never_happened")


class ReconcileBody(Given):
    verdict: Literal["happened", "never_happened", "probe", "abort"]
    evidence: str = Field("", max_length=10_000, description="How you know. Every verdict needs it.")
    attempt: int | None = Field(None, ge=1, description="The attempt you judged, as the intent shows it.")
    result: Any = Field(None, description="What the call returned, if it happened and you know.")


@router.post(
    "/runs/{ref}/intents/{seq}/reconcile",
    auth=may(RECONCILE),
    response={202: RunDetail} | CHANGED,
    tags=["intents"],
)
def reconcile(request: HttpRequest, ref: str, seq: Seq, given: ReconcileBody) -> Answer[RunDetail]:
    """Settles an intent in doubt. 202 where a worker must act on it: this process never calls a tool."""
    run = reconcile_intent(
        run_id=find_run(ref, request.user).id,
        seq=seq,
        verdict=given.verdict,
        evidence=given.evidence,
        result=given.result,
        attempt=given.attempt,
        actor=actor_of(request),
    )
    return Answer(202 if given.verdict in A_WORKER_MUST_ACT else 200, answers.run_detail(run))
