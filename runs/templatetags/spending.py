"""Amounts as the page of tokens and money writes them."""

from __future__ import annotations

from decimal import Decimal

from django import template

from runs.pages import spending_page

register = template.Library()


@register.filter
def money(value: Decimal) -> str:
    return spending_page.money(value)


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"
