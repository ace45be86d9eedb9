"""Drains as the tests order and follow them, and runs whose first call is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now

from recovery.drains import (
    advance_drains,
    find_drain,
    order_drain,
)
from recovery.models import Drain
from runs.models import Run
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger, wait_until


def order(scope: str = "all", timeout: float = 60, **more: Any) -> Drain:
    return order_drain(scope=scope, timeout=timeout, reason="deploy 8", actor="olga", **more)


def now(drain: Drain) -> Drain:
    advance_drains()
    return find_drain(drain.pk)


def becomes(drain: Drain, phase: str) -> Drain:
    wait_until(lambda: now(drain).phase == phase, f"it is {phase}")
    return find_drain(drain.pk)


def too_late(drain: Drain) -> Drain:
    """As if its deadline had come."""
    Drain.objects.filter(pk=drain.pk).update(deadline_at=Now())
    return now(drain)


@pytest.fixture
def fly(crew: Crew, ledger: Ledger) -> Iterator[Callable[..., UUID]]:
    """Starts a run whose first call takes a while, and gives it back while the call is under way."""
    threads: list[threading.Thread] = []

    def begin(agent: str = "chain", seconds: float = 2.0, **more: Any) -> UUID:
        worker = crew.standing = crew.standing or crew.hire(lease=1.0)
        ledger.fault("charge", "delay", seconds=seconds)
        run_id = start(agent, {"steps": 2, "effect": "keyed"}, **more)
        release = Run.objects.get(id=run_id).release_id
        threads.append(threading.Thread(target=worker.advance, args=(run_id, release)))
        threads[-1].start()
        wait_until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
        return run_id

    yield begin
    for thread in threads:
        thread.join()
