"""Flights and rooms of every day: computed, not stored, the same in every installation."""

import hashlib
import re
from typing import Any

PLACES = ("bergen", "kyoto", "lisbon", "oaxaca", "porto", "tallinn", "trieste", "valparaiso")
KINDS = {
    "flight": ("Gull Air 101", "Gull Air 340", "Northwind 7", "Tern 22"),
    "room": ("Harbour", "Old Mill", "Station", "Belvedere"),
}
CENTS_FROM = {"flight": 9_000, "room": 6_000}
TAKEN_BELOW = 40  # of 256: somebody was quicker


def offers(kind: str, to: str, day: str) -> list[dict[str, Any]]:
    """What is on offer, cheapest first; empty for a place or day that nobody knows."""
    found = (offer_named(f"{kind}-{to}-{day}-{number}") for number in range(1, len(KINDS[kind]) + 1))
    return sorted((offer for offer in found if offer is not None), key=lambda offer: offer["price_cents"])


def offer_named(name: str) -> dict[str, Any] | None:
    match = re.fullmatch(r"(flight|room)-([a-z]+)-(\d{4}-\d{2}-\d{2})-([1-4])", name)
    if match is None or match[2] not in PLACES:
        return None
    dice = _dice(name)
    kind, number = match[1], int(match[4])
    price = CENTS_FROM[kind] + int.from_bytes(dice[:2]) % 20_000
    return {
        "id": name,
        "kind": kind,
        "to": match[2],
        "day": match[3],
        "name": KINDS[kind][number - 1],
        "price_cents": price,
    }


def is_taken(name: str) -> bool:
    """Still listed, but gone when somebody wants to hold it."""
    return _dice(name)[31] < TAKEN_BELOW


def _dice(name: str) -> bytes:
    return hashlib.sha256(f"offer {name}".encode()).digest()
