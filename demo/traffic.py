"""How the demo keeps the refund desk busy without ever filling the disk or the inbox."""

import random

from demo.agents import payments_api
from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.orders import FIRST, LAST, order_named

AWAITING_AT_MOST = 3
UNFINISHED_AT_MOST = 20
SLOWEST_SECONDS = 300.0
RUNS_PER_DOUBLING = 20
LINGER_SHARE = 1 / 4
LINGER_SECONDS = 8


def pause(every: float, started: int) -> float:
    """Seconds to the next run: `every` at first, doubled each twenty runs. A day ends with a few hundred runs."""
    doublings = min(started // RUNS_PER_DOUBLING, 30)
    return max(every, min(every * 2.0**doublings, SLOWEST_SECONDS))


def linger_now_and_then(dice: random.Random) -> None:
    """One refund in four is done at once but answered late: time to watch a call under way, and to kill its worker."""
    if dice.random() < LINGER_SHARE:
        payments_api.fault("refund", "late", seconds=LINGER_SECONDS, times=1)


def next_order(dice: random.Random, awaiting_approval: int) -> str:
    """A random order; one in three needs approval, none while enough of them wait for it."""
    may_wait = awaiting_approval < AWAITING_AT_MOST and dice.random() < 1 / 3
    while True:
        order = order_named(f"o-{dice.randint(FIRST, LAST)}")
        if order is not None and (order["total_cents"] > APPROVAL_LIMIT_CENTS) == may_wait:
            return str(order["id"])
