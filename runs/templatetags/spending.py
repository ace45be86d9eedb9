"""Amounts as the page of tokens and money writes them."""

from __future__ import annotations

from decimal import Decimal

from django import template

from runs.pages import money as money_

register = template.Library()


@register.filter
def money(value: Decimal) -> str:
    return money_.dollars(value)


@register.filter
def exactly(value: Decimal) -> str:
    return money_.exactly(value)


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"
