"""The recovery room's Celery task: it runs in a worker, beside the runs."""

from __future__ import annotations

from celery import shared_task

from recovery.replay_work import carry_out
from recovery.replays import DECIDE_AGAIN
from runs.engine.process import worker


@shared_task(name=DECIDE_AGAIN, ignore_result=True)
def decide_again(replay_id: int) -> None:
    carry_out(worker(), replay_id)
