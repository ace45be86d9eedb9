"""Stages of releases: promote, canary, rollback, retire; alone, and many at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from runs.errors import (
    AgentNotFound,
    CanaryIsCurrent,
    CanaryTaken,
    NothingBefore,
    ReasonMissing,
    ReleaseNeeded,
    ReleaseNotFound,
    ReleaseUnserved,
    RunsError,
    ShareInvalid,
)
from runs.fleet import needs
from runs.models import AuditRecord, Release, Run, WorkerSession
from runs.sdk import start
from runs.stages import promote_release, retire_release, roll_back, set_canary
from tests.runs.staged import NAME, leave, release, serve, stage_of

WHY: dict[str, Any] = {"reason": "tested", "actor": "max"}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def seven() -> Release:
    """Current and served."""
    made = release("7")
    serve(made)
    return made


@pytest.fixture
def eight(seven: Release) -> Release:
    """A candidate, served by another worker."""
    made = release("8")
    serve(made, name="w2")
    return made


def test_a_promoted_release_takes_the_place_of_the_current_one(seven: Release, eight: Release) -> None:
    changed = promote_release(release_id="staged@8", **WHY)
    assert (stage_of("7"), stage_of("8")) == (("retiring", 0), ("current", 0))
    assert changed.id == eight.id and changed.staged_by == "max" and changed.replaced_id == seven.id
    told = AuditRecord.objects.get(act="release.promote", actor="max")
    assert (told.subject, told.agent, told.reason) == ("staged@8", NAME, "tested")
    assert (told.detail["before"], told.detail["instead_of"]) == ("candidate", "staged@7")


def test_promoting_the_current_one_changes_and_records_nothing(seven: Release) -> None:
    before = AuditRecord.objects.count(), Release.objects.get().staged_at
    assert promote_release(release_id=seven.id, **WHY).stage == "current"
    assert (AuditRecord.objects.count(), Release.objects.get().staged_at) == before


def test_a_canary_has_its_share_changed_and_ended(seven: Release, eight: Release) -> None:
    for share, stage in ((1, "canary"), (100, "canary"), (0, "candidate"), (0, "candidate")):
        set_canary(release_id=eight.id, share=share, **WHY)
        assert stage_of("8") == (stage, share) and stage_of("7") == ("current", 0)
    told = AuditRecord.objects.filter(act="release.canary").order_by("id")
    assert [row.detail["share"] for row in told] == [1, 100, 0]


def test_what_cannot_be_a_canary_is_refused(seven: Release, eight: Release) -> None:
    with pytest.raises(CanaryIsCurrent):
        set_canary(release_id=seven.id, share=10, **WHY)
    set_canary(release_id=eight.id, share=10, **WHY)
    serve(nine := release("9"))
    with pytest.raises(CanaryTaken, match="staged@8 takes 10 of 100 new runs, by max"):
        set_canary(release_id=nine.id, share=10, **WHY)
    for share in (-1, 101, 0.5, True):
        with pytest.raises(ShareInvalid):
            set_canary(release_id=nine.id, share=share, **WHY)
    for name in ("staged@10", "f" * 64, "", "@", "staged@\0", "\udcff"):
        with pytest.raises(ReleaseNotFound):
            promote_release(release_id=name, **WHY)
    with pytest.raises(ReasonMissing):
        promote_release(release_id=nine.id, reason=" ", actor="max")


def test_a_release_that_no_live_worker_serves_takes_no_new_runs_unless_somebody_insists(seven: Release) -> None:
    nine = release("9")
    for act in (
        lambda **more: promote_release(release_id=nine.id, **WHY, **more),
        lambda **more: set_canary(release_id=nine.id, share=5, **WHY, **more),
    ):
        with pytest.raises(ReleaseUnserved, match="Start a worker that serves staged@9"):
            act()
    leave(serve(nine, name="gone"))
    serve(nine, name="silent", lease=-1.0)
    with pytest.raises(ReleaseUnserved):
        promote_release(release_id=nine.id, **WHY)
    assert promote_release(release_id=nine.id, anyway=True, **WHY).stage == "current"


def test_a_rollback_is_one_step_and_not_a_second(seven: Release, eight: Release) -> None:
    promote_release(release_id=eight.id, **WHY)
    assert roll_back(agent=NAME, **WHY).version == "7"
    assert (stage_of("7"), stage_of("8")) == (("current", 0), ("candidate", 0))
    with pytest.raises(NothingBefore, match="staged@7 is current, by max at"):
        roll_back(agent=NAME, **WHY)
    promote_release(release_id=eight.id, **WHY)
    assert roll_back(agent=NAME, **WHY).version == "7"
    with pytest.raises(AgentNotFound):
        roll_back(agent="nobody", **WHY)


def test_a_rollback_to_what_nobody_serves_any_more_is_refused(seven: Release, eight: Release) -> None:
    promote_release(release_id=eight.id, **WHY)
    Release.objects.filter(id=seven.id).update(stage="retired")
    leave_all("w1")
    with pytest.raises(ReleaseUnserved, match="staged@7"):
        roll_back(agent=NAME, **WHY)
    assert roll_back(agent=NAME, anyway=True, **WHY).stage == "current"


def leave_all(name: str) -> None:
    for session in WorkerSession.objects.filter(name=name).values_list("id", flat=True):
        leave(session)


def test_a_release_retires_when_nothing_needs_it(seven: Release, eight: Release) -> None:
    run = start(NAME)
    with pytest.raises(ReleaseNeeded, match=r"staged@7: new runs of staged are pinned to it; 1 run queued\."):
        retire_release(release_id=seven.id, **WHY)
    promote_release(release_id=eight.id, **WHY)
    (need,) = needs(Release.objects.get(id=seven.id))
    assert (need.kind, need.status, need.count, need.examples) == ("runs", "queued", 1, [run])
    with pytest.raises(ReleaseNeeded):
        retire_release(release_id=seven.id, **WHY)
    Run.objects.filter(id=run).update(
        status="done", ended_at=connection.ops.adapt_datetimefield_value(eight.created_at)
    )
    assert retire_release(release_id=seven.id, **WHY).stage == "retired"
    assert retire_release(release_id=seven.id, **WHY).stage == "retired"
    set_canary(release_id=seven.id, share=1, **WHY)
    with pytest.raises(ReleaseNeeded, match="it takes 1 of 100 new runs"):
        retire_release(release_id=seven.id, **WHY)


def all_at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    ready = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            ready.wait(60)
            return call()
        except RunsError as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_of_twenty_promotes_at_once_each_comes_after_another(seven: Release) -> None:
    serve(*(made := [release(str(number)) for number in range(8, 18)]), name="w2")
    calls = [lambda one=one: promote_release(release_id=one.id, **WHY) for one in made * 2]
    assert not [answer for answer in all_at_once(calls) if isinstance(answer, RunsError)]
    assert Release.objects.filter(agent=NAME, stage="current").count() == 1
    chain, current = [], Release.objects.get(agent=NAME, stage="current")
    for told in AuditRecord.objects.filter(act="release.promote", actor="max").order_by("id"):
        chain.append((told.detail["instead_of"], told.subject))
    assert all(before[1] == after[0] for before, after in pairwise(chain)), "one after the other"
    assert chain[-1][1] == str(current)


def test_of_twenty_canaries_at_once_one_wins_and_the_others_are_told_which(seven: Release) -> None:
    serve(*(made := [release(str(number)) for number in range(8, 28)]), name="w2")
    answers = all_at_once([lambda one=one: set_canary(release_id=one.id, share=5, **WHY) for one in made])
    (winner,) = [answer for answer in answers if isinstance(answer, Release)]
    assert all(str(winner) in str(answer) for answer in answers if isinstance(answer, CanaryTaken))
    assert sum(isinstance(answer, CanaryTaken) for answer in answers) == 19


def test_twenty_rollbacks_at_once_go_back_one_step(seven: Release, eight: Release) -> None:
    serve(nine := release("9"), name="w3")
    for one in (eight, nine):
        promote_release(release_id=one.id, **WHY)
    answers = all_at_once([lambda: roll_back(agent=NAME, **WHY)] * 20)
    assert [answer.version for answer in answers if isinstance(answer, Release)] == ["8"]
    assert sum(isinstance(answer, NothingBefore) for answer in answers) == 19
    assert (stage_of("7")[0], stage_of("8")[0], stage_of("9")[0]) == ("retiring", "current", "candidate")


def test_no_start_falls_between_two_current_releases(seven: Release, eight: Release) -> None:
    def swing() -> None:
        for number in ("8", "7") * 10:
            promote_release(release_id=f"staged@{number}", **WHY)

    def begin() -> list[Any]:
        return [start(NAME) for _ in range(30)]

    answers = all_at_once([swing, begin, begin, begin])
    assert not [answer for answer in answers if isinstance(answer, RunsError)]
    assert Run.objects.filter(release__in=[seven, eight]).count() == 90
