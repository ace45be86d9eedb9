"""One Chromium for all tests of a process. Without Django: conftest takes it in before there are settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")


def require_browser() -> None:
    if not CHROMIUM.exists():
        said = f"there is no {CHROMIUM}: apt-get install chromium"
        if "browser" in os.environ.get("HOLDFAST_REQUIRE", ""):
            pytest.fail(said)
        pytest.skip(said)


@pytest.fixture(scope="session")
def started_chromium() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """One for all tests of the process, and the event loop of Playwright, which is nobody's between them."""
    require_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()
