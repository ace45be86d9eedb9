"""GET /metrics: names that dashboards rely on, numbers from the database, and who may look."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from config import metrics as page
from runs.models import Run, Tally, WorkerSession
from runs.totals import fold_totals
from tests.api.conftest import Cast, Desk

NAMES = {
    "holdfast_runs": "gauge",
    "holdfast_queue_depth": "gauge",
    "holdfast_steps": "counter",
    "holdfast_intents_in_doubt": "gauge",
    "holdfast_approvals_waiting": "gauge",
    "holdfast_approvals_oldest_age_seconds": "gauge",
    "holdfast_runs_stranded": "gauge",
    "holdfast_runs_unserved": "gauge",
    "holdfast_runs_stranded_oldest_age_seconds": "gauge",
    "holdfast_release_runs": "gauge",
    "holdfast_release_workers": "gauge",
    "holdfast_release_codes": "gauge",
    "holdfast_leases_lost": "counter",
    "holdfast_chains_broken": "gauge",
    "holdfast_drains_open": "gauge",
    "holdfast_fenced_writes": "counter",
    "holdfast_step_seconds": "histogram",
    "holdfast_append_seconds": "histogram",
    "holdfast_tokens": "counter",
    "holdfast_cost": "counter",
}


def ask(**headers: str) -> HttpResponse:
    answer: HttpResponse = Client().get("/metrics", headers=headers)  # type: ignore[assignment]
    return answer


def numbers() -> dict[Any, float]:
    """Value by sample name, or by name and labels where it has some."""
    answer = ask()
    assert answer.status_code == 200, answer.content
    found: dict[Any, float] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = [sample.labels[name] for name in sorted(sample.labels, reverse=True)]  # status, agent
            found[(sample.name, *labels) if labels else sample.name] = sample.value
    return found


def without_workers(told: dict[Any, float]) -> dict[Any, float]:
    of_workers = ("holdfast_release_workers", "holdfast_release_codes")
    return {name: value for name, value in told.items() if name[0] not in of_workers}


def test_every_name_is_there_with_its_kind_even_when_nothing_has_happened(db: None) -> None:
    answer = ask()
    assert answer.headers["Content-Type"].startswith("text/plain")
    told = {family.name: family.type for family in text_string_to_metric_families(answer.content.decode())}
    assert told == NAMES
    assert numbers()["holdfast_steps_total"] == 0


def test_runs_are_counted_by_status_and_agent(cast: Cast, desk: Desk) -> None:
    for cents in (1, 1, 9_000):
        cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": cents}})
    assert numbers()["holdfast_queue_depth"] == 3
    desk.work()
    told = numbers()
    assert told["holdfast_runs", "done", "desk"] == 2 and told["holdfast_runs", "awaiting_approval", "desk"] == 1
    assert told["holdfast_queue_depth"] == 0
    assert told["holdfast_approvals_waiting"] == 1 and told["holdfast_approvals_oldest_age_seconds"] > 0


def test_doubts_and_strandings_are_told(cast: Cast, desk: Desk) -> None:
    cast("olga").post("/runs", {"agent": "parcels", "input": None})
    desk.work()
    stranded = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}}).json()["id"]
    Run.objects.filter(id=stranded).update(status="waiting_for_version")
    told = numbers()
    assert told["holdfast_intents_in_doubt"] == 1 and told["holdfast_runs_stranded"] == 1


def test_what_a_worker_counted_is_there_with_its_heartbeat_and_stays_when_it_ends(cast: Cast, desk: Desk) -> None:
    for _ in range(3):
        cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})
    desk.work()
    desk.worker.session.renew(desk.worker.connections)
    told = numbers()
    assert told["holdfast_steps_total"] == 3
    assert told["holdfast_step_seconds_count"] == 3 and told["holdfast_step_seconds_sum"] > 0
    assert told["holdfast_append_seconds_count"] >= 6 and told["holdfast_append_seconds_bucket", "+Inf"] >= 6
    desk.worker.close()
    assert without_workers(numbers()) == without_workers(told)


def test_ended_sessions_are_added_up_in_one_row_a_name_and_nothing_is_lost(dsn: str, desk: Desk, cast: Cast) -> None:
    cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})
    desk.work()
    desk.worker.close("lease ran out")
    before = numbers()
    assert before["holdfast_leases_lost_total"] == 1
    with psycopg.connect(dsn, autocommit=True) as conn:
        fold_totals(conn)
        assert not Tally.objects.exists()  # its last words may still be on their way
        conn.execute("UPDATE runs_workersession SET ended_at = ended_at - interval '2 minutes'")
        fold_totals(conn)
        fold_totals(conn)
    assert WorkerSession.objects.get().totals is None and Tally.objects.exists()
    assert numbers() == before


def test_many_ended_runs_are_told_from_statistics(cast: Cast, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 1}})
    desk.work()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_run")
    monkeypatch.setattr(page, "SMALL", 0)
    with CaptureQueriesContext(connection) as queries:
        assert numbers()["holdfast_runs", "done", "desk"] == 4
    assert not [query for query in queries if "done" in query["sql"]]


def test_who_may_look(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask().status_code == 200  # from this machine
    for proxy in ("X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-IP", "Via", "CF-Connecting-IP"):
        assert ask(**{proxy: "203.0.113.9"}).status_code == 401, proxy
    assert Client(REMOTE_ADDR="203.0.113.9").get("/metrics").status_code == 401
    assert ask(Authorization=f"Bearer {cast('victor').token}").status_code == 200
    assert ask(Authorization=f"Bearer {cast('nemo').token}").status_code == 401
    assert ask(Authorization="Bearer wrong").status_code == 401
    monkeypatch.setattr(settings, "HOLDFAST_METRICS_TOKEN", "scraper")
    refused = ask()
    assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert ask(Authorization="Bearer scraper").status_code == 200
    assert ask(Authorization=f"Bearer {cast('victor').token}").status_code == 200
    browser = Client()
    browser.force_login(User.objects.get(username="victor"))
    assert browser.get("/metrics").status_code == 200


def test_it_answers_503_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setattr(page, "TIMEOUT", "SET LOCAL statement_timeout = 'no time'")
    answer = ask()
    assert answer.status_code == 503 and b"database" in answer.content
