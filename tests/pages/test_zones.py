"""E32 in the console: the web process lives elsewhere than its viewer; times name their zone, days are the viewer's."""

from __future__ import annotations

import re
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
from runs.pages.zones import time_text, zone_of
from tests.pages.browser import serving
from tests.pages.journals import Story


def asked_from(zone: str) -> RequestFactory:
    factory = RequestFactory()
    factory.cookies["tz"] = zone
    return factory


@pytest.mark.parametrize(("said", "zone"), [("Asia/Tokyo", "Asia/Tokyo"), ("Nowhere/Land", "UTC"), ("../etc", "UTC")])
def test_the_browser_says_its_zone_and_what_is_none_is_utc(said: str, zone: str) -> None:
    assert str(zone_of(asked_from(said).get("/"))) == zone


NOON = datetime(2031, 5, 5, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (datetime(2031, 5, 5, 0, 30, tzinfo=UTC), "00:30:00"),
        (datetime(2031, 5, 4, 23, 30, tzinfo=UTC), "2031-05-04 23:30:00"),
        (datetime(2031, 5, 5, 23, 59, tzinfo=UTC), "23:59:00"),
        (datetime(2031, 5, 6, 0, 1, tzinfo=UTC), "2031-05-06 00:01:00"),
        (datetime(2031, 5, 5, 17, 0, tzinfo=ZoneInfo("Asia/Tokyo")), "08:00:00"),
    ],
)
def test_a_date_stands_in_front_of_a_time_that_could_be_of_two_days(at: datetime, text: str) -> None:
    assert time_text(at, NOON) == text


def test_no_time_of_a_page_stands_without_its_zone() -> None:
    """At the time, in the head of its table, or below it; each page names it at its foot besides."""
    for path in Path(settings.BASE_DIR, "templates", "runs").rglob("*.html"):
        text = path.read_text()
        bare = re.findall(r"\|clock }}(?! UTC)", text)
        assert not bare or "UTC" in text or path.name in IN_TABLES, path
    assert "Times in UTC" in Path(settings.BASE_DIR, "templates", "_page.html").read_text()


IN_TABLES = {"_bulk_item.html"}  # under the head that bulk.html has


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
