"""Numbers among a command's words, refused in words that name no types."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click

LARGEST = 2**63 - 1  # that the database can count to


class Whole(click.IntRange):
    """`least` to `most`, both allowed."""

    name = "whole number"

    def __init__(self, least: int, most: int = LARGEST) -> None:
        super().__init__(least, most)

    def _describe_range(self) -> str:
        return super()._describe_range() if self.max != LARGEST else f"x>={self.min}"


class Number(click.FloatRange):
    """Never NaN or infinite."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        return number if isfinite(number) else self.fail(f"{value!r} is not a valid number.", param, ctx)

    def _describe_range(self) -> str:
        """Nothing where every number will do: Click would write `x<=None`."""
        return "" if self.min is None and self.max is None else super()._describe_range()
