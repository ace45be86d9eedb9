"""Starting a run in one line of a project: it is there when the transaction commits, and else nothing of it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from celery import shared_task
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import AsyncClient, Client
from django.urls import path

from journal.models import JournalEntry
from runs.errors import RequestKeyTaken
from runs.models import Run
from runs.registry import agents
from runs.sdk import astart, start

pytestmark = pytest.mark.django_db(transaction=True)


def view(request: HttpRequest) -> HttpResponse:
    run_id = start("keyed", request_key=request.GET.get("key"))
    if "fail" in request.GET:
        raise ValueError("no, after all")
    return JsonResponse({"run": str(run_id)})


@transaction.non_atomic_requests
async def later(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"run": str(await astart("keyed", labels={"desk": "berlin"}))})


@shared_task(name="tests.take")
@transaction.atomic
def take(fail: bool = False) -> str:
    run_id = start("keyed")
    if fail:
        raise ValueError("no, after all")
    return str(run_id)


urlpatterns = [path("view", view), path("later", later)]


@pytest.fixture
def sent(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[UUID]]:
    """The runs that were told of in a message."""
    found: list[UUID] = []
    settings.HOLDFAST_AGENTS = ("tests.rig.agents",)
    settings.ROOT_URLCONF = __name__
    agents.cache_clear()
    monkeypatch.setattr("runs.starting.dispatch", lambda run_id, release_id: found.append(run_id))
    yield found
    agents.cache_clear()


def there() -> set[UUID]:
    """Runs, each with its START and nothing else."""
    ids = set(Run.objects.values_list("id", flat=True))
    assert set(JournalEntry.objects.values_list("run_id", "seq")) == {(run_id, 1) for run_id in ids}
    return ids


def test_without_a_transaction_it_goes_out_at_once(sent: list[UUID]) -> None:
    run_id = start("keyed")
    assert sent == [run_id] and there() == {run_id}


def test_in_a_transaction_it_goes_out_when_that_commits(sent: list[UUID]) -> None:
    with transaction.atomic():
        run_id = start("keyed")
        assert sent == []
    assert sent == [run_id] and there() == {run_id}


def test_of_what_is_rolled_back_nothing_is_there(sent: list[UUID]) -> None:
    with pytest.raises(ValueError), transaction.atomic():
        start("keyed", {"big": "x" * 100})
        raise ValueError
    assert sent == [] and there() == set()
    assert start("keyed") in there()  # though the release was recorded in what was rolled back


def test_a_savepoint_that_rolls_back_takes_its_runs_along(sent: list[UUID]) -> None:
    with transaction.atomic():
        kept = start("keyed")
        with pytest.raises(ValueError), transaction.atomic():
            start("keyed")
            raise ValueError
        last = start("keyed")
    assert sent == [kept, last] and there() == {kept, last}


def test_a_request_key_of_what_was_rolled_back_is_free(sent: list[UUID]) -> None:
    for _ in range(2):
        with transaction.atomic():
            start("keyed", {"n": 1}, request_key="order-1")
            transaction.set_rollback(True)
    with transaction.atomic():
        run_id = start("keyed", {"n": 2}, request_key="order-1")
        assert start("keyed", {"n": 2}, request_key="order-1") == run_id
    assert start("keyed", {"n": 2}, request_key="order-1") == run_id
    assert sent == [run_id] and there() == {run_id}


def test_a_refused_start_leaves_the_transaction_usable(sent: list[UUID]) -> None:
    with transaction.atomic():
        run_id = start("keyed", {"n": 1}, request_key="order-1")
        with pytest.raises(RequestKeyTaken):
            start("keyed", {"n": 2}, request_key="order-1")
        other = start("keyed", {"n": 2}, request_key="order-2")
    assert sent == [run_id, other]


def test_a_view_whose_requests_are_atomic(sent: list[UUID], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    client = Client(raise_request_exception=False)
    assert client.get("/view?fail=1&key=a").status_code == 500
    assert sent == [] and there() == set()
    run_id = UUID(client.get("/view?key=a").json()["run"])
    assert client.get("/view?key=a").json() == {"run": str(run_id)}
    assert sent == [run_id] and there() == {run_id}


def test_an_async_view_awaits_it(sent: list[UUID]) -> None:
    answer = asyncio.run(AsyncClient().get("/later"))
    assert sent == [UUID(answer.json()["run"])]
    assert Run.objects.get().labels == {"desk": "berlin"}

    async def forgets() -> None:
        start("keyed")

    with pytest.raises(SynchronousOnlyOperation):
        asyncio.run(forgets())


def test_a_task_of_celery(sent: list[UUID]) -> None:
    assert take.apply((True,)).state == "FAILURE"
    assert sent == [] and there() == set()
    assert UUID(take.apply().get()) in there()
    assert len(sent) == 1


def test_a_message_that_cannot_be_sent_is_not_the_callers_affair(
    sent: list[UUID], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(run_id: UUID, release_id: str) -> None:
        raise LookupError("the address of the broker is odd")

    monkeypatch.setattr("runs.starting.dispatch", break_down)
    with transaction.atomic():
        run_id = start("keyed")
    assert there() == {run_id}
    assert start("keyed") in there()
    assert "the address of the broker is odd" in caplog.text
