"""The API of replays: order one, wait for it, look at it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Router
from ninja.responses import Status as Answer
from pydantic import BaseModel, Field

from recovery.errors import ReplayNotFound
from recovery.models import Purpose, Replay
from recovery.replays import order, release_named, wait_for
from runs.access import CONTROL, VIEW, Person, seen_by
from runs.guards import actor_of, may
from runs.queries import find_run
from runs.rest.api import LAST_SEQ
from runs.rest.schemas import Sent, problems

router = Router(tags=["runs"])
WAIT = 30.0  # seconds that an order waits for its worker
LAST_ID = 2**63 - 1
ReplayId = Annotated[int, Path(ge=1, le=LAST_ID)]


class ReplayBody(Sent):
    release: str | None = Field(
        None, max_length=300, description="A version, agent@version or digest; without it the run's own."
    )
    at: int | None = Field(None, ge=1, le=LAST_SEQ, description="The last entry that is looked at; without it all.")
    ask_model: bool = Field(False, description="Ask the model again, to compare. That costs what asking costs.")


class DivergenceOut(BaseModel):
    """What would be decided otherwise now. Values are in the journal's tagged form."""

    seq: int = Field(description="Of the entry that recorded it.")
    step: int | None
    kind: str = Field(description="decision, arguments, gate, end, missing_tool, refused_arguments or text.")
    effect: bool = Field(description="Whether more than words differ.")
    recorded: Any
    attempted: Any
    says: str


class ReasonOut(BaseModel):
    seq: int | None
    code: str
    says: str
    verdict: str


class ModelOut(BaseModel):
    """What asking the model again has given and cost. It makes no verdict."""

    requests: int
    failed: int
    tokens: float
    cost: float
    usage: dict[str, float]
    divergences: list[DivergenceOut]


class ReplayOut(BaseModel):
    """`ended_at` null: no worker has decided it yet, look again. `error`: why nothing was found."""

    id: int
    run_id: UUID
    purpose: str
    release: str
    actor: str
    created_at: datetime
    ended_at: datetime | None
    error: str | None
    verdict: str = Field(description="same, diverged or incomplete; of a pin compatible, fork needed or refused.")
    divergences: list[DivergenceOut]
    more: int = Field(0, description="Divergences that are not listed.")
    first: int | None = Field(None, description="The seq of the first that the verdict is of.")
    reasons: list[ReasonOut] = Field([], description="Of a pin.")
    as_of_seq: int | None = Field(None, description="The journal's end when it was read.")
    compared: int = Field(0, description="Recorded decisions that were made again.")
    of: int = 0
    stopped_at: int | None = Field(None, description="The entry at which it could not go on.")
    stopped_why: str = ""
    calls: int = Field(0, description="Calls that were answered from the journal. None was sent.")
    code: str = Field("", description="The digest of the code that decided.")
    recorded_release: str = ""
    recorded_code: str = ""
    model: ModelOut | None = None


@router.post(
    "/runs/{ref}/replay",
    auth=may(CONTROL),
    response={200: ReplayOut, 202: ReplayOut, **problems(400, 404, 409, 413, 429)},
)
def replay(request: HttpRequest, ref: str, given: ReplayBody) -> Answer[ReplayOut]:
    """Decides the journal again under its own or another release, without any effect and without a change of the run.

    A worker that serves the release does it. 202: none has within 30 seconds; look at GET /replays/{id}.
    """
    run = find_run(ref, request.user)
    release = run.release if given.release is None else release_named(run.agent, given.release)
    ordered = order(
        run, release, Purpose.REPLAY, actor=actor_of(request), at=given.at, asks_model=given.ask_model
    )  # fmt: skip
    found = wait_for(ordered, WAIT)
    return Answer(200 if found.ended_at is not None else 202, replay_out(found))


@router.get("/replays/{replay_id}", auth=may(VIEW), response={200: ReplayOut, **problems(404)})
def one_replay(request: HttpRequest, replay_id: ReplayId) -> ReplayOut:
    """A replay, or what a pin or a fork was judged by."""
    return replay_out(find_replay(replay_id, request.user))


def find_replay(replay_id: int, user: Person | None) -> Replay:
    """Raises ReplayNotFound, also where the user's scope leaves the run out."""
    rows = seen_by(user, Replay.objects.select_related("release"), "run__agent")
    found = rows.filter(pk=replay_id).first()
    if found is None:
        raise ReplayNotFound(f"({replay_id})")
    return found


def replay_out(replay: Replay) -> ReplayOut:
    result: dict[str, Any] = replay.result or {"verdict": replay.verdict, "divergences": []}
    own = {name: value for name, value in result.items() if name in ReplayOut.model_fields and name != "release"}
    return ReplayOut(
        id=replay.pk, run_id=replay.run_id, purpose=replay.purpose, release=str(replay.release), actor=replay.actor,
        created_at=replay.created_at, ended_at=replay.ended_at, error=replay.error or None, **own,
    )  # fmt: skip
