"""The viewer's day. Instants are written in UTC; "today" and the hours of a chart are those of whoever looks."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone

COOKIE = "tz"  # set by console.js; an IANA name
LONGEST = 64


def zone_of(request: HttpRequest) -> tzinfo:
    """UTC for whoever has told none, or none that exists."""
    return zone_named(unquote(request.COOKIES.get(COOKIE, ""))[:LONGEST])


@lru_cache(1000)
def zone_named(name: str) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, LookupError, OSError):  # none of that name, or a path
        return UTC


def start_of_day(request: HttpRequest, now: datetime | None = None) -> datetime:
    """When the viewer's day began."""
    local = (now or timezone.now()).astimezone(zone_of(request))
    return local.replace(hour=0, minute=0, second=0, microsecond=0)
