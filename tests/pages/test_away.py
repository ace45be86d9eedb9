"""A database that is away: what a page, a dialog and an open stream say."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import RequestFactory
from psycopg_pool import PoolTimeout

from journal.feed import Subscription
from runs.pages import failures, pulse
from runs.pages.viewers import Viewer

IN_DIALOG = {"HX-Request": "true", "HX-Target": "dialog#dialog"}


def away(method: str, headers: dict[str, str]) -> tuple[HttpResponse, str]:
    asked = RequestFactory().generic(method, "/runs/r-00000000/note", headers=headers)
    answer = failures.refused(asked, OperationalError("no answer"), 503)
    assert answer.status_code == 503 and answer.headers["Retry-After"]
    return answer, answer.content.decode()


def test_a_dialog_gets_what_fits_into_it_with_a_way_out() -> None:
    _, html = away("GET", IN_DIALOG)
    assert "The database does not answer." in html and "data-close" in html and 'id="dialog-t"' in html
    assert "<html" not in html and "<main" not in html


def test_what_was_typed_into_a_dialog_stays_below_the_answer() -> None:
    answer, html = away("POST", IN_DIALOG)
    assert "Nothing was written" in html and "<html" not in html
    assert answer.headers["HX-Retarget"] == "#dialog .body" and answer.headers["HX-Reswap"] == "afterbegin"


def test_any_other_part_of_a_page_gets_a_part() -> None:
    _, html = away("GET", {"HX-Request": "true"})
    assert "The database does not answer." in html and "<html" not in html
    assert "<html" in away("GET", {})[1]


@pytest.mark.parametrize(("error", "ends"), [(OperationalError("no answer"), True), (PoolTimeout("busy"), False)])
def test_streams_end_when_the_database_says_nothing_and_go_on_when_it_is_busy(
    monkeypatch: pytest.MonkeyPatch, error: Exception, ends: bool
) -> None:
    looked = asyncio.Event()

    def look(watches: Any) -> None:
        loop.call_soon_threadsafe(looked.set)
        raise OperationalError(str(error)) from error

    async def watched() -> bool:
        nonlocal loop
        loop = asyncio.get_running_loop()
        beating = pulse.Pulse(ThreadPoolExecutor(1), lambda ask: ask())
        watch = pulse.Watch(None, Subscription(None, 10), Viewer(1, None))
        beating.add(watch)
        await asyncio.wait_for(looked.wait(), 30)
        changes = await watch.touched.get(0.5)
        beating.remove(watch)
        return watch.viewer.gone and changes == "refresh"

    loop: asyncio.AbstractEventLoop
    monkeypatch.setattr(pulse, "LOOKS", 0.01)
    monkeypatch.setattr(pulse, "look", look)
    assert asyncio.run(watched()) is ends
