"""Old ledgers of sixty batches: computed, not stored. One batch of each does not add up."""

import hashlib
import re
from typing import Any

BATCHES = 60


def book_named(ledger: str) -> dict[str, Any] | None:
    """A ledger is named after a quarter, as 2019-q3."""
    if not re.fullmatch(r"(19|20)\d\d-q[1-4]", ledger):
        return None
    batches = [batch for number in range(1, BATCHES + 1) if (batch := batch_of(ledger, number))]
    return {"ledger": ledger, "batches": BATCHES, "total_cents": sum(batch["total_cents"] for batch in batches)}


def batch_of(ledger: str, number: int) -> dict[str, Any] | None:
    """`sum_cents` is what the entries come to, `total_cents` what the batch's last line says."""
    if not 1 <= number <= BATCHES:
        return None
    dice = hashlib.sha256(f"batch {ledger} {number}".encode()).digest()
    total = 100_000 + int.from_bytes(dice[:3]) % 900_000
    lost = 1 + int.from_bytes(dice[3:5]) % 5_000 if number == _damaged(ledger) else 0
    return {
        "ledger": ledger,
        "batch": number,
        "entries": 20 + dice[5] % 60,
        "sum_cents": total - lost,
        "total_cents": total,
    }


def _damaged(ledger: str) -> int:
    return 1 + hashlib.sha256(f"damaged {ledger}".encode()).digest()[0] % BATCHES
