"""The demo's agents with their worker killed at every point that a run passes, in memory."""

from typing import Any

import pytest

from demo.agents.ledger_migration import ledger_migration, ledger_shard
from demo.agents.travel_booking import CONFIRMED, travel_booking
from demo.payments.books import BATCHES, batch_of, book_named
from demo.payments.offers import is_taken, offers
from runs import testing
from runs.sdk import PermanentError

TRIP = {"traveller": "mei@example.com", "to": "lisbon", "day": "2027-03-04"}
LEDGER = "2019-q3"
DAMAGED = next(
    n for n in range(1, BATCHES + 1) if (b := batch_of(LEDGER, n)) is not None and b["sum_cents"] != b["total_cents"]
)


def hold(offer: str, seconds: int) -> dict[str, Any]:
    if is_taken(offer):
        raise PermanentError("Somebody was quicker: it is taken.")
    return {"id": f"hold-{offer}", "offer": offer, "at": "2027-01-01"}


TRAVEL = {
    "find_offers": lambda kind, to, day: offers(kind, to, day),
    "hold": hold,
    "release": {"id": "release-1"},
    "book": lambda hold, traveller: {"id": f"book-{hold}", "hold": hold, "at": "2027-01-01"},
    "mail": {"id": "mail-1", "to": "mei@example.com", "at": "2027-01-01"},
}
SHARD = {
    "read_batch": lambda ledger, batch: batch_of(ledger, batch),
    "enter": lambda ledger, batch, correction_cents: {"id": f"enter-{batch}", "batch": batch, "at": "2027-01-01"},
}
BOOKS = {
    "read_book": book_named,
    "cut_over": {"id": "cutover-1", "ledger": LEDGER, "at": "2027-01-01"},
    "mail": TRAVEL["mail"],
    **SHARD,
}


@pytest.mark.parametrize("signals", [{CONFIRMED: None}, {}], ids=["confirmed", "no word"])
def test_a_journey_survives_every_crash(signals: dict[str, Any]) -> None:
    report = testing.crash_everywhere(travel_booking, TRIP, tools=TRAVEL, signals=signals, approve=True)
    assert len(report.points) > 30


@pytest.mark.parametrize("verdict", ["repair", "skip"])
def test_a_shard_survives_every_crash(verdict: str) -> None:
    part = {"ledger": LEDGER, "first": DAMAGED - 1, "last": DAMAGED + 1, "pause": 4}
    report = testing.crash_everywhere(ledger_shard, part, tools=SHARD, answers=lambda question: verdict)
    assert len(report.points) > 20


def test_a_migration_moves_sixty_batches_in_a_few_minutes() -> None:
    run = testing.run(
        ledger_migration,
        {"ledger": LEDGER},
        tools=BOOKS,
        agents=[ledger_shard],
        answers=lambda question: "repair",
        approve=True,
    )
    began = run.now
    assert run.finish().result == {
        "ledger": LEDGER,
        "entered": BATCHES,
        "repaired": [DAMAGED],
        "skipped": [],
        "cut_over": True,
    }
    assert 40 < (run.now - began).total_seconds() < 180
