"""What the console shows of a run of an agent of pydantic-ai."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client

from journal.entries import Kind
from runs.access import ensure_demo_users
from runs.contracts import findings
from runs.models import Run
from runs.pages.sharing import shared
from runs.queries import entries_of
from runs.registry import agents
from runs.short_ids import short_id
from tests.integrations.desks import ACTED, ASKED
from tests.rig.crew import Crew, start, state


@pytest.fixture
def waiting(crew: Crew) -> Iterator[Run]:
    """It waits for approval of its refund."""
    ACTED.clear()
    ASKED.clear()
    shared.clear()
    run_id = start("yard", "Refund o-1")
    yield crew.drive(run_id)


@pytest.fixture
def max(db: None) -> Client:
    ensure_demo_users("four-words-of-the-demo")
    client = Client()
    client.force_login(User.objects.get(username="max"))
    return client


def seq_of(run: Run, kind: Kind, actor: str = "worker") -> int:
    return next(entry.seq for entry in entries_of(run.id) if entry.kind == kind and entry.actor == actor)


def test_every_page_of_it_is_shown(waiting: Run, max: Client) -> None:
    ref = short_id(waiting.id)
    waits = next(slot.seq for slot in state(waiting.id).unsettled())
    paths = [
        f"/runs/{ref}", f"/runs/{ref}?view=chat", f"/runs/{ref}?seq={seq_of(waiting, Kind.PLAN, 'model')}",
        f"/runs/{ref}/entries/{seq_of(waiting, Kind.PLAN, 'model')}/request",
        f"/runs/{ref}/entries/{seq_of(waiting, Kind.ATTEMPT)}/request", f"/runs/{ref}/state?at=5",
        f"/runs/{ref}/journal", "/spending", "/agents/yard", "/agents/yard/tools/refund", "/releases",
        f"/releases/{waiting.release_id}", f"/inbox/{ref}/{waits}", "/agents/yard/start", "/",
    ]  # fmt: skip
    for path in paths:
        answer = max.get(path, follow=True)
        assert answer.status_code == 200, (path, answer.status_code)


def test_the_conversation_is_told(waiting: Run, max: Client) -> None:
    page = max.get(f"/runs/{short_id(waiting.id)}?view=chat").content.decode()
    assert "Let me see." in page
    assert "orders look like o-1" in page


def test_check_has_nothing_to_say_against_it(waiting: Run) -> None:
    served = agents()[waiting.release_id]
    assert [str(found) for found in findings(served, 25) if found.level != "info"] == []


def test_a_model_of_tests_is_named_once(waiting: Run, max: Client) -> None:
    page = max.get(f"/runs/{short_id(waiting.id)}").content.decode()
    assert "asks function:" in page and "function:function" not in page
