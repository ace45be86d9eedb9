"""A real browser on a real server: granian with the product's own settings, on the test's database."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from config.installation import free_port
from runs.access import ensure_demo_users

CHROMIUM = Path("/usr/bin/chromium")


def require_browser() -> None:
    if not CHROMIUM.exists():
        said = f"there is no {CHROMIUM}: apt-get install chromium"
        if "browser" in os.environ.get("HOLDFAST_REQUIRE", ""):
            pytest.fail(said)
        pytest.skip(said)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """For one module only: Playwright runs an event loop in this thread, and other tests run their own."""
    require_browser()
    from playwright.sync_api import sync_playwright

    connection.close()  # inside the loop Django uses another one, and this one's database is gone after it
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Django takes every query here for one inside that loop
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


class Site:
    """A running console. `open` signs somebody in and gives a page; any complaint of the browser fails the test."""

    def __init__(self, address: str, browser: Any) -> None:
        self.address, self.browser = address, browser
        self.complaints: list[str] = []

    def open(self, who: str, path: str, **context: Any) -> Any:
        client = Client()
        client.force_login(User.objects.get(username=who))
        made = self.browser.new_context(base_url=self.address, **context)
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": client.session.session_key, "url": self.address}
        made.add_cookies([cookie])
        made.set_default_timeout(60_000)  # machines that run tests are busy
        page = made.new_page()
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(path)
        return page


@pytest.fixture
def site(chromium: Any, dsn: str, tmp_path: Path) -> Iterator[Site]:
    ensure_demo_users("unused")
    with serving(dsn, tmp_path) as address:
        site = Site(address, chromium)
        yield site
        for context in list(chromium.contexts):
            context.close()
    assert site.complaints == []


@contextmanager
def serving(dsn: str, folder: Path) -> Iterator[str]:
    port = free_port(0)
    environment = os.environ | {
        "DATABASE_URL": dsn,
        "HOLDFAST_DATA": str(settings.HOLDFAST_DATA),
        "HOLDFAST_PROCESS": "web",
        "HOLDFAST_DEMO": "1",
        "SECRET_KEY": settings.SECRET_KEY,
    }
    static = Path(settings.HOLDFAST_DATA) / "static"
    if not static.exists():
        collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
        subprocess.run(collect, cwd=settings.BASE_DIR, env=environment, check=True)
    words = [sys.executable, "-m", "granian", "--interface", "asginl", "--host", "127.0.0.1", "--port", str(port)]
    words += ["--no-ws", "--log-level", "warning", "--workers-kill-timeout", "1"]
    words += ["--static-path-route", "/static", "--static-path-mount", str(static), "config.asgi:application"]
    with open(folder / "web.log", "wb") as log:
        server = subprocess.Popen(words, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log)
    try:
        await_answer(f"http://127.0.0.1:{port}/healthz", folder / "web.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def await_answer(address: str, log: Path, within: float = 90.0) -> None:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    raise AssertionError(f"the console did not start: {log.read_text()}")


def told(run_id: Any) -> None:
    """What a worker does after an append: streams read on."""
    from runs.commands import tell

    tell(run_id)
