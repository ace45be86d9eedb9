"""Numbers as the overview and the workers page write them."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def status_icon(look: str) -> str:
    return f"s-{look}"


@register.filter
def grouped(number: int) -> str:
    """48,210"""
    return f"{number:,}"


@register.filter
def percent(share: float) -> str:
    """100%, 99.9%"""
    return f"{share:g}%"
