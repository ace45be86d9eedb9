"""What no message tells is asked once for all streams."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from journal.feed import Subscription
from runs.models import AgentScope, Status, WorkerSession
from runs.pages.pulse import Watch, look
from runs.pages.viewers import Viewer, standings
from tests.pages.journals import Story, session

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(victor: Client) -> Viewer:
    user = User.objects.get(username="victor")
    return Viewer(user.pk, victor.session.session_key, standings([user.pk])[user.pk])


def watch(viewer: Viewer, story: Story | None) -> Watch:
    made = Watch(story.run.id if story else None, Subscription(None, 10), viewer)
    assert look([made]) == []  # what it is at first is what the page was drawn with
    return made


def test_a_page_that_nothing_happened_to_is_left_alone(viewer: Viewer) -> None:
    watches = [watch(viewer, None), watch(viewer, Story())]
    assert look(watches) == []


def test_a_lease_that_lapses_and_a_child_that_moves_are_told(viewer: Viewer) -> None:
    worker = session("w1")
    story = Story().now_is(Status.RUNNING, session=worker)
    child = story.spawn()
    held = watch(viewer, story)
    WorkerSession.objects.filter(id=worker.id).update(expires_at=timezone.now() - timedelta(seconds=0.1))
    assert look([held]) == [held] and look([held]) == []
    child.now_is(Status.HELD, "a look", ended_at=timezone.now())
    assert look([held]) == [held]


@pytest.mark.parametrize("how", ["signed out", "switched off", "role", "scope", "password"])
def test_whoever_may_look_no_more_is_gone(viewer: Viewer, victor: Client, how: str) -> None:
    open_page = watch(viewer, None)
    user = User.objects.get(username="victor")
    change: dict[str, Any] = {
        "signed out": lambda: victor.session.flush(),
        "switched off": lambda: User.objects.filter(pk=user.pk).update(is_active=False),
        "role": lambda: user.groups.remove(Group.objects.get(name="viewer")),
        "scope": lambda: AgentScope.objects.create(user=user, agent="another"),
        "password": lambda: User.objects.filter(pk=user.pk).update(password="another"),
    }
    change[how]()
    assert look([open_page]) == [open_page] and viewer.gone


def test_many_streams_cost_three_queries(viewer: Viewer, django_assert_max_num_queries: Any) -> None:
    watches = [watch(viewer, Story()) for _ in range(20)]
    with django_assert_max_num_queries(3):
        look(watches)
