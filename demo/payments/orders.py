"""Orders o-1 … o-999, the same in every installation: they are computed, not stored."""

import hashlib
import re
from datetime import date, timedelta
from typing import Any

FIRST, LAST = 1, 999
CATALOGUE = ("Desk lamp", "Notebook", "Teapot", "Rucksack", "Headphones", "Wool scarf", "Chess set", "Rain coat")
CUSTOMERS = ("ines", "jonas", "mei", "tariq", "lena", "paolo", "ruth", "samir")


def order_named(order_id: str) -> dict[str, Any] | None:
    """The order with its items, or None. total_cents is 500 … 30,000 and the sum of the items."""
    match = re.fullmatch(r"o-([1-9][0-9]{0,2})", order_id)
    if match is None:
        return None
    number = int(match[1])
    dice = hashlib.sha256(f"order {number}".encode()).digest()
    total = 500 + int.from_bytes(dice[:4]) % 29_501
    items = _items(total, dice[4:])
    return {
        "id": order_id,
        "email": f"{CUSTOMERS[dice[31] % len(CUSTOMERS)]}.{number}@example.com",
        "total_cents": total,
        "items": items,
    }


def history_of(order_id: str, today: date) -> list[dict[str, Any]]:
    """What happened to an order on its way to the customer, oldest first; empty for one that there is not.

    One in eight is lost by the carrier, one in eight still under way. Days count back from `today`, so that an order is
    never an old story.
    """
    if order_named(order_id) is None:
        return []
    dice = hashlib.sha256(f"history {order_id}".encode()).digest()
    ordered = today - timedelta(days=6 + dice[0] % 15)
    shipped = ordered + timedelta(days=1 + dice[1] % 2)
    told = [("ordered", ordered, "Paid by card."), ("shipped", shipped, f"Parcel {10_000 + dice[2] * 257}.")]
    match dice[3] % 8:
        case 0:
            told.append(("lost", shipped + timedelta(days=3), "The carrier cannot find the parcel."))
        case 1:
            told.append(("delayed", shipped + timedelta(days=2), "Under way; expected within three days."))
        case _:
            told.append(("delivered", shipped + timedelta(days=1 + dice[4] % 3), "Handed over at the door."))
    return [{"what": what, "day": day.isoformat(), "note": note} for what, day, note in told]


def first_orders(count: int) -> list[dict[str, Any]]:
    orders = (order_named(f"o-{number}") for number in range(FIRST, min(FIRST + count, LAST + 1)))
    return [order for order in orders if order is not None]


def _items(total_cents: int, dice: bytes) -> list[dict[str, Any]]:
    wanted = 1 + dice[0] % 3
    share = total_cents // wanted
    prices = [share] * (wanted - 1) + [total_cents - share * (wanted - 1)]
    return [
        {"name": CATALOGUE[dice[1 + position] % len(CATALOGUE)], "price_cents": price}
        for position, price in enumerate(prices)
    ]
