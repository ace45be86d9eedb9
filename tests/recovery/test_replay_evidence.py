"""E07: a replay keeps the evidence. No row of any table changes, through whatever door and under what code."""

from __future__ import annotations

import hashlib
import html
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from journal.payloads import payload_store
from recovery.models import Replay
from recovery.replay_work import carry_out
from runs.access import ensure_demo_users, make_token
from runs.engine.sessions import Session
from runs.engine.worker import Worker
from runs.models import AuditRecord, Release, Run
from runs.queries import entries_of
from runs.sdk import Call, RunView, flow
from tests.cli.manage import manage
from tests.rig import tools
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger, wait_until
from tests.runs.test_secret import EVERY_TABLE

# The order itself, who asked for it, and what any request or heartbeat leaves.
BESIDE = {"recovery_replay", "runs_auditrecord", "django_session", "runs_workersession", "runs_token"}


def rows(crew: Crew) -> dict[str, str]:
    """A checksum of all rows of each table, and of the audit records that were there before."""
    found: dict[str, str] = {}
    with psycopg.connect(crew.dsn) as conn:
        for (table,) in conn.execute(EVERY_TABLE).fetchall():
            if table not in BESIDE:
                said = conn.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1').fetchall()  # type: ignore[arg-type]
                found[table] = hashlib.sha256("\n".join(row[0] for row in said).encode()).hexdigest()
    return found


def newer(run: RunView) -> Generator[Any, Any, Any]:
    """Without the step whose tool is gone."""
    yield Call(tools.look)
    return "another end"


@contextmanager
def at_work(*workers: Worker) -> Iterator[None]:
    """They carry out what is ordered."""
    stop = threading.Event()

    def loop() -> None:
        try:
            while not stop.wait(0.02):
                for replay in Replay.objects.filter(ended_at=None):
                    for worker in workers:
                        carry_out(worker, replay.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


@pytest.fixture
def failed(crew: Crew, ledger: Ledger) -> Run:
    """Its first charge went through, the second was refused for good."""
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    ledger.fault("charge", "reject", key=f"{run_id}:2")
    run = crew.drive(run_id)
    assert run.status == "failed", run.reason
    return run


@pytest.fixture
def later(crew: Crew, failed: Run) -> Iterator[tuple[Release, Worker]]:
    """chain@2, which has no tool of this name any more, and a worker that serves it."""
    agent = flow(name="chain", version="2", tools=[tools.look])(newer)
    release = Release.objects.create(id=agent.release_id, agent="chain", version="2", content=agent.content)
    session = Session("w-later", "threads", 4, "local", 30.0, [release.id], {release.id: agent.code_digest})
    worker = Worker(crew.dsn, session, {release.id: agent}, payload_store(), crew.take)
    yield release, worker
    worker.close()


def test_replays_by_page_api_and_shell_change_no_row_and_name_the_step_that_is_gone(
    crew: Crew, failed: Run, later: tuple[Release, Worker]
) -> None:
    release, worker = later
    ensure_demo_users("secret of the tests")
    page, token = Client(), make_token("olga", "operator")
    page.force_login(User.objects.get(username="olga"))
    headers = {"Authorization": f"Bearer {token}"}
    before, journal, acts = rows(crew), entries_of(failed.id), list(AuditRecord.objects.values())
    assert {"runs_run", "journal_entry", "journal_head", "runs_evidence", "runs_release"} <= before.keys()
    with at_work(crew.workers[0], worker):
        for named in (failed.release, release):
            for _ in range(2):
                assert page.post(f"/runs/{failed.id}/replay", {"release": named.id}).status_code == 302
            answer = Client().post(
                f"/api/v1/runs/{failed.id}/replay", {"release": named.version}, "application/json", headers=headers
            )
            assert answer.status_code == 200, answer.content
            assert manage("replay", failed.id, "--release", named.version).code == (named is release)
        wait_until(lambda: not Replay.objects.filter(ended_at=None).exists(), "all are decided")
    assert rows(crew) == before and entries_of(failed.id) == journal
    assert list(AuditRecord.objects.order_by("id").values())[: len(acts)] == acts
    own = Replay.objects.filter(release=failed.release)
    assert {(each.verdict, each.error) for each in own} == {("same", "")} and own.count() == 3
    for replay in Replay.objects.filter(release=release):
        assert replay.verdict == "diverged" and replay.result is not None
        gone = [each for each in replay.result["divergences"] if each["kind"] == "missing_tool"]
        assert [each["recorded"] for each in gone] == [
            [{"call": "charge", "args": {"amount_cents": cents}}] for cents in (1, 2)
        ]
        assert all("chain@2 has no tool 'charge'" in each["says"] and each["attempted"] is None for each in gone)
    shown = page.get(f"/runs/{failed.id}/replay?release={release.id}").content.decode()
    assert "no tool" in shown and "charge" in shown and "amount_cents" in shown
    run_page = page.get(f"/runs/{failed.id}").content.decode()
    assert "amount_cents" in run_page and failed.reason[:20] in html.unescape(run_page)
