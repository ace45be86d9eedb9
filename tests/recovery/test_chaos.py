"""Chaos in short: workers are killed one after the other, and every promise is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from recovery.chaos import Brief, Report, judge, rehearse
from recovery.stand_in import answer_for
from runs.slots import Slot
from tests.rig.crew import Crew, start, state
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

MIGRATION = {"ledger": "2019-q3", "pause": 0.3, "shards": 3}
JOURNEY = {"traveller": "t@example.com", "to": "lisbon", "day": "2027-05-01", "decide_within": 600}


@contextmanager
def tended(fleet: Fleet, workers: int) -> Iterator[None]:
    """So many workers; who dies is buried and replaced, as the supervisor does."""
    over = threading.Event()
    alive = [fleet.worker() for _ in range(workers)]

    def tend() -> None:
        while not over.wait(0.1):
            for dead in [hand for hand in alive if hand.code is not None]:
                fleet.end(dead)
                alive[alive.index(dead)] = fleet.worker()

    tender = threading.Thread(target=tend)
    tender.start()
    try:
        for hand in list(alive):
            fleet.await_session(hand)
        yield
    finally:
        over.set()
        tender.join()


@pytest.mark.slow
def test_every_promise_is_kept_while_workers_are_killed(fleet: Fleet, ledger: Ledger) -> None:
    fleet.environment["HOLDFAST_AGENTS"] = "demo.agents"
    briefs = [Brief("refund-desk", {"order_id": f"o-{number}"}) for number in range(1, 13)]
    briefs += [Brief("travel-booking", JOURNEY)] * 2 + [Brief("ledger-migration", MIGRATION)]
    with tended(fleet, 2):
        fleet.sweeper()
        report = rehearse(briefs=briefs, seconds=12, every=1, patience=90, ledger=ledger.url, say=lambda _: None)
    assert report.broken == [], (report, fleet.story())
    assert set(report.statuses) == {"done"}, report
    assert report.kills >= 2 and report.resumed and report.served["answered"] and report.effects > 60, report
    assert {agent: sum(rests.values()) for agent, rests in report.agents.items()} == {
        "refund-desk": 12, "travel-booking": 2, "ledger-migration": 1, "ledger-shard": 3,
    }  # fmt: skip


def test_a_second_effect_or_a_missing_one_is_a_broken_promise(crew: Crew, ledger: Ledger) -> None:
    told = []
    for agent, fault in (("keyed-probe", 0), ("unkeyed", 1)):
        run_id = start(agent, {})
        crew.drive(run_id)
        key = state(run_id).slots[1].key
        if fault:
            ledger.send("POST", "/mail", {"to": "a@b.example", "subject": "", "body": ""}, {"X-Reference": key})
        report = Report(1, 0)
        judge(report, [run_id], ledger.url)
        told += report.broken
    assert len(told) == 1 and "2 effects under key" in told[0]


def test_a_run_that_still_moves_is_a_broken_promise(crew: Crew) -> None:
    run_id = start("sleep", {"seconds": 3600})
    report = Report(1, 0)
    judge(report, [run_id], None)
    assert report.statuses == {"queued": 1} and "still queued" in report.broken[0]


@pytest.mark.parametrize(
    ("schema", "options", "answer"),
    [({"type": "integer"}, None, 1), ({"enum": ["skip", "repair"]}, None, "skip"), ({}, [3, 4], 3), ({}, None, None)],
)
def test_the_stand_in_answers_with_what_was_asked_for(schema: object, options: object, answer: object) -> None:
    body = {"schema": schema} | ({"options": options} if options else {})
    slot = Slot(1, "ask", 2, None, body)  # type: ignore[arg-type]
    assert answer_for(slot) == answer
