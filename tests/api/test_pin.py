"""POST /runs/{id}/pin: the verdict before, the run after, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from recovery import pins, replays
from recovery.bulk import carry_out_bulk
from runs.models import Run
from runs.sdk import RunView, WaitFor, flow
from tests.api.conftest import Cast, Desk, problem
from tests.rig.versions import judges_at_once, next_version, serve_also, serving

WHY = {"reason": "v1 is wrong"}


@pytest.fixture
def run(cast: Cast, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A run that waits for approval; the desk serves the next version of its agent too, and judges at once."""
    made: dict[str, Any] = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 9_000}}).json()
    desk.work()
    judges_at_once(desk.worker, monkeypatch)
    serving(desk.worker, next_version(made["id"]))
    return made


def test_moved_it_is_queued_under_the_new_release(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    answer = cast("olga").post(f"/runs/{run['id']}/pin", WHY | {"release": "desk@2"})
    moved = answer.json()
    assert answer.status_code == 200 and moved["id"] == run["id"]
    assert (moved["status"], moved["reason"], moved["pin"]["version"]) == ("queued", "pinned to desk@2 by olga", "2")
    desk.work()
    intents = cast("ada").get("/intents", state="awaiting_approval").json()["items"]
    assert "pinned to another release" in intents[0]["why"]


def test_judged_alone_nothing_changes(cast: Cast, run: dict[str, Any]) -> None:
    before = Run.objects.values().get(id=run["id"])
    verdict = cast("max").post(f"/runs/{run['id']}/pin", {"release": "2", "dry_run": True}).json()
    assert verdict["verdict"] == "compatible" and verdict["error"] == "" and verdict["as_of_seq"] > 2
    assert Run.objects.values().get(id=run["id"]) == before


def test_what_would_decide_otherwise_is_409_with_the_reasons(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    @flow(name="desk", version="3")
    def waits(run: RunView) -> Any:
        yield WaitFor("something else")

    serving(desk.worker, serve_also(waits))
    refused = problem(cast("olga").post(f"/runs/{run['id']}/pin", WHY | {"release": "3"}))
    assert (refused["status"], refused["type"].rpartition(":")[2]) == (409, "pin-refused")
    assert refused["verdict"] in ("fork needed", "refused") and refused["reasons"][0]["says"]
    judged = cast("olga").post(f"/runs/{run['id']}/pin", {"release": "3", "dry_run": True}).json()
    assert judged["reasons"] == [{k: each[k] for k in ("seq", "code", "says")} for each in refused["reasons"]]


def test_what_no_worker_has_judged_in_time_is_202(
    cast: Cast, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "send", lambda *message: True)
    monkeypatch.setattr(pins, "WAIT", 0.05)
    answer = cast("olga").post(f"/runs/{run['id']}/pin", WHY | {"release": "2"})
    assert answer.status_code == 202 and isinstance(answer.json()["replay"], int)


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [({"release": "1"}, 409, "pinned-already"), ({"release": "77"}, 422, "unknown-release"),
     ({"release": "2", "reason": " "}, 422, "reason-missing"), ({"release": "asks@1"}, 409, "other-agent"),
     ({"release": "2\0"}, 422, "fields-refused")],
)  # fmt: skip
def test_what_is_refused(cast: Cast, run: dict[str, Any], body: dict[str, str], status: int, name: str) -> None:
    refused = problem(cast("olga").post(f"/runs/{run['id']}/pin", WHY | body))
    assert (refused["status"], refused["type"].rpartition(":")[2]) == (status, name)


def test_who_may_not_and_who_does_not_see_the_agent(cast: Cast, run: dict[str, Any]) -> None:
    assert cast("ada").post(f"/runs/{run['id']}/pin", WHY | {"release": "2"}).status_code == 403
    assert cast("nobody").post(f"/runs/{run['id']}/pin", WHY | {"release": "2"}).status_code == 401


def test_many_are_counted_by_a_dry_run_and_then_moved(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    body = {"verb": "pin", "query": "release:desk@1", "release": "desk@2"}
    answer = cast("olga").post("/bulk", body | {"dry_run": True})
    assert answer.status_code == 202 and answer.json()["verb"] == "judge"
    for _ in range(3):
        carry_out_bulk(lambda: False)
    judged = cast("olga").get(f"/bulk/{answer.json()['id']}").json()
    assert judged["verdicts"] == {"compatible": 1, "fork_needed": 0, "refused": 0, "unjudged": 0}
    assert (judged["release"], judged["left"]) == ("desk@2", 0) and judged["ended_at"] is not None
    moved = cast("olga").post("/bulk", body | WHY | {"judged": judged["id"], "expected": 1})
    assert moved.status_code == 202 and moved.json()["judged"] == judged["id"]
    carry_out_bulk(lambda: False)
    assert str(Run.objects.get(id=run["id"]).release) == "desk@2"
    assert problem(cast("olga").post("/bulk", {"verb": "pin", "query": ""} | WHY))["status"] == 422
    assert problem(cast("olga").post("/bulk", body | WHY | {"release": "desk@99"}))["status"] == 404
