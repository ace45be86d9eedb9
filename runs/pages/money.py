"""Amounts of money as people read them. Prices are in US dollars."""

from __future__ import annotations

from decimal import Decimal

SHOWN = 3  # digits that count, of what is below a dollar


def dollars(value: Decimal) -> str:
    """$1,234.57, $0.31, $0.0289: two places, and below a dollar as many as say something."""
    places = 2
    if value and abs(value) < 1:
        places = max(places, SHOWN - 1 - value.adjusted())
    text = f"{value:,.{places}f}"
    whole, _, rest = text.partition(".")
    return f"${whole}.{rest.rstrip('0').ljust(2, '0')}"


def exactly(value: Decimal) -> str:
    """As it adds up, with two places at least: $0.0289145."""
    text = f"{value.normalize():f}" if value else "0"
    whole, _, rest = text.partition(".")
    return f"${int(whole):,}.{rest.ljust(2, '0')}"
