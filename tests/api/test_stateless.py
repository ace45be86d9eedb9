"""A stateless run through the same door: started, listed, waited for and followed like any other."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from runs.rest import stream
from tests.api.conftest import Cast, Desk, problem


def start(cast: Cast, input: Any = "buy now", **more: Any) -> Any:
    return cast("olga").post("/runs", {"agent": "classify", "input": input} | more).json()


def test_it_ends_with_its_result_and_has_no_journal(cast: Cast, desk: Desk) -> None:
    made = start(cast, labels={"team": "a"})
    assert (made["status"], made["last_seq"], made["waits"], made["children"]) == ("queued", 0, [], [])
    desk.work()
    told = cast("victor").get(f"/runs/{made['id']}").json()
    assert told["status"] == "done" and told["result"] == {"class": "spam"} and told["ended_at"]
    assert cast("victor").get(f"/runs/{made['id']}/journal").json() == {"items": [], "next_cursor": None}
    assert problem(cast("victor").get(f"/runs/{made['id']}/state"))["type"].endswith(":stateless-run")
    assert [item["id"] for item in cast("victor").get("/runs", label="team:a").json()["items"]] == [made["id"]]


def test_it_is_waited_for_and_its_failure_told(cast: Cast, desk: Desk) -> None:
    with desk.at_work():
        assert start(cast, wait=20)["result"] == {"class": "spam"}
        failed = start(cast, None, wait=20)
    assert failed["status"] == "failed" and "nothing to classify" in str(failed["error"])


def test_what_needs_a_journal_is_refused(cast: Cast, desk: Desk) -> None:
    run_id = start(cast)["id"]
    for verb, body in (("hold", {"reason": "x"}), ("signal", {"name": "x"}), ("note", {"text": "x"})):
        assert problem(cast("olga").post(f"/runs/{run_id}/{verb}", body))["type"].endswith(":stateless-run"), verb
    assert cast("olga").post(f"/runs/{run_id}/cancel", {"reason": "x"}).json()["status"] == "cancelled"


def test_its_stream_tells_its_status_and_ends(cast: Cast, desk: Desk) -> None:
    run_id = start(cast)["id"]
    desk.work()
    user_id = User.objects.get(username="victor").pk

    async def read() -> list[str]:
        async with aclosing(stream.events_of(UUID(run_id), 0, user_id)) as told:
            return [said async for said in told]

    said = "".join(asyncio.run(asyncio.wait_for(read(), 90)))
    assert "event: entry" not in said and 'data: {"status":"done"}' in said


def test_its_agent_says_that_it_keeps_no_journal(cast: Cast, desk: Desk) -> None:
    assert cast("victor").get("/agents/classify").json()["durability"] == "stateless"
