"""GET|POST /drains, /drains/preview, GET|DELETE /drains/{id}, POST /drains/{id}/extend."""

from __future__ import annotations

from recovery.drains import advance_drains
from runs.access import set_scope
from runs.models import Gate
from tests.api.conftest import Cast, Desk, problem

BODY = {"scope": "agent:desk", "timeout": 30, "reason": "deploy 8"}


def test_a_drain_is_ordered_followed_extended_and_lifted(cast: Cast, desk: Desk) -> None:
    made = cast("olga").post("/drains", BODY)
    assert made.status_code == 201
    drain = made.json()
    assert (drain["scope"], drain["reason"], drain["owner"], drain["phase"]) == (
        "agent:desk", "deploy 8", "olga", "stopping",
    )  # fmt: skip
    assert (drain["remaining"], drain["not_yet_at"], drain["oldest_age"]) == (0, ["desk"], None)
    assert 0 < drain["seconds_left"] <= 30 and drain["began_with"] == 0
    again = problem(cast("max").post("/drains", BODY))
    assert (again["status"], again["drain_id"], again["owner"]) == (409, drain["id"], "olga")
    moved = cast("max").post(f"/drains/{drain['id']}/extend", {"seconds": 60, "reason": "slow"}).json()
    assert moved["deadline"] > drain["deadline"]
    desk.worker.session.renew(desk.worker.connections)
    seen = cast("victor").get(f"/drains/{drain['id']}").json()
    assert seen["id"] == drain["id"] and seen["warnings"] == moved["warnings"]
    lifted = cast("max").send("DELETE", f"/drains/{drain['id']}", {"reason": "not now"})
    assert lifted.status_code == 200 and lifted.json()["phase"] == "lifted" and lifted.json()["lifted_by"] == "max"
    assert problem(cast("max").send("DELETE", f"/drains/{drain['id']}"))["status"] == 409
    assert problem(cast("max").get("/drains/4711"))["status"] == 404


def test_a_drain_is_lifted_without_a_body_too(cast: Cast, desk: Desk) -> None:
    drain = cast("olga").post("/drains", BODY).json()
    assert cast("olga").send("DELETE", f"/drains/{drain['id']}", b"").status_code == 200
    assert Gate.objects.get().lift_reason == "lifted over the API"


def test_drains_are_listed_and_gates_name_theirs(cast: Cast, desk: Desk) -> None:
    first = cast("olga").post("/drains", BODY | {"scope": "all"}).json()
    second = cast("olga").post("/drains", BODY).json()
    cast("olga").send("DELETE", f"/drains/{first['id']}")
    assert [item["id"] for item in cast("victor").get("/drains").json()["items"]] == [second["id"], first["id"]]
    (page,) = [cast("victor").get("/drains", limit=1).json()]
    assert page["next_cursor"] == str(second["id"])
    assert [item["id"] for item in cast("victor").get("/drains", in_force="true").json()["items"]] == [second["id"]]
    (gate,) = cast("victor").get("/gates").json()["items"]
    assert (gate["scope"], gate["drain"]) == ("agent:desk", second["id"])
    cast("olga").send("DELETE", f"/gates/{gate['id']}", {"reason": "by its gate"})
    advance_drains()
    assert cast("victor").get(f"/drains/{second['id']}").json()["phase"] == "lifted"


def test_a_preview_changes_nothing_and_warns(cast: Cast, desk: Desk) -> None:
    cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})
    seen = cast("olga").post("/drains/preview", {"scope": "agent:desk", "timeout": 1}).json()
    assert (seen["parked"], seen["in_flight"], seen["workers"]) == ({"queued": 1}, [], ["desk"])
    assert seen["too_short"] and seen["longest_timeout"] > 1 and "below the longest timeout" in seen["warnings"][0]
    assert not Gate.objects.exists()
    ordered = cast("olga").post("/drains", BODY | {"timeout": 1}).json()
    assert ordered["warnings"] == seen["warnings"]


def test_what_cannot_be_drained_is_refused(cast: Cast, desk: Desk) -> None:
    assert problem(cast("olga").post("/drains", BODY | {"scope": "everything"}))["status"] == 422
    assert problem(cast("olga").post("/drains", BODY | {"timeout": 0}))["status"] == 422
    assert problem(cast("olga").post("/drains", BODY | {"timeout": 1e9}))["status"] == 422
    assert problem(cast("olga").post("/drains", {"scope": "all"}))["status"] == 422
    for name in ("ada", "victor"):
        assert problem(cast(name).post("/drains", BODY))["status"] == 403


def test_a_drain_reaches_no_further_than_the_scope(cast: Cast, desk: Desk) -> None:
    drain = cast("max").post("/drains", BODY).json()
    everything = cast("max").post("/drains", BODY | {"scope": "all"}).json()
    set_scope("olga", ["post"], actor="test")
    for scope in ("all", "agent:patient", "worker:desk", "region:local"):
        assert problem(cast("olga").post("/drains", BODY | {"scope": scope}))["status"] == 403
        assert problem(cast("olga").post("/drains/preview", {"scope": scope}))["status"] == 403
    for path in (f"/drains/{drain['id']}", f"/drains/{drain['id']}/extend"):
        method, body = ("POST", {"seconds": 5, "reason": "x"}) if path.endswith("extend") else ("DELETE", {})
        assert problem(cast("olga").send(method, path, body))["status"] == 404
    assert problem(cast("olga").send("DELETE", f"/drains/{everything['id']}"))["status"] == 403
    assert [item["id"] for item in cast("olga").get("/drains").json()["items"]] == [everything["id"]]
    seen = cast("olga").get(f"/drains/{everything['id']}").json()
    assert seen["began_with"] is None
    assert len(seen["warnings"]) == 1 and " of post@1 may take " in seen["warnings"][0], "others' agents are not named"
    assert cast("olga").post("/drains", BODY | {"scope": "agent:post"}).status_code == 201
