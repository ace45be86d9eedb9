"""What a model's usage comes to. Pure.

A PLAN's `usage` holds what was reported: `tokens`, or its parts; `cost`, if it is known; `requests`, where the runtime
itself made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tokens_of(usage: Mapping[str, Any]) -> float:
    """Tokens that went in and came out. Cached tokens are among those that went in, reasoning among those that came
    out: neither is counted again, whatever less they cost."""
    if "tokens" in usage:
        return float(usage["tokens"])
    return float(usage.get("input_tokens", 0) + usage.get("output_tokens", 0))


def unpriced_in(usage: Mapping[str, Any]) -> int:
    """Requests of which nobody knows what they cost. A function that says nothing of a cost has none."""
    return 0 if "cost" in usage else int(usage.get("requests", 0))
