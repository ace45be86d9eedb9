"""GET /runs/{id}/stream, as a client of HTTP meets it."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from http.client import IncompleteRead
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from uuid import UUID

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, connections

from runs.rest import stream
from tests.api.conftest import Cast, Desk
from tests.pages.browser import serving

Event = dict[str, Any]


@pytest.fixture
def address(desk: Desk, dsn: str, tmp_path: Path) -> Iterator[str]:
    """A real server: what a stream holds, and when it ends, only that one shows."""
    with serving(dsn, tmp_path) as address:
        yield f"{address}/api/v1"


@contextmanager
def opened(address: str, token: str, run_id: str, query: str = "", **headers: str) -> Iterator[Any]:
    asked = urllib.request.Request(f"{address}/runs/{run_id}/stream{query}", headers=headers)
    asked.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        yield answer


def events(answer: Any, wanted: int = 1000) -> Iterator[Event]:
    """Until the server ends the stream, or as many as wanted. A comment is an event of its own."""
    found: Event = {}
    while wanted and (line := answer.readline().decode()):
        name, _, value = line.rstrip("\n").partition(": ")
        if line != "\n":
            found[name or "comment"] = json.loads(value) if name == "data" else value
        elif found.keys() == {"retry"}:
            found = {}
        elif found:
            yield found
            found, wanted = {}, wanted - 1


def noting(told: Iterator[Event], seen: list[Event]) -> Iterator[Event]:
    for event in told:
        seen.append(event)
        yield event


def journal(cast: Cast, run_id: str) -> list[Any]:
    items: list[Any] = cast("victor").get(f"/runs/{run_id}/journal", limit=1000).json()["items"]
    return items


def start(cast: Cast, cents: int = 1) -> str:
    run_id: str = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": cents}}).json()["id"]
    return run_id


def test_a_run_that_is_over_is_told_from_its_first_entry_to_its_end(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast)
    desk.work()
    with opened(address, cast("victor").token, run_id) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        told = list(events(answer))
    entries = [event for event in told if event["event"] == "entry"]
    assert [event["data"] for event in entries] == journal(cast, run_id)
    assert [int(event["id"]) for event in entries] == [event["data"]["seq"] for event in entries]
    assert [event["event"] for event in told[len(entries) :]] == ["status", "end"]
    assert told[-1]["data"] == {"status": "done"} and "id" not in told[-1]


def test_a_reconnect_goes_on_behind_the_last_event_that_it_saw(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast)
    desk.work()
    token = cast("victor").token
    with opened(address, token, run_id, "?after=1", **{"Last-Event-ID": "3"}) as answer:
        assert next(events(answer))["id"] == "4"
    with opened(address, token, run_id, "?after=1") as answer:
        assert next(events(answer))["id"] == "2"
    with opened(address, token, run_id, "?after=999") as answer:
        assert [event["event"] for event in events(answer)] == ["status", "end"]


def test_a_run_is_followed_while_it_goes_on(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast, cents=9_000)
    seen: list[Event] = []
    with opened(address, cast("victor").token, run_id) as answer:
        told = noting(events(answer), seen)
        assert [next(told)["event"] for _ in range(2)] == ["entry", "status"]
        desk.work()
        parked = next(event for event in told if event["data"].get("status") == "awaiting_approval")
        assert parked["event"] == "status" and parked["data"]["reason"]
        digest = journal(cast, run_id)[2]["body"]["digest"]
        cast("ada").post(f"/runs/{run_id}/intents/3/approval", {"verdict": "approve", "digest": digest})
        desk.work()
        assert list(told)[-1] == {"event": "end", "data": {"status": "done"}}
    assert [event["data"] for event in seen if event["event"] == "entry"] == journal(cast, run_id)


def test_a_long_journal_comes_whole_in_pieces(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast, cents=9_000)
    desk.work()
    for n in range(stream.AT_ONCE + 20):
        cast("olga").post(f"/runs/{run_id}/hold", {"reason": f"reason {n}"})
    cast("olga").post(f"/runs/{run_id}/cancel", {"reason": "enough"})
    desk.work()
    with opened(address, cast("victor").token, run_id) as answer:
        told = list(events(answer))
    assert [event["data"] for event in told if event["event"] == "entry"] == journal(cast, run_id)
    assert told[-1]["event"] == "end"


def test_a_restarted_database_ends_no_stream(cast: Cast, desk: Desk, address: str, dsn: str) -> None:
    """Every connection is cut, as a restart does; what happened meanwhile is told after it."""
    run_id = start(cast, cents=9_000)
    with opened(address, cast("victor").token, run_id) as answer:
        told = events(answer)
        assert [next(told)["event"] for _ in range(2)] == ["entry", "status"]
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database() AND application_name = ''"
            )
        connection.close()  # this process's own was cut too
        desk.work()
        assert next(event for event in told if "data" in event)["data"]["seq"] == 2


def test_one_that_does_not_read_stops_nobody_else(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast)
    desk.work()
    with ExitStack() as stuck:
        for _ in range(8):
            stuck.enter_context(opened(address, cast("victor").token, run_id))
        with opened(address, cast("victor").token, run_id) as answer:
            assert list(events(answer))[-1]["event"] == "end"


def test_open_streams_keep_no_database_connection(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast, cents=9_000)
    token = cast("victor").token
    with ExitStack() as kept:
        for _ in range(8):  # twice the pool of the web process
            answer = kept.enter_context(opened(address, token, run_id))
            assert next(events(answer))["event"] == "entry"
        asked = urllib.request.Request(f"{address}/runs", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=60) as listed:
            assert listed.status == 200


def test_a_stream_ends_for_somebody_who_may_no_longer_look(
    cast: Cast, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LOOKS", 0.05)
    monkeypatch.setattr(stream, "JUDGES", 0.1)
    victor = User.objects.get(username="victor")
    told = asyncio.run(asyncio.wait_for(switched_off_meanwhile(start(cast, cents=9_000), victor.pk), 90))
    assert "event: entry" in told and "event: end" not in told


async def switched_off_meanwhile(run_id: str, user_id: int) -> str:
    found = []
    async with aclosing(stream.events_of(UUID(run_id), 0, user_id)) as told:
        async for said in told:
            found.append(said)
            if "event: entry" in said:
                await User.objects.filter(pk=user_id).aupdate(is_active=False)
        await sync_to_async(connections.close_all)()  # its thread outlives this test's database
    return "".join(found)


def test_a_server_that_stops_ends_its_streams(cast: Cast, desk: Desk, dsn: str, tmp_path: Path) -> None:
    run_id = start(cast, cents=9_000)
    with ExitStack() as kept:
        with serving(dsn, tmp_path) as address:
            answer = kept.enter_context(opened(f"{address}/api/v1", cast("victor").token, run_id))
            told = events(answer)
            assert next(told)["event"] == "entry"
        with suppress(ConnectionError, IncompleteRead):  # the server is gone, and waited for no stream
            assert "end" not in [event.get("event") for event in told]


def test_a_stream_that_cannot_be_is_refused_like_any_other_request(cast: Cast, desk: Desk, address: str) -> None:
    run_id = start(cast)
    for path, token, status in (
        (f"/runs/{run_id}/stream", "", 401),
        (f"/runs/{run_id}/stream", cast("nemo").token, 403),
        ("/runs/r-00000000/stream", cast("victor").token, 404),
        (f"/runs/{run_id}/stream?after=-1", cast("victor").token, 422),
    ):
        asked = urllib.request.Request(f"{address}{path}", headers={"Authorization": f"Bearer {token}"})
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=60)
        with refused.value as said:
            assert said.status == status and json.load(said)["status"] == status


def test_a_quiet_stream_says_that_it_lives(cast: Cast, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "LOOKS", 0.05)
    monkeypatch.setattr(stream, "PINGS", 0.1)
    run_id = start(cast, cents=9_000)
    user_id = User.objects.get(username="victor").pk

    async def read() -> list[str]:
        found: list[str] = []
        async with aclosing(stream.events_of(UUID(run_id), 0, user_id)) as told:
            async for said in told:
                found.append(said)
                if len(found) == 5:
                    break
        return found

    assert ": still here\n\n" in asyncio.run(asyncio.wait_for(read(), 90))
