"""POST /runs/{id}/signal, answer, note, retry; what GET /runs/{id} says of waits, children and bounds."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from runs.models import Run
from runs.short_ids import short_id
from tests.api import agents
from tests.api.conftest import Cast, Desk, problem


def started(cast: Cast, desk: Desk, agent: str, input: Any = None, **more: Any) -> str:
    run_id: str = cast("olga").post("/runs", {"agent": agent, "input": input} | more).json()["id"]
    desk.work()
    return run_id


def shown(cast: Cast, run_id: str) -> Any:
    return cast("victor").get(f"/runs/{run_id}").json()


def kinds(cast: Cast, run_id: str) -> list[str]:
    return [entry["kind"] for entry in cast("victor").get(f"/runs/{run_id}/journal").json()["items"]]


def test_a_question_says_what_it_takes_and_is_answered_once(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "asker")
    (wait,) = shown(cast, run_id)["waits"]
    assert wait["kind"] == "ask" and wait["what"] == "Which size?" and wait["answer_schema"] == {"type": "integer"}
    assert wait["due"] and wait["released_by"] == "Somebody answers." and wait["options"] is None
    answer = {"seq": wait["seq"], "value": 42}
    assert cast("olga").post(f"/runs/{run_id}/answer", answer).status_code == 200
    late = problem(cast("max").post(f"/runs/{run_id}/answer", answer))
    assert late["status"] == 409 and late["actor"] == "olga" and late["at"]
    desk.work()
    (wait,) = shown(cast, run_id)["waits"]
    assert wait["options"] == ["red", "blue"]
    cast("olga").post(f"/runs/{run_id}/answer", {"seq": wait["seq"], "value": "blue"})
    desk.work()
    assert shown(cast, run_id)["result"] == {"size": 42, "colour": "blue"}


def test_what_is_no_answer_is_refused_with_the_reason(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "asker")
    seq = shown(cast, run_id)["waits"][0]["seq"]
    wrong = problem(cast("olga").post(f"/runs/{run_id}/answer", {"seq": seq, "value": "large"}))
    assert wrong["status"] == 422 and "integer" in wrong["detail"]
    assert problem(cast("olga").post(f"/runs/{run_id}/answer", {"seq": 1, "value": 42}))["status"] == 404
    assert problem(cast("olga").post(f"/runs/{run_id}/answer", {"seq": seq}))["errors"][0]["field"] == "value"


def test_an_answer_that_comes_too_late_is_410(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "hasty")
    while shown(cast, run_id)["status"] != "done":  # its deadline has passed when it is looked at
        Run.objects.filter(id=run_id, status="waiting").update(status="queued", wake_at=None)
        desk.work()
    late = problem(cast("olga").post(f"/runs/{run_id}/answer", {"seq": 3, "value": "yes"}))
    assert late["status"] == 410 and late["verdict"] == "expired" and late["at"]


def test_signals_are_taken_in_order_early_ones_too(cast: Cast, desk: Desk) -> None:
    run_id = cast("olga").post("/runs", {"agent": "waiter"}).json()["id"]
    for n in (1, 1, 2):  # the second is the first again
        assert (
            cast("olga").post(f"/runs/{run_id}/signal", {"name": "paid", "payload": n, "id": str(n)}).status_code == 200
        )
    desk.work()
    assert shown(cast, run_id)["result"] == [1, 2]
    late = problem(cast("olga").post(f"/runs/{run_id}/signal", {"name": "paid"}))
    assert late["status"] == 409 and late["run_status"] == "done"


def test_a_wait_names_its_signal_and_an_id_with_another_payload_is_refused(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "waiter")
    (wait,) = shown(cast, run_id)["waits"]
    assert (wait["kind"], wait["what"], wait["due"]) == ("signal", "paid", None)
    assert wait["released_by"] == "The signal paid."
    cast("olga").post(f"/runs/{run_id}/signal", {"name": "other", "payload": 1, "id": "x"})
    taken = problem(cast("olga").post(f"/runs/{run_id}/signal", {"name": "other", "payload": 2, "id": "x"}))
    assert taken["status"] == 409 and taken["at"]


def test_a_note_lands_in_the_journal_and_changes_nothing(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "waiter")
    before = shown(cast, run_id)
    after = cast("olga").post(f"/runs/{run_id}/note", {"text": "the customer called"}).json()
    assert after == before | {"last_seq": before["last_seq"] + 1}
    entry = cast("victor").get(f"/runs/{run_id}/journal").json()["items"][-1]
    assert (entry["kind"], entry["actor"], entry["body"]["text"]) == ("NOTE", "olga", "the customer called")
    assert problem(cast("olga").post(f"/runs/{run_id}/note", {"text": " "}))["status"] == 422


def test_what_waits_for_a_backoff_is_tried_again_at_once(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "patient")
    (wait,) = shown(cast, run_id)["waits"]
    assert wait["state"] == "pending" and wait["due"] and wait["released_by"] == "A worker sends it when it is due."
    assert cast("olga").post(f"/runs/{run_id}/retry", {"reason": "it is up again"}).status_code == 200
    desk.work()
    assert shown(cast, run_id)["status"] == "done" and len(set(agents.CALLS)) == 1
    other = started(cast, desk, "waiter")
    assert problem(cast("olga").post(f"/runs/{other}/retry", {"reason": "why not"}))["type"].endswith(":not-retrying")


def test_a_parent_shows_its_children_and_they_show_it(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "parent", 2)
    told = shown(cast, run_id)
    assert [(child["status"], child["step"], child["agent"]) for child in told["children"]] == [
        ("awaiting_approval", 1, "desk"),
        ("awaiting_approval", 2, "desk"),
    ]
    assert all(
        wait["released_by"].startswith(f"Its child ends; now desk {short_id(UUID(wait['child']))} awaits approval: ")
        for wait in told["waits"]
    )
    assert [wait["child"] for wait in told["waits"]] == [child["id"] for child in told["children"]]
    assert shown(cast, told["children"][0]["id"])["parent"] == run_id
    for parent in (run_id, short_id(UUID(run_id))):
        listed = cast("victor").get("/runs", parent=parent).json()["items"]
        assert {item["id"] for item in listed} == {child["id"] for child in told["children"]}
    assert problem(cast("victor").get("/runs", parent="r-00000000"))["status"] == 404
    cast("olga").post(f"/runs/{run_id}/cancel", {"reason": "the whole order is off"})
    desk.work()
    assert {child["status"] for child in shown(cast, run_id)["children"]} == {"cancelled"}


def test_bounds_are_shown_with_what_of_them_is_used(cast: Cast, desk: Desk) -> None:
    run_id = started(cast, desk, "patient", labels={"order": "o-1"}, priority=7)
    told = shown(cast, run_id)
    assert told["priority"] == 7 and told["deadline"] and told["business_id"] == "order:o-1"
    assert told["budget"]["steps"] == 5 and told["used"]["steps"] == 1 and told["used"]["seconds"] > 0
    assert [item["id"] for item in cast("victor").get("/runs", q="order:o-1").json()["items"]] == [run_id]
    taken = problem(cast("olga").post("/runs", {"agent": "patient", "labels": {"order": "o-1"}}))
    assert taken["status"] == 409 and taken["run_id"] == run_id
    own = started(cast, desk, "waiter", deadline=60)
    assert shown(cast, own)["deadline"] < told["deadline"] and shown(cast, own)["budget"] is None


@pytest.mark.parametrize(
    "bound", [{"deadline": 0}, {"deadline": "2031-01-01T00:00:00"}, {"deadline": "60"}, {"priority": 10}]
)
def test_a_bound_that_is_none_is_refused(cast: Cast, desk: Desk, bound: dict[str, Any]) -> None:
    (refused,) = problem(cast("olga").post("/runs", {"agent": "waiter"} | bound))["errors"][:1]
    assert refused["field"].startswith(next(iter(bound)))
