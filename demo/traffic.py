"""What the demo starts, and when: enough to watch, never enough to fill the disk, the list or the inbox."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.agents import payments_api
from demo.agents.refund_desk import APPROVAL_LIMIT_CENTS
from demo.model import real_model_or_none
from demo.payments.offers import PLACES
from demo.payments.orders import CUSTOMERS, FIRST, LAST, history_of, order_named

AWAITING_AT_MOST, SUPPORT_AWAITING_AT_MOST = 3, 2
LINGER_SHARE = 1 / 4
LINGER_SECONDS = 8
BROKEN = (
    "The {item} came broken. I would like my money back, please.",
    "My {item} has a crack, it must have been damaged on the way. What can you do?",
    "You sent the wrong {item}. I ordered another colour.",
)
MISSING = (
    "My parcel has never arrived. Where is it?",
    "I am still waiting for my {item}. Nothing came so far, and I would rather have the money back.",
)
UNWANTED = (
    "I have changed my mind about the {item}. Can I send it back?",
    "The {item} is too small. I do not need it.",
)
ASKING = ("When was my order sent? I should like to be at home when it comes.",)
COMPLAINTS: tuple[tuple[int, tuple[str, ...]], ...] = ((4, BROKEN), (3, MISSING), (2, UNWANTED), (1, ASKING))


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


def ticket(dice: random.Random, awaiting_approval: int) -> dict[str, Any]:
    """A customer's letter to support. Few are of an order that is not the customer's, or say no number."""
    weights, texts = zip(*COMPLAINTS, strict=True)
    choices = dice.choices(texts, weights)[0]
    order, item = complained_of(dice, choices, awaiting_approval < SUPPORT_AWAITING_AT_MOST)
    said = {"customer": order["email"], "text": dice.choice(choices).format(item=item["name"].lower())}
    odd = dice.random()
    if odd < 0.08:
        return said
    if odd < 0.16:
        said["customer"] = f"{dice.choice(CUSTOMERS)}.{dice.randint(FIRST, LAST)}@example.net"
    return said | {"order_id": order["id"]}


def complained_of(dice: random.Random, texts: tuple[str, ...], may_wait: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """An order and an item of it; unless it `may_wait` for approval, too little for that is to be paid back. What is
    missing has been lost more often than not."""
    today = datetime.now(UTC).date()
    while True:
        order = order_named(f"o-{dice.randint(FIRST, LAST)}")
        assert order is not None
        item = dice.choice(order["items"])
        lost = any(event["what"] == "lost" for event in history_of(order["id"], today))
        cents = order["total_cents"] if texts is MISSING else item["price_cents"]
        if (may_wait or cents <= APPROVAL_LIMIT_CENTS) and (texts is not MISSING or lost or dice.random() < 0.1):
            return order, item


def programme(every: float) -> list[Part]:
    """A refund `every` so many seconds, a journey and a ticket now and then, a migration seldom: some hundred runs a
    day. Tickets for a real model, which cost money, are about twenty a day."""
    tickets = (45.0, 4, 900.0, 5) if real_model_or_none() is None else (300.0, 2, 7_200.0, 3)
    return [
        Part("refund-desk", every, 20, 300.0, 20, refund),
        Part("travel-booking", 25.0, 4, 900.0, 3, journey, first=3.0),
        Part("support", *tickets, ticket, first=3.0),
        Part("ledger-migration", 600.0, 2, 7_200.0, 1, migration, first=8.0),
    ]
