"""A crowd that is refused, or asks for what is not there, leaves the console as it was: no connection is kept."""

from __future__ import annotations

import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError

import pytest

from tests.faults.test_many_streams import Console
from tests.faults.test_many_streams import console as console
from tests.pages.journals import Story

pytestmark = pytest.mark.slow

AT_ONCE = 12
ASKED = 120
NOWHERE = ["/nowhere", "/runs/r-00000000", "/docs/nothing", "/api/v1/nothing", "/live/nothing", "/audit"]  # last: 403


def status_of(console: Console, path: str) -> int:
    asked = urllib.request.Request(console.address + path, headers={"Cookie": console.cookie})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return int(answer.status)
    except HTTPError as refused:
        refused.read()
        return refused.code


def test_a_burst_of_pages_that_are_not_there_takes_no_connection_away(console: Console) -> None:
    story = Story()
    with ThreadPoolExecutor(AT_ONCE) as crowd:
        paths = [f"{NOWHERE[n % len(NOWHERE)]}{'' if n % 6 in (1, 5) else n}" for n in range(ASKED)]
        seen = Counter(crowd.map(lambda path: status_of(console, path), paths))
    assert seen[404] >= ASKED * 2 // 3 and not set(seen) - {403, 404, 503}, seen  # 503: beyond the pool, for a moment
    deadline = time.monotonic() + 60
    while set(crowd_of_pages(console, story)) != {200}:
        assert time.monotonic() < deadline, "the console does not come back"


def crowd_of_pages(console: Console, story: Story) -> Counter[int]:
    with ThreadPoolExecutor(4) as crowd:
        return Counter(crowd.map(lambda path: status_of(console, path), [story.url, "/runs", "/inbox", "/workers"] * 3))
