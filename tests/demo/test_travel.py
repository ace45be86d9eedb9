"""The service's offers, holds and books."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from demo.payments.books import BATCHES, batch_of, book_named
from demo.payments.offers import KINDS, PLACES, is_taken, offer_named, offers
from tests.rig.ledger import Ledger

DAY = "2027-03-04"


def free(kind: str = "flight", taken: bool = False) -> str:
    days = (f"2027-03-{day:02}" for day in range(1, 31))
    return next(o["id"] for day in days for o in offers(kind, "lisbon", day) if is_taken(o["id"]) == taken)


def post(ledger: Ledger, path: str, key: str, /, **body: Any) -> tuple[int, Any]:
    return ledger.send("POST", path, body, {"Idempotency-Key": key})


def hold(ledger: Ledger, key: str = "run:1", seconds: int = 60) -> str:
    status, held = post(ledger, "/hold", key, offer=free(), seconds=seconds)
    assert status == 200, held
    return str(held["id"])


@pytest.mark.parametrize("kind", KINDS)
def test_offers_come_cheapest_first_and_stay_the_same(ledger: Ledger, kind: str) -> None:
    for place in PLACES:
        found = ledger.get(f"/offers/{kind}?to={place}&day={DAY}")["offers"]
        assert found == offers(kind, place, DAY) == sorted(found, key=lambda offer: offer["price_cents"])
        assert [offer_named(offer["id"]) for offer in found] == found
    assert ledger.get(f"/offers/{kind}?to=atlantis&day={DAY}") == {"offers": []}


def test_what_is_held_can_be_booked_once_a_key(ledger: Ledger) -> None:
    held = hold(ledger)
    answers = [post(ledger, "/book", "run:2", hold=held, traveller="mei@example.com") for _ in range(2)]
    assert [(status, answer["replayed"]) for status, answer in answers] == [(200, False), (200, True)]
    assert ledger.acted("run:2") == 1


def test_what_is_taken_or_unknown_cannot_be_held(ledger: Ledger) -> None:
    assert post(ledger, "/hold", "run:1", offer=free(taken=True), seconds=60)[0] == 422
    assert post(ledger, "/hold", "run:2", offer="flight-atlantis-2027-03-04-1", seconds=60)[0] == 422
    assert post(ledger, "/hold", "run:3", offer=free(), seconds=0)[0] == 422
    assert ledger.effects() == []


def test_an_expired_hold_cannot_be_booked_but_an_earlier_booking_is_answered_again(ledger: Ledger) -> None:
    held = hold(ledger, seconds=1)
    assert post(ledger, "/book", "run:2", hold=held, traveller="mei@example.com")[0] == 200
    until = datetime.now(UTC) + timedelta(seconds=1)
    while datetime.now(UTC) <= until:
        assert post(ledger, "/book", "run:2", hold=held, traveller="mei@example.com")[1]["replayed"] is True
    assert post(ledger, "/book", "run:3", hold=held, traveller="mei@example.com") == (
        422,
        {"error": "The hold has expired."},
    )
    assert post(ledger, "/book", "run:2", hold=held, traveller="mei@example.com")[1]["replayed"] is True


@pytest.mark.parametrize("path", ["/book", "/release"])
@pytest.mark.parametrize("name", ["hold-99", "refund-1", "hold-x", 7])
def test_a_hold_that_is_not_there_is_said_so(ledger: Ledger, path: str, name: Any) -> None:
    assert post(ledger, path, "run:1", hold=name) == (422, {"error": "There is no such hold."})


def test_a_hold_is_given_back(ledger: Ledger) -> None:
    held = hold(ledger)
    assert post(ledger, "/release", "run:2", hold=held)[0] == 200


@pytest.mark.parametrize("ledger_name", ["2019-q3", "1987-q1"])
def test_one_batch_of_a_ledger_does_not_add_up(ledger: Ledger, ledger_name: str) -> None:
    book = ledger.get(f"/books/{ledger_name}")
    assert book == book_named(ledger_name)
    batches = [ledger.get(f"/books/{ledger_name}/{number}") for number in range(1, BATCHES + 1)]
    assert sum(batch["total_cents"] for batch in batches) == book["total_cents"]
    assert len([batch for batch in batches if batch["sum_cents"] != batch["total_cents"]]) == 1
    assert ledger.send("GET", f"/books/{ledger_name}/{BATCHES + 1}")[0] == 404
    assert ledger.send("GET", "/books/2019-q5")[0] == 404


def test_a_batch_is_entered_only_when_it_adds_up(ledger: Ledger) -> None:
    batches = [batch_of("2019-q3", number) for number in range(1, BATCHES + 1)]
    damaged = next(b for b in batches if b and b["sum_cents"] != b["total_cents"])
    missing = damaged["total_cents"] - damaged["sum_cents"]
    status, answer = post(ledger, "/enter", "run:1", ledger="2019-q3", batch=damaged["batch"])
    assert status == 422 and "does not add up" in answer["error"]
    for key, correction in (("run:2", {"correction_cents": missing}), ("run:3", {"correction_cents": missing})):
        assert post(ledger, "/enter", key, ledger="2019-q3", batch=damaged["batch"], **correction)[0] == 200


def test_look_ups_fail_when_they_are_told_to(ledger: Ledger) -> None:
    ledger.fault("offers", "fail", times=1)
    ledger.fault("books", "fail", times=1)
    assert ledger.send("GET", f"/offers/room?to=porto&day={DAY}")[0] == 500
    assert ledger.send("GET", "/books/2019-q3")[0] == 500
    assert ledger.send("GET", "/books/2019-q3")[0] == 200
