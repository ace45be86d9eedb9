"""The viewer's day. Instants are written in UTC; "today" and the hours of a chart are those of whoever looks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from django.http import HttpRequest

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


UNAMBIGUOUS = timedelta(hours=12)  # on either side: one moment alone within it has this time of day


def time_text(at: datetime, now: datetime) -> str:
    """14:19:40 in UTC, with the date in front unless it is less than twelve hours from now: in no zone is it a riddle
    then which day is meant."""
    at = at.astimezone(UTC)
    return f"{at:%H:%M:%S}" if abs(at - now) < UNAMBIGUOUS else f"{at:%Y-%m-%d %H:%M:%S}"
