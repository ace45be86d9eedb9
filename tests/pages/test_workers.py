"""The list of workers: a row a session, and of a lost one what became of its runs."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Status, WorkerSession
from runs.pages.sharing import shared
from tests.pages.journals import Story, session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    shared.clear()


def page(client: Client, query: str = "") -> str:
    return client.get(f"/workers{query}").content.decode()


def row(html: str, of: WorkerSession) -> str:
    return html.partition(f'id="session-{of.id}"')[2].partition("</tr>")[0]


def test_a_row_tells_the_lease_what_it_holds_and_what_it_serves(victor: Client) -> None:
    worker = session("w1", region="eu-west")
    Story().now_is(Status.RUNNING, session=worker)
    told = row(page(victor), worker)
    assert "Serving" in told and "1 / 50" in told and "threads" in told and "eu-west" in told and "here:1" in told
    assert "refund-desk" in told and str(worker.id) in told


def test_the_state_of_a_session_is_told_in_words(victor: Client) -> None:
    now = timezone.now()
    draining = session("w2", draining_at=now)
    Story().now_is(Status.RUNNING, session=draining)
    late = session("w3", heartbeat_at=now - timedelta(seconds=8), expires_at=now + timedelta(seconds=2))
    silent = session("w4", heartbeat_at=now - timedelta(seconds=30), expires_at=now - timedelta(seconds=20))
    ended = session("w5", ended_at=now, end_reason="it was told to stop")
    told = page(victor)
    assert "Draining, 1 left" in row(told, draining)
    assert "Heartbeat late" in row(told, late)
    assert "Silent past its lease" in row(told, silent)
    assert "Ended" in row(told, ended) and "it was told to stop" in row(told, ended)
    assert "1 draining, 1 late with a heartbeat, 1 lost." in told


def test_a_lost_one_tells_who_took_its_runs_and_what_needs_a_person(victor: Client) -> None:
    lost, taker = session("w1", ended_at=timezone.now(), end_reason="process died"), session("w2")
    for status in (Status.RUNNING, Status.NEEDS_RECONCILIATION):
        story = Story().now_is(Status.RUNNING, session=lost)
        story.claimed()
        body = {"text": "taken over", "epoch": 2, "from": str(lost.id), "session": str(taker.id)}
        story.write("NOTE", body, actor="system")
        story.now_is(status, session=taker)
    told = row(page(victor), lost)
    assert "Lost, fenced" in told and "2 runs taken over by w2 in" in told and "1 needs a person" in told


def test_a_person_cannot_write_a_take_over(victor: Client) -> None:
    lost = session("w1", ended_at=timezone.now(), end_reason="process died")
    Story().write("NOTE", {"text": "taken over", "from": str(lost.id), "session": str(uuid.uuid4())}, actor="olga")
    assert "taken over by" not in row(page(victor), lost)


def test_those_that_ended_long_ago_are_left_out(victor: Client) -> None:
    old = session("w1", ended_at=timezone.now() - timedelta(hours=2), end_reason="it was told to stop")
    assert str(old.id) not in page(victor)
    assert "No worker has been here within the hour" in page(victor)


def test_a_pool_is_shown_alone(victor: Client) -> None:
    threads, greens = session("w1", pool="threads"), session("w2", pool="payments")
    told = page(victor, "?pool=payments")
    assert str(greens.id) in told and str(threads.id) not in told
    assert "?pool=payments" in told and str(threads.id) in page(victor, "?pool=nonsense")


def test_whoever_may_control_gets_to_the_gate_of_a_worker(olga: Client, victor: Client) -> None:
    session("w1")
    assert "/gates/place?scope=worker%3Aw1" in page(olga)
    assert "/gates/place" not in page(victor)


def test_the_number_of_queries_does_not_grow_with_the_workers(
    victor: Client, django_assert_max_num_queries: object
) -> None:
    for n in range(20):
        session(f"w{n}")
    with django_assert_max_num_queries(13):  # type: ignore[operator]
        page(victor)
