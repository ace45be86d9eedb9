"""GET /runs, /runs/{id}/journal, /runs/{id}/state, /workers, /releases."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import Cast, Desk, problem


def start(cast: Cast, agent: str = "desk", cents: int = 1, **more: Any) -> str:
    answer = cast("olga").post("/runs", {"agent": agent, "input": {"amount_cents": cents}} | more)
    run_id: str = answer.json()["id"]
    return run_id


def ids(answer: Any) -> list[str]:
    return [item["id"] for item in answer.json()["items"]]


def test_a_list_is_newest_first_and_its_cursor_goes_on_where_it_stopped(cast: Cast, desk: Desk) -> None:
    made = [start(cast) for _ in range(5)][::-1]
    victor = cast("victor")
    first = victor.get("/runs", limit=2)
    second = victor.get("/runs", limit=2, cursor=first.json()["next_cursor"])
    third = victor.get("/runs", limit=2, cursor=second.json()["next_cursor"])
    assert ids(first) + ids(second) + ids(third) == made
    assert third.json()["next_cursor"] is None


def test_filters_narrow_the_list_and_add_up(cast: Cast, desk: Desk) -> None:
    plain = start(cast)
    waits = start(cast, cents=9_000, labels={"team": "a", "x": "y:z"})
    key = start(cast, request_key="ticket-9", labels={"team": "a"})
    desk.work()
    victor = cast("victor")
    assert set(ids(victor.get("/runs", status="done"))) == {plain, key}
    assert set(ids(victor.get("/runs", status=["done", "awaiting_approval"]))) == {plain, key, waits}
    assert ids(victor.get("/runs", label=["team:a", "x:y:z"])) == [waits]
    assert set(ids(victor.get("/runs", label="team:a"))) == {waits, key}
    assert ids(victor.get("/runs", label=["team:a", "team:b"])) == []
    assert ids(victor.get("/runs", q="ticket-9")) == [key]
    assert ids(victor.get("/runs", q="post")) == [] and set(ids(victor.get("/runs", q="desk"))) == {plain, waits, key}
    started = victor.get(f"/runs/{waits}").json()["created_at"]
    assert set(ids(victor.get("/runs", started_before=started))) == {plain}
    assert set(ids(victor.get("/runs", started_after=started))) == {waits, key}
    assert ids(victor.get("/runs", q=plain)) == [plain]
    assert ids(victor.get("/runs", agent="post")) == []
    release = victor.get(f"/runs/{plain}").json()["pin"]["release"]
    assert len(ids(victor.get("/runs", release=release))) == len(ids(victor.get("/runs", release="desk@1"))) == 3


def test_a_journal_is_read_in_pieces_without_gaps(cast: Cast, desk: Desk) -> None:
    run_id = start(cast)
    desk.work()
    whole = cast("victor").get(f"/runs/{run_id}/journal").json()
    assert [entry["seq"] for entry in whole["items"]] == list(range(1, len(whole["items"]) + 1))
    assert whole["next_cursor"] is None
    assert whole["items"][-1]["kind"] == "DONE"
    read: list[Any] = []
    after: str | None = "0"
    while after is not None:
        piece = cast("victor").get(f"/runs/{run_id}/journal", after=after, limit=2).json()
        read += piece["items"]
        after = piece["next_cursor"]
    assert read == whole["items"]
    for entry in read:
        assert set(entry) == {"seq", "kind", "body", "step", "epoch", "actor", "recorded_at"}
        assert entry["recorded_at"].endswith("Z")


def test_the_state_is_the_fold_now_or_at_a_seq(cast: Cast, desk: Desk) -> None:
    run_id = start(cast, cents=9_000, labels={"team": "a"})
    desk.work()
    now = cast("victor").get(f"/runs/{run_id}/state").json()
    (step,) = now["steps"]
    assert (
        step["tool"] == "refund" and step["state"] == "awaiting_approval" and step["approval"]["verdict"] == "requested"
    )
    assert now["unsettled"] == [1] and now["done"] is None and now["labels"] == {"team": "a"}
    assert now["frontier"] == step["seq"] - 1
    before = cast("victor").get(f"/runs/{run_id}/state", at=1).json()
    assert before["seq"] == 1 and before["steps"] == [] and before["input"] == {"amount_cents": 9_000}


def test_a_state_beyond_the_end_is_the_state_now(cast: Cast, desk: Desk) -> None:
    run_id = start(cast)
    assert cast("victor").get(f"/runs/{run_id}/state", at=999).json()["seq"] == 1
    assert problem(cast("victor").get(f"/runs/{run_id}/state", at=0))["status"] == 422


def test_workers_tell_their_lease_and_what_they_hold(cast: Cast, desk: Desk) -> None:
    (worker,) = cast("victor").get("/workers").json()["items"]
    assert worker["name"] == "desk" and worker["runs"] == 0 and worker["ended_at"] is None
    assert worker["expires_at"] > worker["heartbeat_at"]


def test_releases_are_told_with_their_whole_content(cast: Cast, desk: Desk) -> None:
    listed = {item["agent"]: item for item in cast("victor").get("/releases").json()["items"]}
    assert listed["desk"]["version"] == "1" and len(listed["desk"]["id"]) == 64
    assert listed["desk"]["content"]["tools"][0]["effect"] == "keyed"


def test_a_large_result_is_filled_in_and_a_huge_one_stays_a_pointer(cast: Cast, desk: Desk) -> None:
    victor = cast("victor")
    for characters in (100_000, 2_000_000):
        run_id = cast("olga").post("/runs", {"agent": "verbose", "input": {"characters": characters}}).json()["id"]
        desk.work()
        done = victor.get(f"/runs/{run_id}/journal").json()["items"][-1]
        assert done["body"]["result"]["$"] == "payload" and done["body"]["result"]["size"] == characters
        assert victor.get(f"/runs/{run_id}/state").json()["done"]["result"]["$"] == "payload"
        result = victor.get(f"/runs/{run_id}").json()["result"]
        assert result == ("x" * characters if characters < 2**20 else done["body"]["result"])


def test_a_large_input_and_large_arguments_are_told(cast: Cast, desk: Desk) -> None:
    run_id = (
        cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1, "x": "x" * 100_000}}).json()["id"]
    )
    desk.work()
    assert cast("victor").get(f"/runs/{run_id}").json()["status"] == "done"
    assert cast("victor").get(f"/runs/{run_id}/state").json()["input"]["$"] == "payload"


def test_intents_are_read_in_pieces(cast: Cast, desk: Desk) -> None:
    made = [start(cast, cents=9_000) for _ in range(3)]
    desk.work()
    read: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        piece = cast("ada").get("/intents", limit=1, **cursor).json()
        read += [item["run_id"] for item in piece["items"]]
        if piece["next_cursor"] is None:
            break
        cursor = {"cursor": piece["next_cursor"]}
    assert read == made
    assert cast("ada").get("/intents", state="in_doubt").json() == {"items": [], "next_cursor": None}
    assert problem(cast("ada").get("/intents", cursor="nonsense"))["status"] == 422


def test_a_page_costs_as_many_statements_however_long_it_is(cast: Cast, desk: Desk) -> None:
    for _ in range(8):
        start(cast)
    desk.work()
    victor = cast("victor")
    victor.get("/runs", limit=1)
    counts = []
    for limit in (1, 8):
        with CaptureQueriesContext(connection) as statements:
            assert len(ids(victor.get("/runs", limit=limit))) == limit
        counts.append(len(statements))
        assert not any("awaits_signals" in said["sql"] for said in statements)  # nobody is shown it
    assert counts[0] == counts[1]
