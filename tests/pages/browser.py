"""A real browser on a real server: granian with the product's own settings, on the test's database."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from config.installation import free_port
from runs.access import ensure_demo_users
from tests.rig.fleet import Hand, Nursery


@pytest.fixture
def chromium(started_chromium: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """Playwright's loop is this thread's running one during this test alone: others run loops of their own."""
    browser, loop = started_chromium
    connection.close()  # inside the loop Django uses another one, which this database must not be kept open by
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Django takes every query here for one inside that loop
        asyncio._set_running_loop(loop)
        yield browser
        for context in list(browser.contexts):
            context.close()
        connection.close()
        asyncio._set_running_loop(None)


class Site:
    """A running console. `open` signs somebody in and gives a page; any complaint of the browser fails the test."""

    def __init__(self, address: str, browser: Any) -> None:
        self.address, self.browser = address, browser
        self.complaints: list[str] = []

    def open(self, who: str, path: str, **context: Any) -> Any:
        made = self.browser.new_context(base_url=self.address, **context)
        if who != "nobody":
            client = Client()
            client.force_login(User.objects.get(username=who))
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
def site(chromium: Any, dsn: str, nursery: Nursery, tmp_path: Path) -> Iterator[Site]:
    ensure_demo_users("unused")
    with forked(nursery, dsn, tmp_path) as address:
        site = Site(address, chromium)
        yield site
        for context in list(chromium.contexts):
            context.close()  # while there is a server, which would miss them
    assert site.complaints == []


@contextmanager
def forked(nursery: Nursery, dsn: str, folder: Path) -> Iterator[str]:
    """The same as `serving`, from a process that has everything imported: another second of two cores each time."""
    port, log = free_port(0), folder / "web.log"
    environment = surroundings(dsn)
    hand = Hand(nursery, "web", nursery.bear(["granian", *words(port)], environment, log, []), log, uuid4())
    try:
        await_answer(f"http://127.0.0.1:{port}/healthz", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        hand.send(signal.SIGTERM)
        hand.dies()


@contextmanager
def serving(dsn: str, folder: Path) -> Iterator[str]:
    port, environment = free_port(0), surroundings(dsn)
    with open(folder / "web.log", "wb") as log:
        started = [sys.executable, "-m", "granian", *words(port)]
        server = subprocess.Popen(started, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log)
    try:
        await_answer(f"http://127.0.0.1:{port}/healthz", folder / "web.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def surroundings(dsn: str) -> dict[str, str]:
    """What the console finds in its environment, and the static files."""
    environment = os.environ | {
        "DATABASE_URL": dsn,
        "HOLDFAST_DATA": str(settings.HOLDFAST_DATA),
        "HOLDFAST_PROCESS": "web",
        "HOLDFAST_DEMO": "1",
        "SECRET_KEY": settings.SECRET_KEY,
    }
    if not static_files().exists():
        collect = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
        subprocess.run(collect, cwd=settings.BASE_DIR, env=environment, check=True)
    return environment


def static_files() -> Path:
    return Path(settings.HOLDFAST_DATA) / "static"


def words(port: int) -> list[str]:
    """After `granian`."""
    given = ["--interface", "asginl", "--host", "127.0.0.1", "--port", str(port), "--no-ws", "--log-level", "warning"]
    given += ["--workers-kill-timeout", "1", "--static-path-route", "/static"]
    return [*given, "--static-path-mount", str(static_files()), "config.asgi:application"]


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
