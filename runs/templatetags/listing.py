"""How the list of runs writes numbers."""

from __future__ import annotations

from django import template

from runs.counts import counted as words

register = template.Library()


@register.filter
def counted(number: int, most: int = 100_000) -> str:
    """1,191 or, of what nobody counted further, 100,000+."""
    return words(number, most)


@register.filter
def minus(number: int, other: int) -> int:
    return number - other


@register.filter
def thousands(number: int) -> str:
    """0, 987, 44.3k, 212k, 1.2M: a column of sizes. Where it is a fact of one run, the page of the run has it whole."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}" if number < 100 * size else f"{number // size}{letter}"
    return str(number)


@register.filter
def amount(cost: float) -> str:
    """What it cost so far, with as many digits as tell it; nothing where nothing was spent."""
    return "" if not cost else f"{cost:.2f}" if cost >= 0.01 else f"{cost:.4f}"
