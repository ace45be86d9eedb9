"""The page of all releases: the matrix with exact counts, what is stranded, canaries beside the current release."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from journal.append import create_head, new_run_id
from runs.models import Release, Run, Stage, Status
from runs.pages.release_rows import _digests
from tests.pages.conftest import signed_in
from tests.pages.journals import session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_digests() -> None:
    _digests.clear()


def release(version: str, stage: str = Stage.CANDIDATE, share: int = 0, agent: str = "desk", **more: Any) -> Release:
    content = {"agent": agent, "version": version, "driver": "flow", "tools": [], "model": None} | more
    made = Release.objects.create(
        id=uuid.uuid4().hex * 2, agent=agent, version=version, content=content, stage=stage, share=share
    )
    made.refresh_from_db()
    return made


def runs(of: Release, status: str = Status.RUNNING, count: int = 1, **fields: Any) -> list[Run]:
    made = []
    for _ in range(count):
        with transaction.atomic():
            run_id = new_run_id()
            create_head(run_id)
            made.append(Run.objects.create(id=run_id, agent=of.agent, release=of, status=status, **fields))
    return made


def page(client: Client, query: str = "") -> str:
    return re.sub(r"\s+", " ", client.get(f"/releases{query}").content.decode())


def row(html: str, of: Release) -> str:
    return html.partition(f'id="rel-{of.id}"')[2].partition("</tr>")[0]


def test_a_row_tells_stage_share_workers_and_open_runs_exactly(victor: Client) -> None:
    current, canary = release("7", Stage.CURRENT), release("8", Stage.CANARY, 10)
    session("w1", serves=[current.id, canary.id], codes={current.id: "ab" * 32})
    session("w2", serves=[current.id], codes={current.id: "ab" * 32})
    runs(current, count=3)
    runs(current, Status.AWAITING_APPROVAL)
    runs(current, Status.DONE, ended_at=timezone.now())
    html = page(victor)
    told = row(html, current)
    assert "current, 90%" in told and "Served" in told and "<b>2</b>" in told and "abababab" in told
    assert '<span class="num">3</span> <span>Running</span>' in told
    assert "/runs?q=release%3Adesk%407+status%3Aawaiting_approval" in told and "Done" not in told
    assert "canary, 10%" in row(html, canary) and "Live workers by pool" in html


def test_columns_are_regions_where_there_are_several(victor: Client) -> None:
    current = release("7", Stage.CURRENT)
    for name, region in (("w1", "eu"), ("w2", "eu"), ("w3", "us")):
        session(name, serves=[current.id], region=region)
    html = page(victor)
    assert "Live workers by region" in html
    assert re.findall(r'data-th="Workers, \w+" data-n="\d"><b>(\d)</b>', row(html, current)) == ["2", "1"]


def test_what_no_live_worker_serves_is_told_first_with_what_to_do(olga: Client) -> None:
    old = release("6", Stage.RETIRING)
    session("w1", serves=[old.id], ended_at=timezone.now() - timedelta(minutes=5), end_reason="process died")
    runs(old, Status.WAITING_FOR_VERSION, 4, since=timezone.now() - timedelta(minutes=4))
    runs(old, Status.WAITING)
    html = page(olga)
    alarm = html.partition('id="stranded"')[2].partition('id="pins"')[0]
    for said in (
        "4 runs</a> are stranded on", "desk 6", "The oldest waits for 4 m", "1 more stands for other reasons",
        f"/releases/{old.id}/pin", "How to start its worker", "cancel them</a>", "No live worker serves it since",
    ):  # fmt: skip
        assert said in alarm, said
    assert "Stranded" in row(html, old)


def test_whoever_may_not_act_is_offered_no_act(victor: Client) -> None:
    old = release("6", Stage.RETIRING)
    runs(old, Status.WAITING_FOR_VERSION)
    release("7", Stage.CURRENT, replaced=None)
    html = page(victor)
    assert "1 run</a> is stranded on" in html and "Start a worker with that code" in html
    for link in ("/pin", "/bulk/order", "/promote", "/rollback", "/retire", "/canary"):
        assert f'{link}"' not in html and f"{link}?" not in html, link


def test_releases_with_neither_runs_nor_workers_are_folded(victor: Client) -> None:
    current, old = release("7", Stage.CURRENT), release("5", Stage.RETIRED)
    kept = release("6", Stage.RETIRED)
    runs(kept, Status.HELD)
    html = page(victor)
    assert row(html, current) and row(html, kept) and not row(html, old)
    assert "Show 1 without runs and workers" in html and row(page(victor, "?past=1"), old)


def test_a_canary_stands_beside_the_current_release(max: Client) -> None:
    current, canary = release("7", Stage.CURRENT), release("8", Stage.CANARY, 10)
    Release.objects.filter(id=canary.id).update(staged_at=timezone.now() - timedelta(hours=1))
    ended = {"ended_at": timezone.now(), "tokens": 100}
    runs(current, Status.DONE, 3, **ended)
    runs(current, Status.FAILED, **ended)
    runs(canary, Status.DONE, **(ended | {"tokens": 80}))
    runs(canary, Status.NEEDS_RECONCILIATION, doubts=1, denials=1)
    panel = page(max).partition('id="canaries"')[2]
    for said in (
        "Canary: desk 8", "10% of new runs", "25.0% <small>1 of 4</small>", "50.0% <small>1 of 2</small>",
        "too few to compare", "1 finished run of 8 and 4 of 7", "−20%", 'value="10"',
    ):  # fmt: skip
        assert said in panel, said
    assert "Only an admin sets the share" in page(signed_in("olga"))


def test_a_difference_beyond_chance_is_said_where_enough_have_finished(victor: Client) -> None:
    current, canary = release("7", Stage.CURRENT), release("8", Stage.CANARY, 50)
    Release.objects.filter(id=canary.id).update(staged_at=timezone.now() - timedelta(hours=1))
    ended = {"ended_at": timezone.now()}
    runs(current, Status.DONE, 40, **ended)
    runs(canary, Status.DONE, 25, **ended)
    runs(canary, Status.FAILED, 15, **ended)
    panel = page(victor).partition('id="canaries"')[2]
    assert "+37.5<small>more than chance</small>" in panel and "too few" not in panel


def test_an_empty_installation_says_how_to_begin(victor: Client) -> None:
    assert "No release was announced yet" in page(victor)


def test_the_number_of_queries_does_not_grow_with_the_releases(
    victor: Client, django_assert_max_num_queries: Any
) -> None:
    for n in range(20):
        one = release("7", Stage.CURRENT, agent=f"desk-{n}")
        runs(one, Status.WAITING_FOR_VERSION)
    session("w1", serves=[one.id])
    with django_assert_max_num_queries(14):
        page(victor)
