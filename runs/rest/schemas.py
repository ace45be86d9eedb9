"""Shapes of the API: what a request may say, what an answer holds."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
)

from runs.models import Status


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("U+0000 cannot be part of this")
    return text


def _written_out(given: object) -> object:
    """A time is told as text with its zone: a bare number could be seconds from now as well as since 1970."""
    if not isinstance(given, str) or not re.match(r"\d{4}-\d\d-\d\d", given):
        raise ValueError("a time is ISO 8601 with its zone: 2031-01-31T12:00:00Z")
    return given


Storable = Annotated[str, AfterValidator(_storable)]
Time = Annotated[AwareDatetime, BeforeValidator(_written_out)]
Seconds = Annotated[float, Field(gt=0, strict=True)]
_TIME, _SECONDS = TypeAdapter(Time), TypeAdapter(Seconds)


def _deadline(given: Any) -> datetime | float:
    """One sentence for both ways to say it: a union would tell of each that it is not the other."""
    try:
        return _TIME.validate_python(given) if isinstance(given, str) else _SECONDS.validate_python(given)
    except ValidationError:
        raise ValueError(
            "a deadline is a number of seconds above 0, or a time in ISO 8601 with its zone: 2031-01-31T12:00:00Z"
        ) from None


Deadline = Annotated[datetime | float, PlainValidator(_deadline, json_schema_input_type=Time | Seconds)]
StepKind = Literal["call", "sleep", "signal", "ask", "child"]
# Names and filters become text columns, which hold no U+0000; reasons, notes and inputs go to the journal, which does.
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_storable)]
Reason = Annotated[str, Field(max_length=10_000)]


class Given(BaseModel):
    """What a request says. A field that we do not know is refused: a misspelt one would silently do nothing."""

    model_config = ConfigDict(extra="forbid")


class Sent(Given):
    """A request's body. JSON has numbers and true: a text or a fraction that looks like one is a mistake."""

    model_config = ConfigDict(strict=True)


class StartBody(Sent):
    agent: Name
    input: Any = None
    request_key: Name | None = Field(None, description="The same key, agent and content give the same run again.")
    release: Name | None = None
    labels: dict[Name, Annotated[str, AfterValidator(_storable), Field(max_length=200)]] = Field({}, max_length=50)
    deadline: Deadline | None = Field(
        None, description="Seconds from now, or a time with its zone, at which it is cancelled if it has not ended."
    )
    priority: int = Field(0, ge=0, le=9, description="A higher one is claimed sooner.")
    wait: float = Field(0, ge=0, description="Seconds to wait for the run to end or park; more than 30 are 30.")


class ReasonBody(Sent):
    reason: Reason


class SignalBody(Sent):
    name: Name
    payload: Any = None
    id: Name | None = Field(None, description="The same id again changes nothing.")


class AnswerBody(Sent):
    seq: int = Field(ge=1, le=2**63 - 1, description="Of the question's entry.")
    value: Any


class NoteBody(Sent):
    text: Reason


class ApprovalBody(Sent):
    verdict: Literal["approve", "deny", "edit", "ask"] = Field(
        description="`edit` puts `args` in place of the agent's; what was granted is void. `ask` is a question back."
    )
    digest: Annotated[str, Field(max_length=200)] | None = Field(None, description="Of the intent as you saw it.")
    note: Reason = Field("", description="The reason of `deny`, which the agent hears; the question of `ask`.")
    args: dict[str, Any] | None = Field(None, description="Of `edit`: the whole arguments.")


class RunFilters(Given):
    status: list[Status] = []
    agent: Name | None = None
    release: Name | None = None
    label: list[Annotated[Name, Field(pattern="^[^:]+:")]] = Field([], description="key:value; several must all match")
    parent: Name | None = Field(None, description="Children of this run: its UUID or its r-… name.")
    started_after: Time | None = Field(None, description="At this time or later.")
    started_before: Time | None = None
    q: Name | None = Field(None, description="Id, short id, request key or business id; else the name of an agent.")
    query: Annotated[Storable, Field(max_length=4_000)] | None = Field(
        None, description="As in the console: `status:held -agent:x epoch:>1`. It must match beside the other filters."
    )
    cursor: UUID | None = None
    limit: int = Field(50, ge=1, le=1000)


class IntentFilters(Given):
    state: Literal["awaiting_approval", "in_doubt", "pending"] | None = None
    cursor: UUID | None = None
    limit: int = Field(100, ge=1, le=1000, description="Of runs; a run may have several intents.")


class Pin(BaseModel):
    """The release a run was started under and resumes under."""

    release: str = Field(description="SHA-256 of the release's content, in hexadecimal.")
    agent: str
    version: str


class RunOut(BaseModel):
    id: UUID
    name: str = Field(description="r- and the last 40 bits of the id.")
    agent: str
    status: Status
    reason: str = Field(description="Why it does not move and what releases it; empty when it moves.")
    since: datetime = Field(description="When the status last changed.")
    pin: Pin
    epoch: int
    labels: dict[str, str]
    request_key: str | None
    business_id: str | None = Field(description="`label:value` that only one open run of the agent may have.")
    parent: UUID | None
    forked_from: UUID | None = Field(description="The run whose first entries it began with.")
    forked_at: int | None = Field(description="The last of them.")
    priority: int
    deadline: datetime | None = Field(description="When it is cancelled if it has not ended.")
    created_at: datetime
    ended_at: datetime | None


class Child(BaseModel):
    id: UUID
    agent: str
    status: Status
    step: int = Field(description="Of the parent: the step that spawned it.")


class Wait(BaseModel):
    """A step that is not settled."""

    seq: int
    step: int
    kind: StepKind
    what: str = Field(description="The tool, the question, the signal's name, the child's agent.")
    state: str
    since: datetime
    due: datetime | None = Field(description="When it ends, expires or is tried again by itself.")
    released_by: str
    child: UUID | None
    options: list[Any] | None = Field(description="Of a question.")
    answer_schema: Any = Field(description="JSON schema of the answer to a question.")


class RunDetail(RunOut):
    last_seq: int
    worker: str | None = Field(description="The worker that holds it now.")
    wake_at: datetime | None
    children: list[Child] = Field(description="The first 1000; GET /runs?parent= lists all.")
    forks: list[UUID] = Field(description="The first 1000 runs that were forked from it.")
    waits: list[Wait] = Field(description="What is not settled, and what releases it.")
    budget: dict[str, Any] | None = Field(description="What it may spend before a person looks at it.")
    used: dict[str, float] | None = Field(description="Of the budget, since it was last given; null without one.")
    result: Any = Field(None, description="Of a run that is done, awkward values in their tagged form.")
    error: Any = None
    cancelled: Any = None


class RunList(BaseModel):
    items: list[RunOut]
    next_cursor: str | None


class EntryOut(BaseModel):
    seq: int
    kind: str
    body: Any = Field(description="As stored: awkward values in their tagged form, large ones as pointers.")
    step: int | None
    epoch: int
    actor: str
    recorded_at: datetime


class EntryList(BaseModel):
    items: list[EntryOut]
    next_cursor: str | None = Field(description="Give it as `after`.")


class AttemptOut(BaseModel):
    number: int
    seq: int
    epoch: int
    at: datetime
    source: str
    error: str | None


class RepeatOut(BaseModel):
    """A relative's effect that this one equals; how it stood when it was asked for."""

    run: UUID
    seq: int
    step: int
    outcome: str


class ApprovalOut(BaseModel):
    verdict: str
    seq: int
    at: datetime
    actor: str
    digest: str
    note: str
    granted: list[str] = Field(description="Who has approved.")
    expires: datetime | None
    why: str = Field(description="Why it was asked for anew.")
    repeats: list[RepeatOut] = Field(description="What relatives have done, or are about to, that is the same.")


class StepOut(BaseModel):
    step: int
    kind: StepKind
    seq: int
    at: datetime
    state: str
    tool: str
    args: Any = Field(description="What is sent; `edited` tells whose they are if not the agent's.")
    edited: EditOut | None
    key: str
    effect: str
    digest: str
    gate: str | None
    approval: ApprovalOut | None
    attempts: list[AttemptOut]
    outcome: str | None
    result: Any
    error: Any


class ControlOut(BaseModel):
    verb: str
    reason: str
    actor: str
    at: datetime
    seq: int


class StatusOut(BaseModel):
    """The run's row, as the stream tells it."""

    status: Status
    reason: str
    since: datetime
    wake_at: datetime | None


class StreamEvent(BaseModel):
    """A server-sent event of the stream. `id` is the entry's seq; only `entry` has one."""

    id: int | None
    event: Literal["entry", "status", "end"]
    data: EntryOut | StatusOut | dict[str, str]


class StateOut(BaseModel):
    """The fold of a journal up to `seq`."""

    run_id: UUID
    seq: int
    at: datetime | None = Field(description="When entry `seq` was recorded.")
    agent: str
    input: Any
    labels: dict[str, str]
    release: str
    frontier: int
    steps: list[StepOut]
    unsettled: list[int] = Field(description="Steps whose intent nobody has settled.")
    controls: list[ControlOut] = Field(description="Cancel, hold, divergence and quarantine in force.")
    plan: list[Any]
    usage: dict[str, float]
    done: Any


class PolicyOut(BaseModel):
    """Who has to agree: `quorum` members of `group`; with `four_eyes` neither who started the run nor who edited it."""

    group: str
    quorum: int
    four_eyes: bool
    on_expiry: str


class QuestionOut(BaseModel):
    """What an approver asked back, and nobody has answered."""

    by: str
    text: str
    seq: int


class EditOut(BaseModel):
    by: str
    args: Any


class IntentOut(BaseModel):
    run_id: UUID
    seq: int
    step: int
    tool: str
    args: Any
    key: str
    digest: str
    effect: str
    state: str
    since: datetime
    deadline: datetime | None
    attempt: int
    worker: str | None = Field(
        description="The live worker that is on it. Without one, what is in doubt needs a person."
    )
    summary: str | None = Field(description="What would be done, in one sentence, where the tool says so.")
    fields: Any = Field(description="What the digest covers, where the tool names it; else it covers all of `args`.")
    asked_args: Any = Field(description="What the agent asked for; `args` is what would be sent.")
    edited: EditOut | None = Field(description="Whose arguments `args` are, if a person changed them.")
    policy: PolicyOut | None = Field(description="Of an intent that waits for approval.")
    granted: list[str] = Field(description="Who has approved so far.")
    question: QuestionOut | None
    why: str = Field(description="Why it is asked for anew.")
    expired: bool = Field(description="Nobody approved it in time; a retry of the run asks for it anew.")
    repeats: list[RepeatOut] = Field(description="What relatives have done, or are about to, that is the same.")


class IntentList(BaseModel):
    items: list[IntentOut]
    next_cursor: str | None


class Problem(BaseModel):
    """RFC 9457. Errors add what they know: `actor`, `verdict`, `at` of a decision; `errors` by field."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


def problems(*more: int) -> dict[int, type[Problem]]:
    """The refusals a verb declares: those that every verb has, and its own."""
    return dict.fromkeys(sorted({401, 403, 422, 503, *more}), Problem)
