"""GET /agents, /workers, /releases; gates."""

from __future__ import annotations

import time
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.gates import unknown_in
from runs.models import WorkerSession
from tests.api import agents
from tests.api.conftest import Cast, Desk, problem


def pages(cast: Cast, path: str, **query: Any) -> list[Any]:
    """Every item, read in pages of two."""
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = cast("victor").get(path, limit=2, **({"cursor": cursor} if cursor else {}), **query).json()
        assert len(page["items"]) <= 2
        found += page["items"]
        cursor = page["next_cursor"]
    return found


def test_an_agent_tells_its_tools_its_releases_and_what_a_journal_costs_its_runs(cast: Cast, desk: Desk) -> None:
    for _ in range(2):
        cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})
    desk.work()
    desk.worker.session.renew(desk.worker.connections)
    agent = cast("victor").get("/agents/desk").json()
    (tool,) = agent["tools"]
    assert (agent["version"], agent["driver"], agent["durability"]) == ("1", "flow", "journal")
    assert (tool["name"], tool["effect"], tool["approval"]) == ("refund", "keyed", "predicate")
    assert tool["parameters"]["properties"]["amount_cents"] == {"title": "Amount Cents", "type": "integer"}
    (release,) = agent["releases"]
    assert release["version"] == "1" and release["workers"] == 1
    cost = agent["journaling"]
    assert cost["runs"] == 2 and cost["commits"] >= 2 and cost["entries"] >= 4 and cost["bytes"] > 500
    assert cost["milliseconds"] > 0


def test_an_agent_without_runs_has_no_costs_yet(cast: Cast, desk: Desk) -> None:
    agent = cast("victor").get("/agents/patient").json()
    assert agent["journaling"] == {"runs": 0, "commits": 0, "entries": 0, "bytes": 0, "milliseconds": None}
    assert agent["budget"]["steps"] == 5 and agent["deadline"] == 86_400 and agent["unique"] == "order"
    assert problem(cast("victor").get("/agents/nobody"))["type"].endswith(":agent-not-found")


def test_agents_and_releases_are_told_in_pages(cast: Cast, desk: Desk) -> None:
    names = [agent["name"] for agent in pages(cast, "/agents")]
    assert names == sorted(set(names)) and {"desk", "post"} <= set(names)
    assert [(release["agent"]) for release in pages(cast, "/releases")] == names
    wrong = problem(cast("victor").get("/releases", cursor="desk"))
    assert wrong["status"] == 422 and wrong["path"] == "cursor" and "'desk'" in wrong["detail"]


def test_a_wrong_cursor_is_named(cast: Cast) -> None:
    for path in ("/runs", "/intents", "/workers", "/gates"):
        refused = problem(cast("victor").get(path, cursor="page-2"))
        assert refused["status"] == 422 and refused["errors"][0]["field"] == "cursor", path


def test_a_gate_whose_scope_names_nothing_says_so(cast: Cast, desk: Desk) -> None:
    for scope, said in (
        ("tool:rfund", "No agent has a tool rfund"),
        ("agent:dsek", "No agent is called dsek"),
        ("release:desk@nope", "There is no release desk@nope"),
        ("worker:desk-1", "No worker is called desk-1"),
        ("region:mars", "No worker is in region mars"),
    ):
        placed = cast("olga").post("/gates", {"scope": scope, "reason": "a slip"})
        assert (placed.status_code, placed.json()["warnings"]) == (201, [f"{said}: nothing is stopped so far."])
        assert cast("max").send("DELETE", f"/gates/{placed.json()['id']}", {"reason": "a slip"}).status_code == 200
        assert cast("olga").post("/drains/preview", {"scope": scope}).json()["warnings"][0].startswith(said)
        drained = cast("olga").post("/drains", {"scope": scope, "reason": "a slip"}).json()
        assert drained["warnings"][0].startswith(said)
    for scope in ("all", "tool:refund", "agent:desk", "release:desk@1", "worker:desk", "region:local"):
        assert cast("olga").post("/gates", {"scope": scope, "reason": "known"}).json()["warnings"] == []
    WorkerSession.objects.update(name="desk-77", pool="prefork")
    assert unknown_in("worker:desk") == "", "a pool's children are those of their parent"


def test_a_gate_says_where_it_is_in_force(cast: Cast, desk: Desk) -> None:
    placed = cast("olga").post("/gates", {"scope": "tool:refund", "reason": "look first"})
    assert placed.status_code == 201
    gate = placed.json()
    assert (gate["scope"], gate["reason"], gate["actor"]) == ("tool:refund", "look first", "olga")
    assert (gate["in_force_at"], gate["not_yet_at"]) == ([], ["desk"])
    assert gate.pop("warnings") == []
    (listed,) = cast("victor").get("/gates").json()["items"]
    assert listed == gate
    again = problem(cast("max").post("/gates", {"scope": "tool:refund", "reason": "me too"}))
    assert again["status"] == 409
    lifted = cast("max").send("DELETE", f"/gates/{gate['id']}", {"reason": "looked"})
    assert lifted.status_code == 200 and lifted.json()["lifted_at"]
    assert cast("victor").get("/gates").json()["items"] == []
    assert problem(cast("max").send("DELETE", f"/gates/{gate['id']}", {"reason": "again"}))["status"] == 404


def test_a_gate_needs_a_scope_and_a_reason_and_lifting_it_too(cast: Cast, desk: Desk) -> None:
    assert problem(cast("olga").post("/gates", {"scope": "planet:earth", "reason": "why"}))["status"] == 422
    assert problem(cast("olga").post("/gates", {"scope": "all", "reason": ""}))["type"].endswith(":reason-missing")
    gate = cast("olga").post("/gates", {"scope": "all", "reason": "stop"}).json()["id"]
    assert problem(cast("olga").send("DELETE", f"/gates/{gate}", b""))["type"].endswith(":reason-missing")
    assert cast("olga").send("DELETE", f"/gates/{gate}?reason=go", b"").status_code == 200


def test_a_call_under_way_is_told_with_the_worker_that_is_on_it(cast: Cast, desk: Desk) -> None:
    agents.LATE.clear()
    run_id = cast("olga").post("/runs", {"agent": "looker"}).json()["id"]
    with desk.at_work():
        try:
            under_way = [item for item in seen_until(cast, "in_doubt") if item["run_id"] == run_id]
        finally:
            agents.LATE.set()
    assert [(item["tool"], item["state"], item["worker"]) for item in under_way] == [("look", "in_doubt", "desk")]
    assert cast("victor").get("/intents", state="in_doubt").json()["items"] == []


def seen_until(cast: Cast, state: str) -> list[Any]:
    """The intents of this state, once there are any."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if items := cast("victor").get("/intents", state=state).json()["items"]:
            return list(items)
        time.sleep(0.02)
    raise AssertionError(f"nothing was ever {state}")


def test_the_list_of_intents_asks_as_often_for_many_runs_as_for_one(cast: Cast, desk: Desk) -> None:
    asked = []
    for _ in range(2):
        for _ in range(4):
            cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 9_000}})
        desk.work()
        cast("victor").get("/intents")  # whoever asked first notes that the token was used
        with CaptureQueriesContext(connection) as queries:
            items = cast("victor").get("/intents", state="awaiting_approval").json()["items"]
        asked.append((len(items), len(queries)))
    assert [many for many, _ in asked] == [4, 8]
    assert asked[0][1] == asked[1][1]
