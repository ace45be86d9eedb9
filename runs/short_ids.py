"""The short ids that people read aloud: `r-` and the last 40 bits, eight characters that are hard to mistake."""

from __future__ import annotations

import re
from uuid import UUID

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32
BITS = 40
READ_ALIKE = str.maketrans("ilo", "110")


def short_id(run_id: UUID) -> str:
    tail = run_id.int & ((1 << BITS) - 1)
    return "r-" + "".join(ALPHABET[(tail >> shift) & 31] for shift in range(BITS - 5, -1, -5))


def tail_of(ref: str) -> bytes | None:
    """The last five bytes of the id that a short id stands for; None if it is none."""
    text = ref.lower().removeprefix("r-").translate(READ_ALIKE)
    if not re.fullmatch(f"[{ALPHABET}]{{8}}", text):
        return None
    tail = 0
    for character in text:
        tail = tail << 5 | ALPHABET.index(character)
    return tail.to_bytes(5, "big")
