"""What the demo starts, and when: enough to watch, never enough to fill the disk, the list or the inbox."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.agents import payments_api
from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.payments.offers import PLACES
from demo.payments.orders import CUSTOMERS, FIRST, LAST, order_named

AWAITING_AT_MOST = 3
LINGER_SHARE = 1 / 4
LINGER_SECONDS = 8


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of one agent: `every` so many seconds at first, doubled each `doubling` runs; none while enough are open.

    `brief` makes a run's input; it is told how many of its runs wait for approval.
    """

    agent: str
    every: float
    doubling: int
    slowest: float
    unfinished_at_most: int
    brief: Callable[[random.Random, int], dict[str, Any]]
    first: float = 0.0

    def pause(self, started: int) -> float:
        """Seconds to the next run."""
        doublings = min(started // self.doubling, 30)
        return max(self.every, min(self.every * 2.0**doublings, self.slowest))


def refund(dice: random.Random, awaiting_approval: int) -> dict[str, Any]:
    linger_now_and_then(dice)
    return {"order_id": next_order(dice, awaiting_approval)}


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


def journey(dice: random.Random, _awaiting: int) -> dict[str, Any]:
    day = datetime.now(UTC).date() + timedelta(days=dice.randint(7, 90))
    traveller = f"{dice.choice(CUSTOMERS)}@example.com"
    return {"traveller": traveller, "to": dice.choice(PLACES), "day": day.isoformat()}


def migration(dice: random.Random, _awaiting: int) -> dict[str, Any]:
    return {"ledger": f"{dice.randint(1974, 2019)}-q{dice.randint(1, 4)}"}


def programme(every: float) -> list[Part]:
    """A refund `every` so many seconds, a journey now and then, a migration seldom: some hundred runs a day."""
    return [
        Part("refund-desk", every, 20, 300.0, 20, refund),
        Part("travel-booking", 25.0, 4, 900.0, 3, journey, first=3.0),
        Part("ledger-migration", 600.0, 2, 7_200.0, 1, migration, first=8.0),
    ]
