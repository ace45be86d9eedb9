import random

from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.books import book_named
from demo.payments.offers import offers
from demo.payments.orders import order_named
from demo.traffic import AWAITING_AT_MOST, Part, journey, migration, next_order, programme


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
    refunds, journeys, migrations = (started_in_a_day(part) for part in programme(4))
    assert 100 < refunds < 500
    assert 50 < journeys < 200
    assert 5 < migrations < 30


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
