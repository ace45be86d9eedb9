"""Chaos: start runs, kill workers under them, and look whether every promise was kept."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.utils import timezone

from journal.read import read_entries
from journal.verify import verify_run
from runs.models import ENDED, Run, Status, WorkerSession
from runs.starting import start_run

POLL = 0.25
MOVING = (Status.QUEUED, Status.RUNNING, Status.WAITING)


@dataclass(slots=True)
class Report:
    """`statuses` counts the runs; `broken` has one line for each promise that was not kept."""

    runs: int
    kills: int
    resumed: int = 0
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)


def rehearse(
    *,
    agent: str,
    inputs: Sequence[Any],
    seconds: float,
    every: float,
    patience: float,
    ledger: str | None,
    say: Callable[[str], None],
) -> Report:
    """Kill a worker of this machine every `every` seconds while `inputs` are run; then wait until all rest."""
    began = time.monotonic()
    started = [start_run(agent=agent, input=given, actor="chaos")[0].id for given in inputs]
    kills = 0
    while time.monotonic() - began < seconds:
        time.sleep(every)
        if (victim := kill_one()) is not None:
            kills += 1
            say(f"killed {victim}")
        if not Run.objects.filter(id__in=started, status__in=MOVING).exists():
            break
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and Run.objects.filter(id__in=started, status__in=MOVING).exists():
        time.sleep(POLL)
    report = Report(len(started), kills, seconds=time.monotonic() - began)
    judge(report, started, ledger)
    return report


def kill_one() -> str | None:
    """SIGKILL to a worker process of this machine whose lease lives; its name, None if there is none."""
    victims = list(
        WorkerSession.objects.filter(ended_at__isnull=True, host=socket.gethostname(), expires_at__gt=timezone.now())
    )
    if not victims:
        return None
    victim = random.choice(victims)
    try:
        os.kill(victim.pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return f"{victim.name} (process {victim.pid})"


def judge(report: Report, started: Sequence[UUID], ledger: str | None) -> None:
    for run in Run.objects.filter(id__in=started).order_by("id"):
        report.statuses[run.status] += 1
        report.resumed += run.epoch > 1
        if run.status in MOVING:
            report.broken.append(f"{run.id}: still {run.status} ({run.reason or 'no reason'})")
        if run.status not in ENDED and not run.reason:
            report.broken.append(f"{run.id}: {run.status} without a reason")
        report.broken += [f"{run.id}: entry {fault.seq}: {fault.what}" for fault in verify_run(run.id)]
        if ledger:
            report.broken += repeated(run.id, ledger)


def repeated(run_id: UUID, ledger: str) -> list[str]:
    """Keys of the run under which the ledger has more than one effect."""
    keys = [e.body["key"] for e in read_entries(None, run_id, kinds=["TOOL_CALL"])]
    found = ((key, len(effects(ledger, key)["effects"])) for key in keys)
    return [f"{run_id}: {count} effects under key {key}" for key, count in found if count > 1]


def effects(ledger: str, key: str) -> Mapping[str, Any]:
    with urllib.request.urlopen(f"{ledger}/effects?key={key}", timeout=10) as answer:
        found: Mapping[str, Any] = json.load(answer)
        return found
