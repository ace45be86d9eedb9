"""GET /releases/…, POST promote, canary, retire, rollback: shapes, refusals, scopes."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from runs.access import set_scope
from runs.models import AuditRecord, Run, WorkerSession
from runs.sdk import Budget, start
from tests.api.conftest import Cast, problem
from tests.api.test_metrics import numbers
from tests.runs.staged import release, serve

WHY = {"reason": "tested"}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def staged() -> None:
    """7 is current, 8 a candidate; two workers serve 8 with different code."""
    serve(release("7"), name="old", code="a" * 64)
    eight = release("8", budget=Budget(steps=9))
    serve(eight, name="new-1", code="b" * 64)
    serve(eight, name="new-2", code="c" * 64)


def test_a_release_tells_its_stage_its_runs_and_who_serves_it_with_which_code(cast: Cast, staged: None) -> None:
    run = start("staged")
    Run.objects.filter(id=run).update(status="waiting_for_version")
    told = cast("victor").get("/releases/staged@7").json()
    assert (told["agent"], told["stage"], told["share"], told["staged_by"]) == ("staged", "current", 0, "system")
    assert told["open_runs"] == {"waiting_for_version": 1} and told["stranded_since"]
    assert told["served_by"] == ["old"] and told["codes"] == {"a" * 64: ["old"]}
    assert told["content"]["version"] == "7"
    assert told["warnings"] == ["1 run waits for a worker that serves it"]
    other = cast("victor").get("/releases/staged@8").json()
    assert other["codes"] == {"b" * 64: ["new-1"], "c" * 64: ["new-2"]} and "2 different codes" in other["warnings"][0]
    listed = cast("victor").get("/releases", agent="staged").json()["items"]
    assert [one["version"] for one in listed] == ["8", "7"] and listed[1] == told
    assert cast("victor").get(f"/releases/{told['id']}").json() == told


def test_from_candidate_to_canary_to_current_to_retired_and_back(cast: Cast, staged: None) -> None:
    max = cast("max")
    told = max.post("/releases/staged@8/canary", WHY | {"share": 10}).json()
    assert (told["stage"], told["share"], told["staged_by"]) == ("canary", 10, "max")
    assert max.post("/releases/staged@8/promote", WHY).json()["stage"] == "current"
    assert cast("victor").get("/releases/staged@7/needs").json()["may_retire"] is True
    assert max.post("/releases/staged@7/retire", WHY).json()["stage"] == "retired"
    back = cast("olga").post("/agents/staged/rollback", WHY).json()
    assert (back["version"], back["stage"], back["staged_by"]) == ("7", "current", "olga")
    acts = AuditRecord.objects.filter(act__startswith="release.").exclude(actor="system").order_by("id")
    assert [(row.act, row.actor, row.door, row.subject) for row in acts] == [
        ("release.canary", "max", "api", "staged@8"), ("release.promote", "max", "api", "staged@8"),
        ("release.retire", "max", "api", "staged@7"), ("release.rollback", "olga", "api", "staged@7"),
    ]  # fmt: skip


def test_an_operator_may_end_a_canary_and_not_begin_one(cast: Cast, staged: None) -> None:
    refused = problem(cast("olga").post("/releases/staged@8/canary", WHY | {"share": 1}))
    assert refused["status"] == 403 and refused["permission"] == "runs.stage_release"
    assert cast("max").post("/releases/staged@8/canary", WHY | {"share": 50}).status_code == 200
    assert cast("olga").post("/releases/staged@8/canary", WHY | {"share": 0}).json()["stage"] == "candidate"
    assert problem(cast("ada").post("/releases/staged@8/canary", WHY | {"share": 0}))["status"] == 403


def test_what_cannot_be_done_is_409_and_says_why(cast: Cast, staged: None) -> None:
    max = cast("max")
    run = start("staged")
    refused = problem(max.post("/releases/staged@7/retire", WHY))
    assert refused["status"] == 409
    assert refused["needs"] == ["new runs of staged are pinned to it", "1 run queued"]
    needs = max.get("/releases/staged@7/needs").json()
    assert [need["kind"] for need in needs["needs"]] == ["current", "runs"]
    assert needs["needs"][1]["examples"] == [str(run)] and needs["may_retire"] is False
    release("9")
    assert problem(max.post("/releases/staged@9/promote", WHY))["type"].endswith(":release-unserved")
    assert max.post("/releases/staged@9/promote", WHY | {"anyway": True}).status_code == 200
    taken = problem(cast("olga").post("/runs", {"agent": "staged", "release": "7"}))
    assert (taken["status"], taken["current"], taken["stage"]) == (409, "staged@9", "retiring")
    assert problem(max.post("/releases/staged@6/promote", WHY))["status"] == 404
    assert problem(max.post("/releases/staged@8/promote", {"reason": " "}))["status"] == 422
    for share in (-1, 101, "10", 1.5, None):
        assert problem(max.post("/releases/staged@8/canary", WHY | {"share": share}))["status"] == 422


def test_two_releases_are_compared(cast: Cast, staged: None) -> None:
    told = cast("victor").get("/releases/staged@7/diff", to="staged@8").json()
    assert (told["before"], told["after"], told["same"]) == ("staged@7", "staged@8", False)
    assert told["fields"][0] == {"place": "budget.steps", "kind": "added", "before": None, "after": 9}
    assert cast("victor").get("/releases/staged@7/diff", to="staged@7").json()["same"] is True


def test_rates_are_of_the_runs_started_since(cast: Cast, staged: None) -> None:
    ids = [start("staged") for _ in range(6)]
    now = timezone.now()
    Run.objects.filter(id__in=ids[:3]).update(status="done", ended_at=now, tokens=100, person_acted=True)
    Run.objects.filter(id=ids[3]).update(status="failed", ended_at=now, tokens=300, denials=1)
    Run.objects.filter(id=ids[4]).update(status="needs_reconciliation", doubts=1)
    told: dict[str, Any] = cast("victor").get("/releases/staged@7/rates").json()
    assert (told["runs"], told["finished"], told["done"], told["failed"], told["cancelled"]) == (6, 4, 3, 1, 0)
    assert (told["in_doubt"], told["denied"], told["asked"], told["tokens"]) == (1, 1, 3, 150.0)
    later = cast("victor").get("/releases/staged@7/rates", since=now.isoformat().replace("+00:00", "Z")).json()
    assert later["runs"] == 0 and later["tokens"] is None
    Run.objects.filter(id=ids[5]).update(forked_from=ids[4], forked_at=1)  # a person began it in the middle
    assert cast("victor").get("/releases/staged@7/rates").json()["runs"] == 5


def test_what_is_outside_of_a_scope_is_404(cast: Cast, staged: None) -> None:
    set_scope("max", ["another"], actor="test")
    max = cast("max")
    for path in ("/releases/staged@7", "/releases/staged@7/needs", "/releases/staged@7/rates"):
        assert problem(max.get(path))["status"] == 404
    assert problem(max.get("/releases/staged@7/diff", to="staged@8"))["status"] == 404
    for verb in ("promote", "retire"):
        assert problem(max.post(f"/releases/staged@8/{verb}", WHY))["status"] == 404
    assert problem(max.post("/releases/staged@8/canary", WHY | {"share": 1}))["status"] == 404
    assert problem(max.post("/agents/staged/rollback", WHY))["status"] == 404
    assert max.get("/releases").json()["items"] == []


def test_metrics_tell_runs_workers_and_codes_of_the_releases_in_use(cast: Cast, staged: None) -> None:
    run = start("staged")
    Run.objects.filter(id=run).update(status="waiting_for_version")
    told = numbers()
    assert told["holdfast_release_runs", "7", "current", "staged"] == 1 and told["holdfast_runs_stranded"] == 1
    assert told["holdfast_release_workers", "8", "candidate", "staged"] == 2
    assert told["holdfast_release_codes", "8", "candidate", "staged"] == 2
    assert told["holdfast_runs_stranded_oldest_age_seconds"] >= 0
    assert told["holdfast_runs_unserved"] == 0  # the sweep is not through yet: its release is served


def test_runs_that_wait_for_a_person_under_a_release_that_nobody_serves_are_counted_too(
    cast: Cast, staged: None
) -> None:
    run = start("staged")
    Run.objects.filter(id=run).update(status="awaiting_approval")
    WorkerSession.objects.update(ended_at=timezone.now())
    told = numbers()
    assert (told["holdfast_runs_unserved"], told["holdfast_runs_stranded"]) == (1, 0)
