"""Chaos: start runs, kill workers under them while a stand-in serves them, and look whether every promise was kept."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from journal.read import read_entries
from journal.verify import verify_run
from recovery.stand_in import StandIn, acted
from runs.models import ENDED, Permit, Run, Status, WorkerSession
from runs.starting import start_run

POLL = 0.25
MOVING = (Status.QUEUED, Status.RUNNING, Status.WAITING)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Brief:
    """A run to be started."""

    agent: str
    input: Any


@dataclass(slots=True)
class Report:
    """`runs`: started here; `statuses` counts them and the runs below them, `agents` the same by agent.

    `served`: what the stand-in did, by verb. `effects`: what acted under the keys of these runs.
    `broken` has one line for each promise that was not kept.
    """

    runs: int
    kills: int
    resumed: int = 0
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    agents: dict[str, Counter[str]] = field(default_factory=dict)
    served: Counter[str] = field(default_factory=Counter)
    effects: int = 0
    broken: list[str] = field(default_factory=list)


def rehearse(
    *, briefs: Sequence[Brief], seconds: float, every: float, patience: float, ledger: str | None, say: Say
) -> Report:
    """Kill a worker of this machine every `every` seconds, for so many `seconds`; wait until all of `briefs` rest.

    Meanwhile a stand-in approves, answers and signals; with a `ledger` (address) it also settles what is in doubt.
    """
    began = time.monotonic()
    started = [start_run(agent=brief.agent, input=brief.input, actor="chaos")[0].id for brief in briefs]
    report, person, over = Report(len(started), 0), StandIn(ledger), threading.Event()
    killer = threading.Thread(target=keep_killing, args=(report, every, seconds, over, say), name="killer")
    killer.start()
    try:
        deadline = began + seconds + patience
        while turn(person, started) and time.monotonic() < deadline:
            pass
    finally:
        over.set()
        killer.join()
    report.seconds, report.served = time.monotonic() - began, person.served
    judge(report, started, ledger)
    return report


def keep_killing(report: Report, every: float, seconds: float, over: threading.Event, say: Say) -> None:
    """In a thread of its own: serving many runs takes longer than it is from one kill to the next."""
    until = time.monotonic() + seconds
    try:
        while not over.wait(every) and time.monotonic() < until:
            try:
                victim = kill_one()
            except DatabaseError:
                connection.close()
                continue
            if victim is not None:
                report.kills += 1
                say(f"killed {victim}")
    finally:
        connection.close()


def turn(person: StandIn, started: Sequence[UUID]) -> bool:
    """Serve the runs once, and say whether any of them moved. A database that is away is waited for."""
    try:
        runs = family(started)  # read once: one that moved, and waits for somebody by now, is served in the next turn
        moves = any(run.status in MOVING for run in runs)
        served = person.serve(runs)
    except DatabaseError:
        connection.close()
        served, moves = 0, True
    time.sleep(POLL)
    return bool(served) or moves


def family(started: Sequence[UUID]) -> list[Run]:
    """The runs and all below them."""
    found, level = [], list(Run.objects.filter(id__in=started).order_by("id"))
    while level:
        found += level
        level = list(Run.objects.filter(parent__in=level).order_by("id"))
    return found


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
    for run in family(started):
        report.statuses[run.status] += 1
        report.agents.setdefault(run.agent, Counter())[run.status] += 1
        report.resumed += run.epoch > 1
        if run.status in MOVING:
            report.broken.append(f"{run.id}: still {run.status} ({run.reason or 'no reason'})")
        if run.status not in ENDED and not run.reason:
            report.broken.append(f"{run.id}: {run.status} without a reason")
        report.broken += [f"{run.id}: entry {fault.seq}: {fault.what}" for fault in verify_run(run.id)]
        if run.status in ENDED and Permit.objects.filter(run=run).exists():
            report.broken.append(f"{run.id}: has ended and keeps a permit")
        if ledger:
            report.broken += wrong_effects(report, run.id, ledger)


def wrong_effects(report: Report, run_id: UUID, ledger: str) -> list[str]:
    """Keys of the run with more than one effect in the ledger, or with none though the journal says that it acted."""
    found = []
    entries = read_entries(None, run_id, kinds=["TOOL_CALL", "OBS"])
    calls = {entry.step: entry.body for entry in entries if entry.kind == "TOOL_CALL"}
    outcomes = {entry.step: entry.body["outcome"] for entry in entries if entry.settles is not None}
    for step, call in calls.items():
        if call["effect"] == "read":
            continue
        count = acted(ledger, call["key"])
        report.effects += count
        if count > 1:
            found.append(f"{run_id}: {count} effects under key {call['key']}")
        if outcomes.get(step) == "succeeded" and count == 0:
            found.append(f"{run_id}: no effect under key {call['key']}, which is said to have succeeded")
    return found
