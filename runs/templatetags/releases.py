"""How the console writes stages of releases and shares of runs."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils import timezone

from runs.models import Stage
from runs.templatetags.console import duration

register = template.Library()
LOOKS = {
    Stage.CANDIDATE: "queued", Stage.CANARY: "running", Stage.CURRENT: "ok", Stage.RETIRING: "draining",
    Stage.RETIRED: "off",
}  # fmt: skip


@register.filter
def stage_look(stage: str) -> str:
    """Its glyph and hue."""
    return LOOKS.get(stage, "off")  # type: ignore[call-overload, no-any-return]


@register.filter
def share(of_100: float) -> str:
    """0.9%"""
    return f"{of_100:.1f}%"


@register.filter
def points(difference: float) -> str:
    """+2.6 or −0.9, in points of a percentage."""
    return "0.0" if abs(difference) < 0.05 else f"{difference:+.1f}".replace("-", "−")


@register.filter
def mean(number: float | None) -> str:
    return "–" if number is None else f"{number:,.0f}"


@register.filter
def relative(number: float | None, to: float | None) -> str:
    """+12%, −16%; nothing to tell where one is missing."""
    if number is None or not to:
        return "–"
    return f"{100 * (number - to) / to:+.0f}%".replace("-", "−")


@register.filter
def of_100(portion: float | None) -> float:
    """0.009 is 0.9 of 100."""
    return 100 * (portion or 0.0)


@register.filter
def age(since: datetime) -> str:
    """In whole minutes, 12 m or 5 h 02 m: what is drawn again every two seconds does not change with each second."""
    minutes = max(0, int((timezone.now() - since).total_seconds())) // 60
    return duration(60.0 * minutes).removesuffix(" 00 s") if minutes else "less than a minute"
