"""The streams themselves, as a client of HTTP meets them."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.db.models.functions import Now
from django.test import AsyncClient, Client

from recovery.drains import order_drain
from runs.access import ensure_demo_users, set_scope
from runs.models import BulkAct, Status
from runs.pages import live, pulse
from tests.pages.browser import serving, told
from tests.pages.journals import Story, session

pytestmark = pytest.mark.usefixtures("dsn")


@pytest.fixture(autouse=True)
def victor(dsn: str) -> User:
    ensure_demo_users("unused")
    return User.objects.get(username="victor")


def events(address: str, wanted: int, user: User | None, then: Any = None, **headers: str) -> tuple[Any, list[str]]:
    """The answer and its first events; `then` is called in a thread after the first."""

    async def read() -> tuple[Any, list[str]]:
        client = AsyncClient()
        if user is not None:
            await client.aforce_login(user)
        answer = await client.get(address, headers=headers)
        found: list[str] = []
        if not answer.streaming:
            return answer, found
        async for chunk in answer:
            if chunk.decode().startswith("event: hf:mode"):
                continue
            found.append(chunk.decode())
            if len(found) == 1 and then is not None:
                await asyncio.to_thread(closing_its_connection, then)
            if len(found) == wanted:
                break
        await answer._iterator.aclose()  # as the server does when its client has gone
        return answer, found

    async def within_time() -> tuple[Any, list[str]]:
        try:
            return await asyncio.wait_for(read(), 90)
        finally:
            await sync_to_async(connections.close_all)()  # its thread outlives this test's database

    return asyncio.run(within_time())


def closing_its_connection(act: Any) -> None:
    try:
        act()
    finally:
        connections.close_all()


def test_a_stream_is_for_those_who_may_see_the_page(victor: User) -> None:
    story = Story()
    address = f"/live/runs/{story.run.id}"
    assert events(address, 1, None)[0].status_code == 401
    stranger = User.objects.create(username="stranger")
    assert events(address, 1, stranger)[0].status_code == 403
    assert events("/live/runs", 1, stranger)[0].status_code == 403
    answer, _ = events(address, 1, victor)
    assert answer["Content-Type"] == "text/event-stream"
    assert answer["Cache-Control"] == "no-store" and answer["X-Accel-Buffering"] == "no"


def test_the_stream_of_what_is_not_there_for_somebody_is_404(victor: User) -> None:
    """As its page: silence would say that it is there."""
    story = Story()
    drain = order_drain(scope="agent:refund-desk", timeout=60, reason="deploy 8", actor="olga")
    act = BulkAct.objects.create(verb="hold", query="", reason="x", actor="olga")
    places = [f"/live/releases/{story.run.release_id}", f"/live/drains/{drain.pk}", f"/live/bulk/{act.pk}"]
    for place in places:
        assert events(place, 1, victor)[0].status_code == 200, place
    set_scope("victor", ["another"], actor="test")
    scoped = User.objects.get(pk=victor.pk)
    for place in [*places, "/live/releases/refund-desk@99", "/live/drains/4711", "/live/bulk/4711"]:
        assert events(place, 1, scoped)[0].status_code == 404, place


def test_an_event_carries_the_seq_and_the_partials_of_the_first_render(victor: User) -> None:
    story = Story()

    def goes_on() -> None:
        story.call(order_id="o-1")
        told(story.run.id)

    _, (first, second) = events(f"/live/runs/{story.run.id}?upto=1", 2, victor, goes_on)
    assert first.startswith("id: 1\n") and 'hx-target="#run-head"' in first and 'id="row-1"' not in first
    assert second.startswith("id: 2\n") and 'id="row-2"' in second


def test_a_reconnect_gets_what_came_after_the_last_event_that_it_saw(victor: User) -> None:
    story = Story()
    story.call(order_id="o-1")
    _, (event,) = events(f"/live/runs/{story.run.id}?upto=1", 1, victor, **{"Last-Event-ID": "1"})
    assert event.startswith("id: 2\n") and 'id="row-2"' in event
    _, (event,) = events(f"/live/runs/{story.run.id}?upto=1", 1, victor, **{"Last-Event-ID": "2"})
    assert 'id="row-2"' not in event


def test_what_is_new_is_appended_and_what_it_changed_is_drawn_over_and_nothing_else_is_sent(victor: User) -> None:
    story = Story().now_is(Status.RUNNING, session=session("w1"))
    for n in range(5):
        story.call(order_id=f"o-{n}")
        story.result({})
    last = story.last

    def goes_on() -> None:
        story.call(order_id="new")
        story.result({"id": "refund-1"})
        told(story.run.id)

    _, (_, event) = events(f"/live/runs/{story.run.id}?axis=seq&upto={last}", 2, victor, goes_on)
    assert f"id: {last + 2}\n" in event and 'id="timeline"' not in event
    assert 'hx-target="#wf-steps" hx-swap="append"' in event and event.count('class="wf-row"') == 2
    assert 'hx-target="#ruler-scale"' in event and 'hx-target="#questions"' not in event


def test_a_row_that_changes_is_drawn_over_in_its_place(victor: User) -> None:
    story = Story().now_is(Status.RUNNING, session=session("w1"))
    seq = story.call(order_id="o-1")

    def goes_on() -> None:
        story.result({"id": "refund-1"})
        told(story.run.id)

    _, (_, event) = events(f"/live/runs/{story.run.id}?upto={seq}", 2, victor, goes_on)
    assert 'hx-target="#rows-step-1" hx-swap="append"' in event
    assert f'hx-target="#line-{seq}" hx-swap="outerMorph"' in event or 'id="step-1"' in event


def test_whoever_missed_entries_gets_the_window_anew_and_who_missed_none_gets_none(victor: User) -> None:
    story = Story()
    story.call(order_id="o-1")
    story.result({})
    address = f"/live/runs/{story.run.id}?upto=1"
    _, (missed,) = events(address, 1, victor, **{"Last-Event-ID": "2"})
    assert 'id="timeline"' in missed and missed.count('class="wf-row"') == 3
    _, (none,) = events(address, 1, victor, **{"Last-Event-ID": "3"})
    assert 'class="wf-row"' not in none


def test_a_change_of_status_without_an_entry_is_told_too(victor: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "LOOKS", 0.05)
    story = Story()
    _, (_, second) = events(
        f"/live/runs/{story.run.id}", 2, victor, lambda: story.now_is(Status.WAITING_FOR_VERSION, "no worker serves it")
    )
    assert "Stranded" in second and "no worker serves it" in second


def test_a_quiet_stream_says_that_it_lives_and_ends_in_time(victor: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "LOOKS", 0.05)
    monkeypatch.setattr(live, "PINGS", 0.1)
    monkeypatch.setattr(live, "LASTS", 0.6)
    _, found = events(f"/live/runs/{Story().run.id}", 100, victor)
    assert ": still here\n\n" in found
    assert len(found) < 100  # it ended by itself


def test_a_judging_act_is_told_over_though_it_touches_no_run(victor: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only at the next idle look, which may be half a minute away."""
    monkeypatch.setitem(live.live_answer.__kwdefaults__, "idle", 1e9)
    release = Story().run.release
    act = BulkAct.objects.create(verb="judge", query="", actor="victor", release=release)

    def ends() -> None:
        BulkAct.objects.update(ended_at=Now())

    _, (first, second) = events(f"/live/bulk/{act.pk}", 2, victor, ends)
    assert "Under way" in first and "Under way" not in second


def test_the_lists_first_picture_has_every_row_of_the_page_since_any_may_have_changed(victor: User) -> None:
    on_page, newer = Story(), Story()
    address = f"/live/runs?rows={on_page.run.id.hex},nonsense&top={on_page.run.id.hex}"
    _, (event,) = events(address, 1, victor)
    assert f'id="run-{on_page.run.id}"' in event and f'id="run-{newer.run.id}"' not in event
    assert "1 newer run. Show it" in event


def test_open_streams_keep_no_database_connection(dsn: str, victor: User, tmp_path: Path) -> None:
    client = Client()
    client.force_login(victor)
    cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}"}
    story = Story()
    with serving(dsn, tmp_path) as address, ExitStack() as open_streams:
        for _ in range(8):  # twice the pool of the web process
            asked = urllib.request.Request(f"{address}/live/runs/{story.run.id}", headers=cookie)
            answer = open_streams.enter_context(urllib.request.urlopen(asked, timeout=90))
            assert answer.readline() == b"event: hf:mode\n"
        asked = urllib.request.Request(f"{address}/runs", headers=cookie)
        with urllib.request.urlopen(asked, timeout=90) as page:
            assert page.status == 200


@pytest.mark.slow
def test_browsers_that_leave_while_it_is_asked_who_they_are_take_no_connection_with_them(
    dsn: str, victor: User, tmp_path: Path
) -> None:
    client = Client()
    client.force_login(victor)
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}"
    asked = "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {}\r\nAccept: text/event-stream\r\n\r\n"
    with serving(dsn, tmp_path) as address:
        port = int(address.rpartition(":")[2])
        for place in ("/live/shell", "/live/overview", "/live/runs", "/live/inbox") * 15:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as browser:
                browser.sendall(asked.format(place, cookie).encode())
        for place in ("/runs", "/nowhere", "/inbox") * 3:
            request = urllib.request.Request(f"{address}{place}", headers={"Cookie": cookie})
            try:
                status = urllib.request.urlopen(request, timeout=60).status
            except urllib.error.HTTPError as error:
                status = error.code
            assert status == (404 if place == "/nowhere" else 200), place
