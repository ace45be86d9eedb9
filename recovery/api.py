"""The API of putting things right."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status as Answer
from pydantic import Field

from recovery.commands import adopt_evidence, reconcile_intent
from recovery.errors import FileUnreadable
from recovery.files import EvidenceFile
from runs.access import RECONCILE
from runs.guards import actor_of, may
from runs.queries import find_run
from runs.rest import answers
from runs.rest.api import CHANGED, Seq
from runs.rest.schemas import RunDetail, Sent

router = Router()
A_WORKER_MUST_ACT = ("probe", "never_happened")


class EvidenceFileBody(Sent):
    name: str = Field(..., min_length=1, max_length=300)
    type: str = Field("application/octet-stream", max_length=200)
    content: str = Field(..., description="Base64. A request body may have 2.5 MB; the page takes files of 10 MB.")

    def decoded(self) -> EvidenceFile:
        """Raises FileUnreadable."""
        try:
            return EvidenceFile(self.name, self.type, b64decode(self.content, validate=True))
        except ValueError as error:
            raise FileUnreadable from error


class ReconcileBody(Sent):
    verdict: Literal["happened", "never_happened", "probe", "abort"]
    evidence: str = Field("", max_length=10_000, description="How you know. Every verdict needs it.")
    attempt: int | None = Field(None, ge=1, description="The attempt you judged, as the intent shows it.")
    result: Any = Field(
        None, description="What the call returned, if it happened and you know. It fits the tool's return type."
    )
    external_id: str = Field("", max_length=500, description="Its name on the other side, if it has one.")
    evidence_file: EvidenceFileBody | None = Field(None, description="Kept beside the journal, named in the entry.")


class AdoptBody(Sent):
    evidence: int = Field(..., ge=1, lt=2**63, description="The number of the late result, as the item shows it.")
    reason: str = Field(..., min_length=1, max_length=10_000)


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
        external_id=given.external_id,
        file=given.evidence_file.decoded() if given.evidence_file else None,
        actor=actor_of(request),
    )
    return Answer(202 if given.verdict in A_WORKER_MUST_ACT else 200, answers.run_detail(run))


@router.post("/runs/{ref}/intents/{seq}/adopt", auth=may(RECONCILE), response=CHANGED, tags=["intents"])
def adopt(request: HttpRequest, ref: str, seq: Seq, given: AdoptBody) -> RunDetail:
    """Settles an intent in doubt by a result that came from a worker which did not hold the run any more."""
    run = adopt_evidence(
        run_id=find_run(ref, request.user).id,
        seq=seq,
        evidence=given.evidence,
        note=given.reason,
        actor=actor_of(request),
    )
    return answers.run_detail(run)
