"""Chaos under runs that a model decides: workers, the sweeper, the providers and the database are taken away again and
again, and no answer is asked for twice.

`HOLDFAST_CHAOS_RUNS=200` does it with so many runs.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import psycopg
import pytest

from config.embedded.postgres import Postgres
from demo.providers.seen import Seen
from journal.entries import Kind
from recovery.chaos import Brief, Report, rehearse
from runs.models import Run
from runs.queries import entries_of
from tests.crash.asked import assert_asked_once
from tests.crash.test_outages import server as server
from tests.rig import talks
from tests.rig.fleet import Fleet, Hand
from tests.rig.fleet import fleet as fleet
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers
from tests.rig.talks import talking as talking

RUNS = int(os.environ.get("HOLDFAST_CHAOS_RUNS", "20"))
SECONDS = RUNS * 0.5  # of kills
AGENTS = [talks.name_of(*each) for each in talks.EACH] + ["moved", "clumsy", "long", "large", "either"]
# A share of all requests meets each; what a run gets in the end is the same.
FAULTS = ("cut", "cut_before", "server_error", "rate_limit", "garbage")


@contextmanager
def again_and_again(every: float, happens: Callable[[], None]) -> Iterator[list[float]]:
    """In the block, as long as workers are killed; when it happened (monotonic)."""
    over, times, until = threading.Event(), [], time.monotonic() + SECONDS

    def work() -> None:
        while not over.wait(every) and time.monotonic() < until:
            happens()
            times.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


@contextmanager
def tended(fleet: Fleet, workers: int) -> Iterator[None]:
    """So many workers; who dies is buried as soon as the database answers, and replaced, as the supervisor does."""
    over, buried = threading.Event(), list[Hand]()
    alive = [fleet.worker() for _ in range(workers)]

    def tend() -> None:
        while not over.wait(0.1):
            for dead in [hand for hand in alive if hand.code is not None]:
                buried.append(dead)
                alive[alive.index(dead)] = fleet.worker()
            with suppress(psycopg.Error):
                while buried:
                    fleet.end(buried[0])
                    buried.pop(0)

    tender = threading.Thread(target=tend)
    tender.start()
    try:
        yield
    finally:
        over.set()
        tender.join()


@pytest.mark.slow
def test_no_answer_is_asked_for_twice_while_everything_is_killed(
    talking: Fleet, ledger: Ledger, providers: Providers, server: Postgres, settings: Any
) -> None:
    talks.use(settings, providers)  # on a database that may be killed
    sweepers = [talking.sweeper()]

    def new_sweeper() -> None:
        sweepers[-1].send(signal.SIGKILL)
        sweepers.append(talking.sweeper())

    def new_database() -> None:
        server.stop(signal.SIGQUIT)
        server.start().returncode = 0  # the fixture stops it

    for fault in FAULTS:
        providers.fault(fault, times=None, share=0.02, retry_after=0)
    providers.fault("slow", times=None, share=0.4, seconds=0.15)  # so that many a request is under way at any time
    providers.fault("delay", times=None, share=0.5, seconds=1.0)
    with tended(talking, 3), again_and_again(3.0, new_sweeper), again_and_again(7.0, new_database) as outages:
        report = rehearse(
            briefs=briefs(), seconds=SECONDS, every=0.7, patience=120 + 2 * RUNS, ledger=ledger.url, say=lambda _: None
        )
    losses = judge_asked(report, providers, talking)
    print(f"{len(sweepers) - 1} sweepers and {len(outages)} databases killed")
    assert report.kills > RUNS / 4 and report.resumed > RUNS / 4 and losses > RUNS / 10, (report, losses)


def briefs() -> list[Brief]:
    """Each with words of its own, so that each request tells whose it is."""
    return [Brief(AGENTS[number % len(AGENTS)], f"Look after order {number}.") for number in range(RUNS)]


def judge_asked(report: Report, providers: Providers, fleet: Fleet) -> int:
    """How many requests were lost with their worker."""
    assert report.broken == [], (report, fleet.story())
    assert report.statuses == {"done": RUNS}, report
    by_run: dict[UUID, list[Seen]] = {}
    whose: dict[str, UUID] = {}
    runs = list(Run.objects.values_list("id", flat=True))
    losses = 0
    for run_id in runs:
        for entry in entries_of(run_id):
            if entry.kind == Kind.ATTEMPT and entry.step is None:
                assert whose.setdefault(entry.body["digest"], run_id) == run_id
                losses += "lost" in entry.body
    for seen in providers.requests:
        by_run.setdefault(whose[seen.digest], []).append(seen)
    for run_id in runs:
        assert_asked_once(run_id, by_run[run_id])
    faults = Counter(seen.fault for seen in providers.requests)
    print(f"{report}\n{len(providers.requests)} requests, {losses} lost, faults {dict(faults)}")
    return losses
