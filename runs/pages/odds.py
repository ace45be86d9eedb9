"""Whether two shares differ by more than chance would explain. Pure."""

from __future__ import annotations

from math import exp, lgamma

UNLIKELY = 0.05


def differ(one: int, of: int, other: int, of_other: int) -> bool:
    """Fisher's exact test, two-sided: `one` of `of` against `other` of `of_other`."""
    hits = one + other
    here = _log_odds(one, of, of_other, hits)
    counts = range(max(0, hits - of_other), min(of, hits) + 1)
    odds = (_log_odds(count, of, of_other, hits) for count in counts)
    return sum(exp(odd) for odd in odds if odd <= here + 1e-9) < UNLIKELY


def _log_odds(count: int, of: int, of_other: int, hits: int) -> float:
    return _log_choose(of, count) + _log_choose(of_other, hits - count) - _log_choose(of + of_other, hits)


def _log_choose(of: int, some: int) -> float:
    return lgamma(of + 1) - lgamma(some + 1) - lgamma(of - some + 1)
