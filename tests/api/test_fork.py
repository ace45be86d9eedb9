"""GET and POST /runs/{id}/fork: what it would do, the fork, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from runs.access import set_scope
from runs.models import Run
from runs.queries import entries_of
from tests.api.conftest import Cast, Desk, problem
from tests.rig.versions import judges_at_once

WHY = {"at": 1, "reason": "once more"}


@pytest.fixture
def run(cast: Cast, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A run that waits for approval of its first call."""
    made: dict[str, Any] = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 9_000}}).json()
    desk.work()
    judges_at_once(desk.worker, monkeypatch)
    return made


def test_forked_it_names_its_source_and_its_source_names_it(cast: Cast, run: dict[str, Any]) -> None:
    answer = cast("olga").post(f"/runs/{run['id']}/fork", WHY)
    assert answer.status_code == 201
    forked = answer.json()
    assert (forked["forked_from"], forked["forked_at"], forked["status"]) == (run["id"], 1, "queued")
    assert cast("victor").get(f"/runs/{run['id']}").json()["forks"] == [forked["id"]]
    assert entries_of(Run.objects.get(id=forked["id"]).id)[0].body["fork"]["by"] == "olga"


def test_the_preview_tells_what_it_could_repeat(cast: Cast, run: dict[str, Any]) -> None:
    seen = cast("victor").get(f"/runs/{run['id']}/fork?at=1").json()
    assert seen["allowed"] and seen["copied"] == 1 and seen["family"][0]["id"] == run["id"]
    assert any(effect["could_repeat"] for effect in seen["effects"]) and seen["could_repeat"]
    refused = cast("victor").get(f"/runs/{run['id']}/fork?at=3").json()
    assert not refused["allowed"] and "was not settled" in refused["why_not"]


def test_the_approval_names_what_it_repeats(cast: Cast, desk: Desk, run: dict[str, Any]) -> None:
    forked = cast("olga").post(f"/runs/{run['id']}/fork", WHY).json()
    desk.work()
    items = cast("ada").get("/intents?state=awaiting_approval").json()["items"]
    mine = next(item for item in items if item["run_id"] == forked["id"])
    assert [repeat["run"] for repeat in mine["repeats"]] == [run["id"]] or not mine["repeats"], mine


def test_what_is_refused(cast: Cast, run: dict[str, Any]) -> None:
    where = f"/runs/{run['id']}/fork"

    def refused(status: int, name: str, **more: Any) -> dict[str, Any]:
        document = problem(cast("olga").post(where, WHY | more))
        assert (document["status"], document["type"].rpartition(":")[2]) == (status, name)
        return document

    for who in ("victor", "ada"):
        assert cast(who).post(where, WHY).status_code == 403
    assert refused(409, "not-a-frontier", at=3)["before"] == 2
    refused(422, "reason-missing", reason=" ")
    assert refused(422, "fork-edit-refused", edits=[{"seq": 9, "value": 1}])["errors"][0]["field"] == "edits.0"
    refused(422, "unknown-release", release="no-such")
    set_scope("olga", ["another"], actor="max")
    refused(404, "run-not-found")
    assert not Run.objects.filter(forked_from=run["id"]).exists()


def test_sent_twice_under_one_request_it_is_one_fork(cast: Cast, run: dict[str, Any]) -> None:
    order = WHY | {"request_id": "ticket-9"}
    one, other = (cast("olga").post(f"/runs/{run['id']}/fork", order) for _ in range(2))
    assert one.status_code == other.status_code == 201 and one.json()["id"] == other.json()["id"]
    document = problem(cast("max").post(f"/runs/{run['id']}/fork", order))
    assert (document["status"], document["fork"], document["by"]) == (409, one.json()["id"], "olga")
