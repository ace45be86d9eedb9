"""POST /runs/{id}/cancel, hold, resume, release."""

from __future__ import annotations

from typing import Any

import pytest

from runs.models import Run
from tests.api.conftest import Cast, Desk, problem

WHY = {"reason": "the bank is closed"}


@pytest.fixture
def run(cast: Cast, desk: Desk) -> dict[str, Any]:
    """A run that waits for approval."""
    made = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 9_000}}).json()
    desk.work()
    return made  # type: ignore[no-any-return]


def test_held_and_resumed_it_is_where_it_was(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    held = cast("olga").post(f"/runs/{run['id']}/hold", WHY).json()
    assert held["status"] == "held" and "olga" in held["reason"] and "the bank is closed" in held["reason"]
    assert cast("olga").post(f"/runs/{run['id']}/resume", WHY).status_code == 200
    desk.work()
    assert cast("olga").get(f"/runs/{run['id']}").json()["status"] == "awaiting_approval"
    kinds = [e for e in cast("olga").get(f"/runs/{run['id']}/journal").json()["items"] if e["kind"] == "CONTROL"]
    assert [(e["body"]["verb"], e["actor"], e["body"]["reason"]) for e in kinds] == [
        ("hold", "olga", WHY["reason"]),
        ("resume", "olga", WHY["reason"]),
    ]


@pytest.mark.parametrize("verb", ["hold", "cancel", "note", "resume", "release", "retry"])
def test_a_reason_may_hold_what_no_column_can(cast: Cast, desk: Desk, run: dict[str, Any], verb: str) -> None:
    body = {"text" if verb == "note" else "reason": "the bank\0is closed"}
    answer = cast("max").post(f"/runs/{run['id']}/{verb}", body)
    assert answer.status_code == (200 if verb in ("hold", "cancel", "note") else 409)
    desk.work()
    last = cast("max").get(f"/runs/{run['id']}/journal").json()["items"]
    assert answer.status_code == 409 or any("the bank\0is closed" in entry["body"].values() for entry in last)


def test_cancelled_it_ends_and_says_why(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    assert cast("max").post(f"/runs/{run['id']}/cancel", WHY).status_code == 200
    desk.work()
    ended = cast("max").get(f"/runs/{run['id']}").json()
    assert ended["status"] == "cancelled" and ended["cancelled"] == WHY["reason"] and ended["result"] is None


def test_an_ended_run_is_409_for_every_verb(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    cast("max").post(f"/runs/{run['id']}/cancel", WHY)
    desk.work()
    for verb in ("cancel", "hold", "resume", "release"):
        refusal = problem(cast("olga").post(f"/runs/{run['id']}/{verb}", WHY))
        assert refusal["status"] == 409 and refusal["run_status"] == "cancelled" and refusal["at"]


def test_without_a_reason_every_verb_is_422(cast: Cast, run: dict[str, Any]) -> None:
    for verb in ("cancel", "hold", "resume", "release"):
        for body in ({}, {"reason": ""}, {"reason": " "}, {"reason": None}):
            assert problem(cast("olga").post(f"/runs/{run['id']}/{verb}", body))["status"] == 422


def test_there_is_nothing_to_resume_or_release(cast: Cast, run: dict[str, Any]) -> None:
    assert problem(cast("olga").post(f"/runs/{run['id']}/resume", WHY))["type"].endswith(":not-held")
    assert problem(cast("olga").post(f"/runs/{run['id']}/release", WHY))["type"].endswith(":not-quarantined")


def test_nothing_but_a_release_ends_a_quarantine(cast: Cast, desk: Desk) -> None:
    made = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()
    Run.objects.filter(id=made["id"]).update(crashes=3)
    desk.work()
    for verb in ("hold", "resume"):
        assert cast("olga").post(f"/runs/{made['id']}/{verb}", WHY).json()["status"] == "quarantined"
    assert cast("olga").post(f"/runs/{made['id']}/hold", WHY).status_code == 200
    assert cast("olga").post(f"/runs/{made['id']}/release", WHY).status_code == 200
    desk.work()
    assert cast("victor").get(f"/runs/{made['id']}").json()["status"] == "held"
    assert cast("olga").post(f"/runs/{made['id']}/resume", WHY).status_code == 200
    desk.work()
    assert cast("victor").get(f"/runs/{made['id']}").json()["status"] == "done"


def test_a_quarantined_run_is_released_with_its_crashes_forgotten(cast: Cast, desk: Desk) -> None:
    made = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()
    Run.objects.filter(id=made["id"]).update(crashes=3)
    desk.work()
    stuck = cast("victor").get(f"/runs/{made['id']}").json()
    assert stuck["status"] == "quarantined" and stuck["reason"]
    assert cast("olga").post(f"/runs/{made['id']}/release", WHY).status_code == 200
    desk.work()
    assert cast("victor").get(f"/runs/{made['id']}").json()["status"] == "done"
