"""The API of runs and intents: guard, form, command, answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from django.contrib.auth.models import User
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Path, Query, Router
from ninja.errors import ValidationError
from ninja.responses import Status as Answer

from runs.access import ANSWER, APPROVE, CONTROL, START, VIEW, check_agent
from runs.approvals import answer_question, decide_approval, groups_of
from runs.commands import (
    answer_ask,
    cancel_run,
    hold_run,
    note_run,
    release_run,
    resume_run,
    retry_run,
    signal_run,
    start_run,
)
from runs.errors import StatelessRun
from runs.guards import actor_of, may
from runs.listing import list_runs
from runs.pages.live import HEADERS
from runs.queries import entries_of, find_run, list_intents, state_of
from runs.rest import answers
from runs.rest.schemas import (
    AnswerBody,
    ApprovalBody,
    EntryList,
    IntentFilters,
    IntentList,
    NoteBody,
    ReasonBody,
    RunDetail,
    RunFilters,
    RunList,
    SignalBody,
    StartBody,
    StateOut,
    StreamEvent,
    problems,
)
from runs.rest.stream import events_of
from runs.rest.wait import wait_for_rest

router = Router()
LONGEST_WAIT = 30.0  # seconds
LAST_SEQ = 2**63 - 1
Seq = Annotated[int, Path(ge=1, le=LAST_SEQ)]
Limit = Annotated[int, Query(ge=1, le=1000)]
CHANGED = {200: RunDetail} | problems(400, 404, 409, 413)


@router.post("/runs", auth=may(START), response={201: RunDetail} | CHANGED, tags=["runs"])
def start(request: HttpRequest, given: StartBody) -> Answer[RunDetail]:
    """Starts a run. With a `request_key` that was used before and the same content, the same run answers with 200."""
    check_agent(request.user, given.agent)
    run, created = start_run(
        agent=given.agent,
        input=given.input,
        actor=actor_of(request),
        request_key=given.request_key,
        release=given.release,
        labels=given.labels,
        deadline=given.deadline,
        priority=given.priority,
    )
    if given.wait:
        run = wait_for_rest(run.id, min(given.wait, LONGEST_WAIT))
    return Answer(201 if created else 200, answers.run_detail(run))


@router.get("/runs", auth=may(VIEW), response={200: RunList, **problems(404, 409, 422)}, tags=["runs"])
def runs(request: HttpRequest, filters: Query[RunFilters]) -> RunList:
    """Runs, the newest first."""
    refuse_unknown(request, RunFilters.model_fields)
    labels = {(name, value) for name, _, value in (label.partition(":") for label in filters.label)}
    if len(labels) > len(dict(labels)):  # nothing has two values of one label
        return RunList(items=[], next_cursor=None)
    found, following = list_runs(
        status=tuple(filters.status),
        agent=filters.agent,
        release=filters.release,
        labels=dict(labels),
        parent=find_run(filters.parent, request.user).id if filters.parent else None,
        started=(filters.started_after, filters.started_before),
        text=filters.q,
        query=filters.query,
        after=str(filters.cursor) if filters.cursor else None,
        limit=filters.limit,
        user=request.user,
    )
    return RunList(items=[answers.run_row(run) for run in found], next_cursor=following)


def refuse_unknown(request: HttpRequest, known: Collection[str]) -> None:
    """A misspelt filter would show everything as if nothing had been asked."""
    unknown = sorted(request.GET.keys() - set(known))
    if unknown:
        raise ValidationError([{"loc": ("query", name), "msg": "there is no such filter"} for name in unknown])


@router.get("/runs/{ref}", auth=may(VIEW), response={200: RunDetail, **problems(404, 409)}, tags=["runs"])
def run(request: HttpRequest, ref: str) -> RunDetail:
    """One run, by its UUID or its r-… name."""
    return answers.run_detail(find_run(ref, request.user))


@router.get("/runs/{ref}/journal", auth=may(VIEW), response={200: EntryList, **problems(404, 409)}, tags=["runs"])
def journal(
    request: HttpRequest,
    ref: str,
    after: Annotated[int, Query(ge=0, le=LAST_SEQ)] = 0,
    limit: Limit = 500,
) -> EntryList:
    """Entries with a seq above `after`, bodies in the journal's own tagged form."""
    refuse_unknown(request, ("after", "limit"))
    found = entries_of(find_run(ref, request.user).id, after=after, limit=limit + 1)
    following = str(found[limit - 1].seq) if len(found) > limit else None
    return EntryList(items=[answers.entry(e) for e in found[:limit]], next_cursor=following)


@router.get("/runs/{ref}/state", auth=may(VIEW), response={200: StateOut, **problems(404, 409)}, tags=["runs"])
def state(request: HttpRequest, ref: str, at: Annotated[int | None, Query(ge=1, le=LAST_SEQ)] = None) -> StateOut:
    """What the journal amounts to, now or just after entry `at`."""
    refuse_unknown(request, ("at",))
    found = find_run(ref, request.user)
    if answers.is_stateless(found):
        raise StatelessRun
    return answers.state(state_of(found.id, at=at))


@router.get("/runs/{ref}/stream", auth=may(VIEW), response={200: StreamEvent, **problems(404, 409)}, tags=["runs"])
def stream(
    request: HttpRequest,
    ref: str,
    after: Annotated[int, Query(ge=0, le=LAST_SEQ)] = 0,
    last_event_id: Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=LAST_SEQ)] = None,
) -> StreamingHttpResponse:
    """Server-sent events: `entry` for each entry behind `Last-Event-ID` or `after`, `status`, and `end` after DONE."""
    refuse_unknown(request, ("after",))
    user = request.user
    assert isinstance(user, User)
    events = events_of(find_run(ref, request.user).id, after if last_event_id is None else last_event_id, user.pk)
    connections.close_all()  # a stream would keep the request's connection as long as it lasts
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=HEADERS)


@router.post("/runs/{ref}/cancel", auth=may(CONTROL), response=CHANGED, tags=["control"])
def cancel(request: HttpRequest, ref: str, given: ReasonBody) -> RunDetail:
    """No new call starts; an open one is awaited or reconciled; then the run is `cancelled`."""
    return answers.run_detail(
        cancel_run(run_id=find_run(ref, request.user).id, reason=given.reason, actor=actor_of(request))
    )


@router.post("/runs/{ref}/hold", auth=may(CONTROL), response=CHANGED, tags=["control"])
def hold(request: HttpRequest, ref: str, given: ReasonBody) -> RunDetail:
    """Parks the run at its next checkpoint until somebody resumes it."""
    return answers.run_detail(
        hold_run(run_id=find_run(ref, request.user).id, reason=given.reason, actor=actor_of(request))
    )


@router.post("/runs/{ref}/resume", auth=may(CONTROL), response=CHANGED, tags=["control"])
def resume(request: HttpRequest, ref: str, given: ReasonBody) -> RunDetail:
    """Lifts a hold, a divergence or a brake, which gets its budget once more."""
    return answers.run_detail(
        resume_run(run_id=find_run(ref, request.user).id, reason=given.reason, actor=actor_of(request))
    )


@router.post("/runs/{ref}/release", auth=may(CONTROL), response=CHANGED, tags=["control"])
def release(request: HttpRequest, ref: str, given: ReasonBody) -> RunDetail:
    """Lifts a quarantine; the count of crashes starts anew."""
    return answers.run_detail(
        release_run(run_id=find_run(ref, request.user).id, reason=given.reason, actor=actor_of(request))
    )


@router.post("/runs/{ref}/retry", auth=may(CONTROL), response=CHANGED, tags=["control"])
def retry(request: HttpRequest, ref: str, given: ReasonBody) -> RunDetail:
    """What waits for a backoff is tried again now."""
    return answers.run_detail(
        retry_run(run_id=find_run(ref, request.user).id, reason=given.reason, actor=actor_of(request))
    )


@router.post("/runs/{ref}/note", auth=may(CONTROL), response=CHANGED, tags=["control"])
def note(request: HttpRequest, ref: str, given: NoteBody) -> RunDetail:
    """A remark in the journal; it changes nothing."""
    return answers.run_detail(note_run(run_id=find_run(ref, request.user).id, text=given.text, actor=actor_of(request)))


@router.post("/runs/{ref}/signal", auth=may(CONTROL), response=CHANGED, tags=["waits"])
def signal(request: HttpRequest, ref: str, given: SignalBody) -> RunDetail:
    """Kept in order until the run waits for a signal of this name; also one that comes early."""
    run = signal_run(
        run_id=find_run(ref, request.user).id,
        name=given.name,
        payload=given.payload,
        signal_id=given.id,
        actor=actor_of(request),
    )
    return answers.run_detail(run)


@router.post("/runs/{ref}/answer", auth=may(ANSWER), response=CHANGED | problems(410), tags=["waits"])
def answer(request: HttpRequest, ref: str, given: AnswerBody) -> RunDetail:
    """Answers the question of entry `seq`, once."""
    run = answer_ask(run_id=find_run(ref, request.user).id, seq=given.seq, value=given.value, actor=actor_of(request))
    return answers.run_detail(run)


@router.get("/intents", auth=may(VIEW), response={200: IntentList, **problems()}, tags=["intents"])
def intents(request: HttpRequest, filters: Query[IntentFilters]) -> IntentList:
    """Unsettled intents, of parked runs and of those under way; the oldest first within a page."""
    refuse_unknown(request, IntentFilters.model_fields)
    found, following = list_intents(state=filters.state, after=filters.cursor, limit=filters.limit, user=request.user)
    return IntentList(items=[answers.intent(view) for view in found], next_cursor=str(following) if following else None)


@router.post(
    "/runs/{ref}/intents/{seq}/approval",
    auth=may(APPROVE),
    response=CHANGED | problems(410),
    tags=["intents"],
)
def approval(request: HttpRequest, ref: str, seq: Seq, given: ApprovalBody) -> RunDetail:
    """Approves, denies, edits or asks back about one intent, under the digest that the decider saw."""
    decided = decide_approval(
        run_id=find_run(ref, request.user).id,
        seq=seq,
        verdict=given.verdict,
        digest=given.digest or "",
        note=given.note,
        args=given.args,
        actor=actor_of(request),
        groups=groups_of(request.user),
    )
    return answers.run_detail(decided)


@router.post(
    "/runs/{ref}/intents/{seq}/question",
    auth=may(ANSWER),
    response=CHANGED,
    tags=["intents"],
)
def question(request: HttpRequest, ref: str, seq: Seq, given: NoteBody) -> RunDetail:
    """Answers what an approver asked back about an intent; then it can be approved."""
    run = answer_question(run_id=find_run(ref, request.user).id, seq=seq, text=given.text, actor=actor_of(request))
    return answers.run_detail(run)
