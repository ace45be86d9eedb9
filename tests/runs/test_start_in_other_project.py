"""Somebody else's Django project that has taken the apps among its own: tests/bookshop, in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.rig.ledger import ROOT

SHOP = ROOT / "tests" / "bookshop"
PATIENCE = 90.0
ASKING = """
import asyncio, json, sys
import django; django.setup()
from django.test import AsyncClient, Client
client = Client(raise_request_exception=False)
said = [client.get(address) for address in ("/orders/1", "/orders/2?fail=1", "/orders/1?again")]
said.append(asyncio.run(AsyncClient().get("/later/3")))
print(json.dumps([[answer.status_code, answer.json() if answer.status_code == 200 else None] for answer in said]))
"""
PUBLISHING = (
    "import django; django.setup(); from shop.tasks import take; take.delay(4); take.delay(5, True); take.delay(6)"
)


@dataclass
class Shop:
    dsn: str
    environment: dict[str, str]
    log: Path
    hands: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def does(self, *words: str, ok: bool = True, cwd: Path = SHOP, **more: str) -> str:
        environment = self.environment | more
        done = subprocess.run(
            [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def serves(self, *words: str) -> None:
        with self.log.open("ab") as log:
            hand = subprocess.Popen([sys.executable, *words], cwd=SHOP, env=self.environment, stdout=log, stderr=log)
        self.hands.append(hand)

    def ask(self, query: str) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            return [row[0] if len(row) == 1 else row for row in conn.execute(query).fetchall()]

    def until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, self.log.read_text()[-5000:]
            time.sleep(0.05)


@pytest.fixture
def shop(postgres: dict[str, str], embedded_broker: str, tmp_path: Path) -> Iterator[Shop]:
    name = f"bookshop_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with psycopg.connect(make_conninfo("", **postgres, dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
    left_out = ("HOLDFAST_", "DATABASE_URL", "BROKER_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(left_out)} | {
        "PYTHONPATH": str(ROOT), "SHOP_NAME": name, "SHOP_USER": postgres["user"], "SHOP_HOST": postgres["host"],
        "SHOP_BROKER": embedded_broker, "HOLDFAST_DATA": str(tmp_path), "HOLDFAST_ALLOW_NO_FSYNC": "tests",
        "HOLDFAST_SWEEP_SECONDS": "600", "DJANGO_SETTINGS_MODULE": "config.settings",
    }  # fmt: skip
    shop = Shop(make_conninfo("", **postgres, dbname=name), environment, tmp_path / "log")
    yield shop
    for hand in shop.hands:
        hand.send_signal(signal.SIGKILL)
        hand.wait()
    with psycopg.connect(make_conninfo("", **postgres, dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.mark.slow
def test_views_and_tasks_start_runs_that_its_own_worker_carries_out(shop: Shop) -> None:
    shop.does("manage.py", "check", "--fail-level", "ERROR")
    shop.does("manage.py", "migrate", "-v", "0")
    shop.does("manage.py", "makemigrations", "--check", "--dry-run")

    # Before any worker: the project knows its agent, so its release is recorded by the first start.
    first, failed, again, later = json.loads(shop.does("-c", ASKING).splitlines()[-1])
    assert (first[0], failed[0], again[0], later[0]) == (200, 500, 500, 200)
    assert sorted(shop.ask("SELECT id::text FROM runs_run")) == sorted([first[1]["run"], later[1]["run"]])
    assert shop.ask("SELECT number FROM shop_order ORDER BY 1") == [1, 3]
    assert shop.ask("SELECT count(*) FROM journal_entry") == [2]

    # No sweep helps: whatever is carried out was told of by a message, on the project's own app of Celery.
    shop.serves("manage.py", "worker", "--name", "w")
    shop.serves("-m", "celery", "-A", "config", "worker", "-P", "solo", "-l", "WARNING", "-Q", "celery")
    shop.does("-c", PUBLISHING)
    shop.until(lambda: shop.ask("SELECT count(*) FROM runs_run WHERE status = 'done'") == [4])
    assert shop.ask("SELECT order_id, cents FROM shop_refund ORDER BY 1") == [(n, 500) for n in (1, 3, 4, 6)]
    assert shop.ask("SELECT number FROM shop_order ORDER BY 1") == [1, 3, 4, 6]
    assert shop.ask("SELECT count(*) FROM shop_refund f JOIN runs_run r ON f.key = r.id || ':1'") == [4]

    # Holdfast itself, on the same database: what a console shows.
    broker = shop.environment["SHOP_BROKER"]
    beside: dict[str, Any] = {"cwd": ROOT, "DATABASE_URL": shop.dsn, "BROKER_URL": broker, "HOLDFAST_DEMO": "0"}
    shop.does("manage.py", "migrate", "-v", "0", "--no-input", **beside)
    listed = shop.does("manage.py", "runs", **beside)
    assert listed.count("give-back") == 4


@pytest.mark.slow
def test_what_is_missing_in_its_settings_is_said(shop: Shop) -> None:
    said = shop.does("manage.py", "check", ok=False, HOLDFAST_DATA="")
    assert "(journal.E002) Neither HOLDFAST_DATA nor HOLDFAST_STORE_URL is set" in said
    lite = "DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}"
    (shop.log.parent / "lite.py").write_text(f"from config.settings import *\n{lite}\n")
    path = f"{shop.log.parent}:{ROOT}"
    said = shop.does("manage.py", "check", ok=False, DJANGO_SETTINGS_MODULE="lite", PYTHONPATH=path)
    assert "(journal.E001) Holdfast keeps its journal in DATABASES['default'], which has to be PostgreSQL." in said


@pytest.mark.slow
def test_without_a_broker_a_start_does_not_wait_for_one(shop: Shop) -> None:
    shop.does("manage.py", "migrate", "-v", "0")
    words = "import django; django.setup(); from runs.sdk import start; start('give-back', {'number': 9})"
    assert shop.does("-c", words, SHOP_BROKER="") == ""
    assert shop.ask("SELECT status FROM runs_run") == ["queued"]
    assert "no broker to take messages from" in shop.does("manage.py", "worker", ok=False, SHOP_BROKER="")
    # A broker that is away, on an address of its own: said, and over soon.
    away = "redis://127.0.0.1:1/0"
    assert "the sweep will send it" in shop.does("-c", words, HOLDFAST_BROKER_URL=away)
    assert shop.ask("SELECT status FROM runs_run") == ["queued", "queued"]
