"""/bulk, and the query of GET /runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from recovery.bulk import carry_out_bulk
from runs.models import AgentScope, BulkAct, Run
from tests.api.conftest import Cast, Desk, problem
from tests.rig.ledger import wait_until

ORDER = {"verb": "cancel", "query": "status:open", "reason": "the bank is closed"}


@pytest.fixture
def runs(cast: Cast, desk: Desk) -> list[str]:
    """Three runs that wait for approval, and one that is done."""
    for amount in (9_000, 9_000, 9_000, 100):
        cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": amount}})
    desk.work()
    return [str(run.id) for run in Run.objects.filter(status="awaiting_approval").order_by("id")]


def carried(act: dict[str, Any]) -> None:
    going = BulkAct.objects.filter(pk=act["id"], ended_at=None)
    wait_until(lambda: not carry_out_bulk(lambda: False) and not going.exists(), "it is carried out")


def test_runs_are_asked_for_by_a_query(cast: Cast, runs: list[str]) -> None:
    found = cast("victor").get("/runs", query="status:open -agent:nobody").json()["items"]
    assert {item["id"] for item in found} == set(runs)
    assert cast("victor").get("/runs", query="status:open", status="done").json()["items"] == []


def test_a_query_that_cannot_be_read_is_422_with_its_place(cast: Cast) -> None:
    refusal = problem(cast("victor").get("/runs", query="agent:desk status:lost"))
    assert (refusal["status"], refusal["type"]) == (422, "urn:holdfast:problem:query-invalid")
    assert (refusal["position"], refusal["length"], refusal["field"]) == (18, 4, "query")
    assert refusal["said"].startswith("There is no status lost.") and refusal["said"] in refusal["detail"]


def test_a_dry_run_counts_and_writes_nothing(cast: Cast, runs: list[str]) -> None:
    told = cast("olga").post("/bulk", ORDER | {"query": "", "dry_run": True})
    assert told.status_code == 200 and (told.json()["acts"], told.json()["skips"]) == (3, 1)
    by_status = {one["status"]: one for one in told.json()["by_status"]}
    assert by_status["done"] == {"status": "done", "acts": 0, "skips": [{"runs": 1, "why": "it has ended"}]}
    assert BulkAct.objects.count() == 0


def test_ordered_it_is_carried_out_and_tells_what_became_of_each(cast: Cast, runs: list[str]) -> None:
    made = cast("olga").post("/bulk", ORDER | {"expected": 3, "request_id": "one"})
    assert made.status_code == 202 and made.json()["left"] == 3
    assert cast("olga").post("/bulk", ORDER | {"expected": 3, "request_id": "one"}).json()["id"] == made.json()["id"]
    carried(made.json())
    seen = cast("victor").get(f"/bulk/{made.json()['id']}").json()
    assert (seen["done"], seen["skipped"], seen["failed"], seen["left"]) == (3, 0, 0, 0)
    assert seen["ended_at"] is not None and seen["actor"] == "olga" and seen["stopped_by"] == ""
    page = cast("victor").get(f"/bulk/{seen['id']}/items", limit=2).json()
    rest = cast("victor").get(f"/bulk/{seen['id']}/items", cursor=page["next_cursor"]).json()
    assert [item["run_id"] for item in page["items"] + rest["items"]] == runs and rest["next_cursor"] is None
    assert {item["outcome"] for item in page["items"]} == {"done"}
    assert [act["id"] for act in cast("victor").get("/bulk").json()["items"]] == [seen["id"]]
    journal = cast("victor").get(f"/runs/{runs[0]}/journal").json()["items"]
    assert [e["body"]["reason"] for e in journal if e["kind"] == "CONTROL"] == [ORDER["reason"]]


def test_orders_that_make_no_sense_are_refused(cast: Cast, runs: list[str]) -> None:
    wrong: list[tuple[dict[str, Any], int, str]] = [
        ({}, 422, "bulk-uncounted"), ({"expected": 2}, 409, "bulk-count-changed"),
        ({"expected": 3, "reason": " "}, 422, "reason-missing"), ({"expected": 3, "query": "x:>"}, 409, "bulk-empty"),
        ({"expected": 3, "query": "status:lost"}, 422, "query-invalid"), ({"verb": "explode"}, 422, "fields-refused"),
        ({"verb": "resume"}, 409, "bulk-empty"), ({"nonsense": 1}, 422, "fields-refused"),
    ]  # fmt: skip
    for more, status, name in wrong:
        refusal = problem(cast("olga").post("/bulk", ORDER | more))
        assert (refusal["status"], refusal["type"].rpartition(":")[2]) == (status, name), more
    assert BulkAct.objects.count() == 0
    for path in ("/bulk/7", "/bulk/7/items"):
        assert problem(cast("olga").get(path))["status"] == 404


def test_it_is_stopped_once(cast: Cast, runs: list[str]) -> None:
    made = cast("olga").post("/bulk", ORDER | {"verb": "hold"}).json()
    stopped = cast("max").post(f"/bulk/{made['id']}/stop").json()
    assert (stopped["stopped_by"], stopped["left"]) == ("max", 3)
    assert problem(cast("max").post(f"/bulk/{made['id']}/stop"))["type"].endswith("bulk-ended")


def test_whoever_sees_some_agents_alone_acts_on_and_sees_those_alone(cast: Cast, runs: list[str]) -> None:
    made = cast("max").post("/bulk", ORDER | {"verb": "hold"}).json()
    AgentScope.objects.create(user=User.objects.get(username="olga"), agent="nobody")
    olga = cast("olga")
    assert olga.post("/bulk", ORDER | {"dry_run": True}).json()["acts"] == 0
    assert problem(olga.post("/bulk", ORDER | {"expected": 3}))["status"] == 409
    assert problem(olga.get(f"/bulk/{made['id']}"))["status"] == 404
    assert problem(olga.post(f"/bulk/{made['id']}/stop"))["status"] == 404
    assert olga.get("/bulk").json()["items"] == []
