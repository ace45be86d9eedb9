import random

import pytest

from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.books import book_named
from demo.payments.offers import offers
from demo.payments.orders import order_named
from demo.traffic import (
    AWAITING_AT_MOST,
    BROKEN,
    MISSING,
    Part,
    complained_of,
    journey,
    migration,
    next_order,
    programme,
    ticket,
)


def share_above_the_limit(awaiting: int) -> float:
    dice = random.Random(1)
    orders = [order_named(next_order(dice, awaiting)) for _ in range(300)]
    return sum(bool(order and order["total_cents"] > APPROVAL_LIMIT_CENTS) for order in orders) / len(orders)


def started_in_a_day(part: Part) -> int:
    passed, started = part.first, 0
    while passed < 86_400:
        started += 1
        passed += part.pause(started)
    return started


def test_some_runs_need_approval_until_enough_wait_for_it() -> None:
    assert 0.2 < share_above_the_limit(0) < 0.5
    assert share_above_the_limit(AWAITING_AT_MOST) == 0


def test_a_day_of_demo_is_a_few_hundred_runs() -> None:
    started = {part.agent: started_in_a_day(part) for part in programme(4)}
    assert 100 < started["refund-desk"] < 500
    assert 50 < started["travel-booking"] < 200
    assert 50 < started["support"] < 200
    assert 5 < started["ledger-migration"] < 30


def test_a_model_that_costs_money_gets_few_tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DEMO_MODEL", "anthropic:claude-haiku-4-5-20251001")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    started = {part.agent: started_in_a_day(part) for part in programme(4)}
    assert 5 < started["support"] <= 20


def test_the_first_minute_has_some_of_each() -> None:
    assert [part.first for part in programme(4) if part.first > 10] == []


def test_the_first_runs_come_quickly_and_a_slow_pace_stays() -> None:
    assert programme(4)[0].pause(0) == 4
    assert programme(600)[0].pause(1_000_000) == 600


def test_journeys_go_where_there_are_offers_and_ledgers_exist() -> None:
    dice = random.Random(1)
    for _ in range(50):
        trip = journey(dice, 0)
        assert offers("flight", trip["to"], trip["day"]) and offers("room", trip["to"], trip["day"])
        assert book_named(migration(dice, 0)["ledger"])


def test_tickets_are_of_many_kinds_and_of_real_orders() -> None:
    dice = random.Random(1)
    letters = [ticket(dice, 0) for _ in range(200)]
    assert len({letter["text"] for letter in letters}) > 20
    assert not any("{" in letter["text"] for letter in letters)
    orders = [(letter, order_named(letter["order_id"])) for letter in letters if "order_id" in letter]
    assert 150 < len(orders) < 200 and all(order for _, order in orders)
    foreign = sum(letter["customer"] != order["email"] for letter, order in orders if order)
    assert 5 < foreign < 40


@pytest.mark.parametrize("texts", [BROKEN, MISSING])
def test_no_ticket_needs_approval_while_enough_wait_for_it(texts: tuple[str, ...]) -> None:
    dice = random.Random(1)
    for _ in range(40):
        order, item = complained_of(dice, texts, may_wait=False)
        assert (order["total_cents"] if texts is MISSING else item["price_cents"]) <= APPROVAL_LIMIT_CENTS
