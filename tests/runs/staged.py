"""An agent in many versions, and workers that say that they serve them."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.db.models.functions import Now
from django.utils import timezone

from runs.agents import Agent
from runs.models import Release, WorkerSession
from runs.registry import announce_one
from runs.sdk import Finish

NAME = "staged"


def version(number: str, **content: Any) -> Agent:
    return Agent(NAME, number, decide=lambda state: Finish(number), **content)


def release(number: str, **content: Any) -> Release:
    """As a worker announces it."""
    return announce_one(version(number, **content))


def stage_of(number: str) -> tuple[str, int]:
    found = Release.objects.filter(agent=NAME, version=number).order_by("-created_at").first()
    assert found is not None
    return found.stage, found.share


def serve(*releases: Release, name: str = "w1", code: str = "c0de", lease: float = 600.0) -> UUID:
    """A live worker's row."""
    now = timezone.now()
    row = WorkerSession.objects.create(
        id=uuid4(), name=name, host="here", pid=1, pool="threads", concurrency=50, region="north",
        serves=[one.id for one in releases], codes={one.id: code for one in releases}, heartbeat_at=now,
        expires_at=now + timezone.timedelta(seconds=lease),
    )  # fmt: skip
    return row.id


def leave(session: UUID) -> None:
    WorkerSession.objects.filter(id=session).update(ended_at=Now(), end_reason="stopped")
