import random

from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.orders import order_named
from demo.traffic import AWAITING_AT_MOST, next_order, pause


def share_above_the_limit(awaiting: int) -> float:
    dice = random.Random(1)
    orders = [order_named(next_order(dice, awaiting)) for _ in range(300)]
    return sum(bool(order and order["total_cents"] > APPROVAL_LIMIT_CENTS) for order in orders) / len(orders)


def test_some_runs_need_approval_until_enough_wait_for_it() -> None:
    assert 0.2 < share_above_the_limit(0) < 0.5
    assert share_above_the_limit(AWAITING_AT_MOST) == 0


def test_a_day_of_demo_is_a_few_hundred_runs() -> None:
    passed, started = 0.0, 0
    while passed < 86_400:
        passed, started = passed + pause(4, started), started + 1
    assert 100 < started < 500


def test_the_first_runs_come_quickly_and_a_slow_pace_stays() -> None:
    assert pause(4, 0) == 4
    assert pause(600, 1_000_000) == 600
