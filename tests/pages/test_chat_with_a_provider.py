"""The page while a scripted provider answers a real worker: what arrives, then the answer, then what the model saw."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client

from runs.access import ensure_demo_users
from runs.models import Run
from runs.queries import entries_of
from runs.short_ids import short_id
from tests.pages.test_chat import words
from tests.rig.crew import Crew, start
from tests.rig.crew import crew as crew
from tests.rig.providers import Providers
from tests.rig.providers import providers as providers
from tests.rig.talks import desk as desk

pytestmark = pytest.mark.usefixtures("ledger")  # what the tools act on


@pytest.fixture
def victor(dsn: str) -> Client:
    ensure_demo_users("unused")
    client = Client()
    client.force_login(User.objects.get(username="victor"))
    return client


def chat(client: Client, run: UUID) -> str:
    page = client.get(f"/runs/{short_id(run)}?view=chat").content.decode()
    return words(page[page.index('id="chat"') : page.index('id="inspector"')])


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def rows_under_way() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM runs_answer_under_way")
        return int(cursor.fetchone()[0])


def driving(desk: Crew, run: UUID) -> threading.Thread:
    def drive() -> None:
        try:
            desk.drive(run)
        finally:
            connections.close_all()

    thread = threading.Thread(target=drive)
    thread.start()
    return thread


def test_an_answer_is_seen_while_it_arrives_and_nothing_is_left_of_it(
    desk: Crew, providers: Providers, victor: Client
) -> None:
    providers.fault("hold", model="three", turn=0, after=8)
    run = start("three-messages-streamed", "Look after order o-1.")
    thread = driving(desk, run)
    eventually(lambda: "Three" in chat(victor, run), "something arrives")
    assert "not in the journal yet" in chat(victor, run)
    providers.release()
    thread.join(60)
    assert Run.objects.get(id=run).status == "done"
    said = chat(victor, run)
    assert "not in the journal yet" not in said and "Let me see." in said and "Charged once, paid back twice." in said
    eventually(lambda: rows_under_way() == 0, "nothing is left of it")


@pytest.mark.parametrize("protocol", ["messages", "chat", "responses"])
def test_what_each_answer_saw_is_byte_for_byte_what_was_sent(
    desk: Crew, providers: Providers, victor: Client, protocol: str
) -> None:
    run = start(f"three-{protocol}-streamed", "Look after order o-1.")
    assert desk.drive(run).status == "done"
    plans: list[Any] = [entry for entry in entries_of(run) if entry.kind == "PLAN" and "asked" in entry.body]
    sent = [seen.body for seen in providers.asked("three")]
    assert len(plans) == len(sent) == 3
    for plan in plans:
        page = victor.get(f"/runs/{short_id(run)}/entries/{plan.seq}/request").content.decode()
        assert "Equal to what was sent" in page, (plan.seq, words(page))
