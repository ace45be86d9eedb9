"""E32 in the console: the web process lives elsewhere than its viewer; times name their zone, days are the viewer's."""

from __future__ import annotations

import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

from runs.access import ensure_demo_users
from runs.models import Status
from runs.pages.zones import start_of_day
from tests.pages.browser import serving
from tests.pages.journals import Story


def asked_from(zone: str) -> RequestFactory:
    factory = RequestFactory()
    factory.cookies["tz"] = zone
    return factory


def test_a_day_begins_at_the_viewers_midnight() -> None:
    now = datetime(2031, 5, 5, 1, 30, tzinfo=UTC)
    tokyo = start_of_day(asked_from("Asia/Tokyo").get("/"), now)
    assert tokyo.astimezone(UTC) == datetime(2031, 5, 4, 15, 0, tzinfo=UTC)
    new_york = start_of_day(asked_from("America/New_York").get("/"), now)
    assert new_york.astimezone(UTC) == datetime(2031, 5, 4, 4, 0, tzinfo=UTC)
    assert start_of_day(asked_from("Nowhere/Land").get("/"), now) == datetime(2031, 5, 5, tzinfo=UTC)


@pytest.mark.slow
def test_a_console_in_shanghai_shows_a_viewer_in_new_york_their_hours(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    monkeypatch.setenv("PGTZ", "Asia/Shanghai")
    ensure_demo_users("unused")
    client = Client()
    client.force_login(User.objects.get(username="victor"))
    at = datetime.now(UTC) - timedelta(hours=2)
    Story().now_is(Status.DONE, ended_at=at)
    cookies = f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}; tz=America%2FNew_York"
    with serving(dsn, tmp_path) as address:
        asked = urllib.request.Request(f"{address}/", headers={"Cookie": cookies})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            html = answer.read().decode()
    there = at.astimezone(ZoneInfo("America/New_York"))
    assert "Hours in America/New_York" in html and "Times in UTC, days and hours as in America/New_York" in html
    assert f"Peak 1 at {there:%H}:00." in html
