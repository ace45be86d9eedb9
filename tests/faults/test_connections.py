"""A budget of connections holds, and beyond it the console says so while steps under way are still recorded.

What a server with max_connections = 40 leaves to others than superusers is 37: a limit of a role stands for it.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from uuid import UUID

import psycopg
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import Client
from psycopg import sql
from psycopg.conninfo import make_conninfo

from runs.access import ensure_demo_users
from runs.models import Run
from tests.crash.proof import assert_done_once
from tests.pages.browser import serving
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.slow

FREE = 37
CHILDREN = 16
SLOW = 6.0
BY_KIND = """SELECT application_name, count(*)::int FROM pg_stat_activity
    WHERE datname = current_database() AND usename LIKE 'tenant%%' GROUP BY 1"""
CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename LIKE 'tenant%%' AND application_name = %s"""


@pytest.fixture
def tenant(dsn: str, fleet: Fleet, worker_id: str) -> Iterator[str]:
    """Connection string of somebody who is no superuser and may have FREE connections; so are the fleet's processes."""
    name = f"tenant_{worker_id}"
    role = sql.Identifier(name)
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN CONNECTION LIMIT {}").format(role, sql.Literal(FREE)))
        admin.execute(sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA public TO {}").format(role))
        admin.execute(sql.SQL("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {}").format(role))
        fleet.environment["DATABASE_URL"] = make_conninfo(dsn, user=name)
        yield fleet.environment["DATABASE_URL"]
        fleet.close()
        admin.execute(sql.SQL("DROP OWNED BY {}").format(role))
        admin.execute(sql.SQL("DROP ROLE {}").format(role))


def used(fleet: Fleet) -> dict[str, int]:
    return dict(fleet.ask(BY_KIND))  # type: ignore[arg-type]


@contextmanager
def all_others_taken(dsn: str, but: int = 0) -> Iterator[None]:
    """Whatever connections are still to be had, save `but` of them."""
    taken: list[psycopg.Connection[Any]] = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(psycopg.connect(dsn, application_name="greedy"))
    for conn in taken[:but]:
        conn.close()
    try:
        yield
    finally:
        for conn in taken[but:]:
            conn.close()


@pytest.fixture
def console(tenant: str, tmp_path: Path) -> Iterator[Console]:
    ensure_demo_users("unused")
    with serving(tenant, tmp_path) as address:
        yield Console(address)


class Console:
    def __init__(self, address: str) -> None:
        browser = Client()
        browser.force_login(User.objects.get(username="victor"))
        self.headers = {"Cookie": f"{django_settings.SESSION_COOKIE_NAME}={browser.session.session_key}"}
        self.host = urlparse(address).netloc

    def get(self, path: str) -> tuple[int, str, float]:
        """Status, content type, and the seconds that it took."""
        began = time.monotonic()
        with self.opened(path) as answer:
            answer.read()
        return answer.status, answer.headers["Content-Type"], time.monotonic() - began

    @contextmanager
    def opened(self, path: str) -> Iterator[Any]:
        line = http.client.HTTPConnection(self.host, timeout=60)
        try:
            line.request("GET", path, headers=self.headers)
            yield line.getresponse()
        finally:
            line.close()


def test_sixteen_children_a_sweeper_and_a_hundred_live_pages_live_on_forty_connections(
    fleet: Fleet, ledger: Ledger, tenant: str, console: Console
) -> None:
    fleet.worker("--pool", "prefork", "--concurrency", str(CHILDREN))
    fleet.sweeper()
    live = "SELECT 1 FROM runs_workersession WHERE ended_at IS NULL"
    fleet.until(lambda: len(fleet.ask(live)) == CHILDREN, "all children serve", within=90)
    runs = [start("chain", {"steps": 3, "effect": "keyed"}) for _ in range(2 * CHILDREN)]
    with ExitStack() as pages, ThreadPoolExecutor(8) as readers:
        streams = [pages.enter_context(console.opened(f"/live/runs/{run_id}")) for run_id in runs * 3]
        streams += [pages.enter_context(console.opened("/live/runs")) for _ in range(4)]
        assert [stream.status for stream in streams] == [200] * 100
        looks = list(readers.map(console.get, ["/runs", f"/runs/{runs[0]}"] * 20))
        assert {status for status, _, _ in looks} == {200}, "they wait a moment for each other"
        for run_id in runs:
            fleet.rests(run_id, within=120)
        counted = used(fleet)
    assert sum(counted.values()) <= FREE, counted
    assert counted["holdfast committer"] <= CHILDREN and counted["holdfast worker"] <= CHILDREN, counted
    assert counted.get("holdfast web", 0) <= 4 and counted.get("holdfast feed", 0) <= 1, counted
    assert counted["holdfast sweep"] == 1, counted
    for run_id in runs:
        assert_done_once(ledger, Run.objects.get(id=run_id))


def test_beyond_the_budget_the_console_says_503_and_a_step_under_way_is_recorded(
    fleet: Fleet, ledger: Ledger, tenant: str, console: Console
) -> None:
    hand = fleet.worker("--pool", "prefork", "--concurrency", "2", HOLDFAST_LEASE_SECONDS="30")
    fleet.until(lambda: fleet.ask("SELECT 1 FROM runs_workersession WHERE ended_at IS NULL"), hand.name, within=60)
    runs = [start("slow", {"seconds": SLOW}) for _ in range(2)]
    fleet.until(lambda: all(ledger.acted(f"{run_id}:1") for run_id in runs), "both calls are under way", within=60)
    with all_others_taken(tenant):
        fleet.execute(CUT, "holdfast committer")
        fleet.execute(CUT, "holdfast web")
        with all_others_taken(tenant):
            page, api = console.get("/runs"), console.get("/api/v1/runs")
            assert (page[0], page[1].split(";")[0]) == (503, "text/html") and page[2] < 30, page
            assert (api[0], api[1]) == (503, "application/problem+json") and api[2] < 30, api
            assert console.get("/healthz")[0] == 200
            time.sleep(SLOW)  # the calls have answered; of what the workers try then nothing can be seen from outside
            assert outcomes(fleet, runs) == [], "there was no connection to store them on"
    for run_id in runs:
        run = fleet.rests(run_id, within=60)
        assert_done_once(ledger, run)
        assert (run.epoch, ledger.calls(f"{run_id}:1")) == (1, 1), "stored by the worker that made the call"
    fleet.until(lambda: console.get("/runs")[0] == 200, "the console answers again")


def outcomes(fleet: Fleet, runs: list[UUID]) -> list[tuple[Any, ...]]:
    return fleet.ask("SELECT run_id FROM journal_entry WHERE kind = 'OBS' AND run_id = ANY (%s)", runs)


def test_children_that_find_no_connection_serve_as_soon_as_there_is_one(
    fleet: Fleet, ledger: Ledger, tenant: str
) -> None:
    with all_others_taken(tenant, but=1):
        hand = fleet.worker("--pool", "prefork", "--concurrency", "2")
        fleet.until(lambda: hand.said().count("cannot serve") >= 2, "children find none", within=90)
    runs = [start("keyed", {}) for _ in range(2)]
    live = "SELECT 1 FROM runs_workersession WHERE ended_at IS NULL"
    fleet.until(lambda: len(fleet.ask(live)) == 2, "both serve", within=60)
    for run_id in runs:
        assert_done_once(ledger, fleet.rests(run_id, within=60))
    assert "not a worker" not in hand.said()
