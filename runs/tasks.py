"""The one Celery task. One task drives a bounded slice of a run; it never retries and returns nothing."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from runs.dispatch import ADVANCE
from runs.engine.process import worker


@shared_task(name=ADVANCE, ignore_result=True)
def advance(run_id: str, release_id: str) -> None:
    worker().advance(UUID(run_id), release_id)
