"""What the address of a run's page asks for."""

from __future__ import annotations


def whole(text: str | None) -> int | None:
    """The number, or None for what is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
