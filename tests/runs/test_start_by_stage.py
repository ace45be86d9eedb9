"""Which release a new run is pinned to: by stage and share, sticky by request key, seen at once everywhere."""

from __future__ import annotations

import subprocess
from math import sqrt
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from journal.payloads import payload_store
from runs import registry
from runs.agents import Agent
from runs.errors import NoCurrentRelease, ReleaseTakesNoRuns, RequestKeyTaken, UnknownAgent, UnknownRelease
from runs.models import Release, Run
from runs.moves import Spawn
from runs.sdk import start
from runs.stages import promote_release, retire_release, roll_back, set_canary
from runs.staging import chosen_release
from runs.trees import newborn
from tests.api.conftest import all_at_once
from tests.config.rig import command
from tests.runs.staged import NAME, release, serve, version

WHY: dict[str, Any] = {"reason": "tested", "actor": "max"}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def two() -> tuple[Release, Release]:
    """7 is current, 8 a candidate, both served."""
    made = release("7")
    serve(made)
    other = release("8")
    serve(other, name="w2")
    return made, other


def share(number: int) -> None:
    set_canary(release_id="staged@8", share=number, **WHY)


def version_of(run_id: UUID) -> str:
    return Run.objects.select_related("release").get(id=run_id).release.version


def test_a_start_goes_to_the_current_release_and_a_promotion_holds_from_the_next_one_on(two: Any) -> None:
    assert version_of(start(NAME)) == "7"
    promote_release(release_id="staged@8", **WHY)
    assert version_of(start(NAME)) == "8"
    roll_back(agent=NAME, **WHY)
    assert version_of(start(NAME)) == "7"


def test_a_promotion_that_did_not_commit_changes_nothing(two: Any) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        promote_release(release_id="staged@8", **WHY)
        raise RuntimeError("the process dies before its commit")
    assert version_of(start(NAME)) == "7"
    assert list(Release.objects.order_by("version").values_list("stage", flat=True)) == ["current", "candidate"]


def test_many_keys_are_spread_by_the_share(two: Any) -> None:
    keys = [f"ticket-{number}" for number in range(20_000)]
    for percent in (1, 10, 50, 99, 100):
        share(percent)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM unnest(%s::text[]) AS key WHERE runs_release_for_v1(%s, key) = %s",
                [keys, NAME, two[1].id],
            )
            part = cursor.fetchone()[0] / len(keys)
        wanted = percent / 100
        assert abs(part - wanted) <= 5 * sqrt(wanted * (1 - wanted) / len(keys)) + 1e-9, percent


def test_without_a_key_chance_spreads_them(two: Any) -> None:
    share(30)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM generate_series(1, 20000) WHERE runs_release_for_v1(%s, NULL) = %s", [NAME, two[1].id]
        )
        taken = cursor.fetchone()[0]
    assert abs(taken / 20_000 - 0.3) < 5 * sqrt(0.3 * 0.7 / 20_000)
    assert {chosen_release(NAME, None) for _ in range(60)} == {one.id for one in two}


@given(key=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200), shares=st.data())
@settings(max_examples=60, deadline=None)
def test_who_was_with_the_canary_stays_as_its_share_grows(key: str, shares: Any) -> None:
    with transaction.atomic():
        seven = Release.objects.create(id="7" * 64, agent=NAME, version="7", content={}, stage="current")
        eight = Release.objects.create(id="8" * 64, agent=NAME, version="8", content={}, stage="canary")
        with_it = False
        for percent in sorted(shares.draw(st.lists(st.integers(1, 100), min_size=1, max_size=8))):
            Release.objects.filter(id=eight.id).update(share=percent)
            chosen = {chosen_release(NAME, key) for _ in range(3)}
            assert len(chosen) == 1 and chosen <= {seven.id, eight.id}
            assert not with_it or chosen == {eight.id}
            with_it = chosen == {eight.id}
            assert with_it or percent < 100
        transaction.set_rollback(True)


def test_the_same_request_key_is_the_same_run_whatever_the_stages_are_by_then(two: Any) -> None:
    first = start(NAME, {"a": 1}, request_key="k", release="7")
    promote_release(release_id="staged@8", **WHY)
    assert start(NAME, {"a": 1}, request_key="k", release="7") == first
    Release.objects.update(stage="retired")
    assert start(NAME, {"a": 1}, request_key="k", release="7") == first
    with pytest.raises(RequestKeyTaken):
        start(NAME, {"a": 2}, request_key="k", release="7")


def test_a_named_release_is_started_while_it_is_not_to_end(two: Any) -> None:
    assert version_of(start(NAME, release="8")) == "8"
    share(1)
    assert version_of(start(NAME, release=f"{NAME}@8")) == "8" and version_of(start(NAME, release=two[1].id)) == "8"
    promote_release(release_id="staged@8", **WHY)
    with pytest.raises(ReleaseTakesNoRuns, match=r"staged@7 is retiring; staged@8 is current: start under it"):
        start(NAME, release="7")
    retire_release(release_id="staged@7", **WHY)
    with pytest.raises(ReleaseTakesNoRuns, match=r"staged@7 is retired"):
        start(NAME, release="7")
    with pytest.raises(UnknownRelease, match="staged has 8, 7, not 9"):
        start(NAME, release="9")


def test_where_no_release_takes_new_runs_the_refusal_says_what_to_do(two: Any) -> None:
    Release.objects.filter(version="7").update(stage="retiring")
    with pytest.raises(NoCurrentRelease, match="Promote one of staged@8, staged@7"):
        start(NAME)
    with pytest.raises(UnknownAgent):
        start("nobody")


def test_a_child_is_spread_like_a_start_and_always_the_same_way(two: Any) -> None:
    def child(step: int, **named: Any) -> Any:
        return newborn(None, parent, step, Spawn(NAME, None, **named), 0.0, {}, payload_store())

    parent = start(NAME)
    share(50)
    chosen = {step: child(step).release for step in range(1, 60)}
    assert set(chosen.values()) == {one.id for one in two}
    assert chosen == {step: child(step).release for step in range(1, 60)}
    promote_release(release_id="staged@8", **WHY)
    assert child(1).release == two[1].id and child(1, release="7").release == two[0].id, "retiring, but named by code"
    Release.objects.filter(version="7").update(stage="retired")
    assert child(1, release="7").refused == "staged@7 is retired"
    Release.objects.update(stage="candidate", share=0)
    assert child(1).refused == "no release of staged takes new runs: one has to be promoted"


def test_another_process_sees_a_promotion_with_its_next_start(two: Any, dsn: str, tmp_path: Path) -> None:
    """It has chosen once already, and has its connection and its statement."""
    program = (
        "import sys; from runs.sdk import start; from runs.models import Run\n"
        "for line in sys.stdin: print(Run.objects.get(id=start('staged')).release.version, flush=True)"
    )
    variables = {"DATABASE_URL": dsn, "BROKER_URL": "memory://", "HOLDFAST_DATA": str(tmp_path), "HOLDFAST_DEMO": "0"}
    words = command("shell", "-v", "0", "-c", program, variables=variables)
    other = subprocess.Popen(**words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def next_start() -> str:
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write("\n")
        other.stdin.flush()
        return other.stdout.readline().strip()

    try:
        assert next_start() == "7"
        promote_release(release_id="staged@8", **WHY)
        assert next_start() == "8"
        roll_back(agent=NAME, **WHY)
        assert next_start() == "7"
    finally:
        other.communicate(timeout=60)
    assert other.returncode == 0


# -- what a worker announces -------------------------------------------------------------------------------------------


def stages() -> dict[str, str]:
    return dict(Release.objects.filter(agent=NAME).values_list("version", "stage"))


def test_what_is_announced_is_a_candidate_while_the_current_release_is_served(two: Any) -> None:
    assert stages() == {"7": "current", "8": "candidate"}
    assert Release.objects.get(version="8").staged_by == "system"


def test_it_takes_the_place_of_a_current_release_that_nobody_serves() -> None:
    release("7")
    assert release("8").stage == "current" and stages() == {"7": "retiring", "8": "current"}
    assert release("7").stage == "retiring", "an old worker that comes back takes nothing"


def test_a_worker_may_be_told_to_promote_what_it_announces(settings: Any) -> None:
    serve(release("7"))
    settings.HOLDFAST_PROMOTE = True
    assert release("8").stage == "current"
    serve(Release.objects.get(version="8"), name="w2")
    roll_back(agent=NAME, **WHY)
    assert release("8").stage == "candidate", "it was rolled back: its worker's restart does not bring it back"
    assert release("7").stage == "current"


def test_who_only_starts_runs_takes_the_current_release_whatever_its_own_code_is(monkeypatch: Any) -> None:
    release("7")
    own = version("8")
    registry._announced.discard(own.release_id)
    monkeypatch.setattr("runs.registry.agents", lambda: {own.release_id: own})
    assert version_of(start(NAME)) == "7" and stages()["8"] == "candidate"
    assert version_of(start(NAME, release="8")) == "8"
    assert release("8").stage == "current", "first announced by a worker now, and nobody serves 7"


def test_a_redefined_release_takes_the_stage_of_the_one_before(settings: Any) -> None:
    def stages() -> dict[float, tuple[str, int]]:
        return {row.content["deadline"]: (row.stage, row.share) for row in Release.objects.filter(version="2")}

    settings.HOLDFAST_ALLOW_REDEFINE = True
    serve(release("1"))
    serve(release("2", deadline=10.0), name="w2")
    set_canary(release_id="staged@2", share=20, **WHY)
    release("2", deadline=20.0)
    assert stages() == {10.0: ("retiring", 0), 20.0: ("canary", 20)}
    promote_release(release_id="staged@2", anyway=True, **WHY)
    release("2", deadline=30.0)
    assert stages() == {10.0: ("retiring", 0), 20.0: ("retiring", 0), 30.0: ("current", 0)}
    release("2", deadline=10.0)
    assert stages()[10.0] == ("current", 0), "changed back"


def test_two_workers_that_announce_an_agent_anew_make_one_current_release() -> None:
    made: list[Agent] = [version(str(number)) for number in range(10)]
    all_at_once([lambda one=one: registry.announce_one(one) for one in made * 2])
    assert sorted(stages().values()).count("current") == 1 and len(stages()) == 10
