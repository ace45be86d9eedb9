"""Fork: a run that begins as a copy of another's first entries and goes on by itself.

The order is the safety argument:
1. What is copied never changes (entries up to a frontier), so it is read, verified and judged before anything is held.
2. Payloads are copied before the entries that point to them are committed.
3. Under the source's head, in one transaction: the fork's journal and row, and the word in the source's journal that
   it has a relative now. A decision of the source that was not written before that word is refused and made again; so
   each call of the source either is in its journal before the fork exists, or is compared with the fork's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from journal.append import append_person, new_run_id
from journal.encoding import canonical
from journal.entries import Draft, Kind
from journal.payloads import payload_store
from journal.prefixes import Row, changed_body, copy_payloads, read_prefix, refuse_erased, write_prefix
from recovery.errors import ForkDiverges
from recovery.fork_edits import Edit, bodies
from recovery.fork_edits import checked as check_edits
from recovery.fork_preview import preview as preview
from recovery.fork_requests import ForkRequest
from recovery.fork_source import Source, refuse, release_of
from recovery.models import Purpose, Replay
from recovery.pins import code_of, ended, lock_stage
from recovery.redecided import SAME, counts
from recovery.replays import kept_edits, order
from runs.approvals import database_now
from runs.audit import record
from runs.commands import control, fresh, given_reason, locked_run, tell
from runs.dispatch import dispatch
from runs.errors import BusinessIdTaken
from runs.models import ENDED, Release, Run
from runs.state import RunState
from runs.trees import business_id_of, started_by

FORK_V = 2  # of START and CONTROL: who does not know families of forks may drive none of their runs
WAITS = "waits for a worker"
STANDS = timedelta(minutes=15)  # that an answer is taken again
MOST_LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class Cut:
    """What is going to be written. `state`: of the copied entries. `pin`: the release, if it is another than theirs."""

    source: Run
    at: int
    state: RunState
    rows: Sequence[Row]
    release: Release
    pin: Mapping[str, Any] | None
    edits: Sequence[Edit]
    reason: str
    actor: str
    request: ForkRequest


def fork_run(
    *,
    run_id: UUID,
    at: int,
    reason: str,
    actor: str,
    edits: Sequence[Mapping[str, Any]] = (),
    release: str | None = None,
    request_id: str | None = None,
) -> Run:
    """The fork: it begins with entries 1 to `at` and goes on under the release that they end under, or under `release`
    (a version, `agent@version` or a digest). `edits`: `[{seq, value}]`, see recovery.fork_edits.
    The same order under the same `request_id` gives the same fork again.

    With edits, or under another release, a worker that serves it has to decide the copied part as it is recorded.

    Raises ReasonMissing, BadInput, StatelessRun, NotAFrontier, OtherAgent, UnknownRelease, ReleaseRetired,
    BusinessIdTaken, ForkEditRefused, ForkRequestTaken, ReleaseUnserved, TooManyReplays, NotJudgedYet, ForkDiverges,
    PrefixDamaged, PrefixErased, PayloadMissing, PayloadAltered, PayloadStoreDown.
    """
    said = given_reason(reason)
    source = Source(fresh(run_id))
    state = source.state_at(at)
    target = release_of(source.run, state, release)
    checked = check_edits(edits, source.entries[:at], state, target)
    request = ForkRequest.of(run_id, request_id, at, said, actor, release, [edit.order for edit in checked])
    if (before := made_before(request, source.run, state, target)) is not None:
        return before
    pin = judged(source.run, at, state, target, checked, said, actor)
    cut = Cut(source.run, at, state, read_prefix(run_id, at), target, pin, checked, said, actor, request)
    fork_id = new_run_id()
    copy_payloads(cut.rows, fork_id, payload_store())
    edited = bodies(checked, cut.rows, fork_id, payload_store(), actor)
    with locked_run(run_id, even_ended=True) as held:
        if (before := request.fork()) is not None:  # somebody was quicker with the same request
            return before
        refuse_erased(run_id, at)
        write_fork(fork_id, cut, held.run, edited)
        tell_source(fork_id, cut, held.run)
    transaction.on_commit(functools.partial(dispatch, fork_id, target.id))
    return fresh(fork_id)


def made_before(request: ForkRequest, run: Run, state: RunState, release: Release) -> Run | None:
    """The fork that this request has made already. Raises ForkRequestTaken, ReleaseRetired, BusinessIdTaken."""
    if (before := request.fork()) is not None:
        return before
    try:
        refuse(run, state, release)
    except BusinessIdTaken:  # by the fork that the same request has just made, perhaps
        if (before := request.fork()) is None:
            raise
    return before


def judged(
    run: Run, at: int, state: RunState, release: Release, edits: Sequence[Edit], reason: str, actor: str
) -> dict[str, Any] | None:
    """What PIN says, if the fork goes on under another release than its copied entries end under.

    Raises ReleaseUnserved, TooManyReplays, NotJudgedYet, ForkDiverges.
    """
    moves = release.id != state.release_id
    if not moves and not edits:
        return None
    orders = [edit.order for edit in edits]
    judgement = ended(
        judged_before(run, release, at, orders) or order(run, release, Purpose.FORK, actor=actor, at=at, edits=orders)
    )
    if judgement.verdict != SAME:
        raise differs(judgement)
    if not moves:
        return None
    return {"release": release.id, "from": state.release_id, "reason": reason, "verdict": SAME,
            "code": code_of(judgement), "as_of": at}  # fmt: skip


def judged_before(run: Run, release: Release, at: int, edits: Sequence[Mapping[str, Any]]) -> Replay | None:
    """The same question, if a worker is at it or has answered it lately: what takes longer than one waits for is asked
    once. The copied entries never change, so the answer holds."""
    asked = Replay.objects.filter(run=run, release=release, purpose=Purpose.FORK, at=at, error="")
    lately = asked.filter(Q(ended_at=None) | Q(ended_at__gt=Now() - STANDS)).order_by("-id")[:MOST_LOOKED_AT]
    wanted = canonical(kept_edits(edits))
    return next((each for each in lately if canonical(each.edits) == wanted), None)


def differs(judgement: Replay) -> ForkDiverges:
    result: Mapping[str, Any] = judgement.result or {}
    told = result.get("divergences", ())
    said = [str(one["says"]) for one in told if counts(one["kind"], one["effect"], Purpose.FORK)]
    if judgement.error or result.get("stopped_why"):
        said.append(judgement.error or result["stopped_why"])
    return ForkDiverges(judgement.verdict, result.get("first"), said, judgement.pk)


def write_fork(fork_id: UUID, cut: Cut, source: Run, edited: Mapping[int, bytes]) -> None:
    """The fork's journal and row. The caller holds the source's head. Raises ReleaseRetired, BusinessIdTaken."""
    lock_stage(cut.release)
    refuse(source, cut.state, cut.release)
    lineage = source.lineage or source.id
    start = edited.get(1, cut.rows[0].entry.body)
    begun = {1: changed_body(start, {"fork": origin(cut, lineage)})}
    versions = {1: FORK_V}
    write_prefix(fork_id, cut.rows, source.id, cut.state.copied_to, {**edited, **begun}, versions)
    last_seq = cut.at
    if more := beginning(cut):
        last_seq = append_person(fork_id, more, request_id=None, actor=cut.actor).last_seq or last_seq
    lasts = cut.release.content.get("deadline")
    Run.objects.create(
        id=fork_id, agent=source.agent, release=cut.release, labels=cut.state.labels, priority=source.priority,
        reason=WAITS, as_of_seq=last_seq,
        business_id=business_id_of(cut.release.content.get("unique"), cut.state.labels),
        forked_from=source, forked_at=cut.at, lineage=lineage, tools=sorted(cut.state.tools),
        deadline_at=timezone.now() + timedelta(seconds=lasts) if lasts else None,
    )  # fmt: skip


def origin(cut: Cut, root: UUID) -> dict[str, Any]:
    """What START says of the fork. `began`: POSIX seconds by the database's clock; `askers`: who wanted it so far."""
    askers = cut.state.askers | {started_by(cut.source.id), cut.actor}
    return {
        "run": str(cut.source.id), "at": cut.at, "reason": cut.reason, "by": cut.actor, "root": str(root),
        "began": database_now(), "askers": sorted(askers), "edits": [edit.record for edit in cut.edits],
    }  # fmt: skip


def beginning(cut: Cut) -> list[Draft]:
    """The fork's own first entries: whoever orders it lifts what stopped the source there."""
    state, written = cut.state, []
    if cut.pin is not None:
        written.append(Draft(Kind.PIN, dict(cut.pin)))
    why = f"forked: {cut.reason}"
    if state.held is not None or state.diverged is not None or state.braked is not None:
        written.append(control("resume", why))
    if state.quarantined is not None:
        written.append(control("release", why))
    return written


def tell_source(fork_id: UUID, cut: Cut, source: Run) -> None:
    """It has a relative now, and the first run of a family knows its family."""
    told = {"fork": str(fork_id), "at": cut.at, "reason": cut.reason} | cut.request.told
    if source.status in ENDED:
        word = Draft(Kind.NOTE, {"text": f"forked at entry {cut.at}: {cut.reason}"} | told)
    else:
        word = Draft(Kind.CONTROL, {"verb": "fork"} | told, v=FORK_V)
    append_person(source.id, [word], request_id=cut.request.id, actor=cut.actor)
    if source.lineage is None:
        Run.objects.filter(id=source.id).update(lineage=source.id)
    record(cut.actor, "run.fork", run=source.id, agent=source.agent, reason=cut.reason, at=cut.at, fork=str(fork_id),
           release=str(cut.release))  # fmt: skip
    transaction.on_commit(functools.partial(tell, fork_id))
