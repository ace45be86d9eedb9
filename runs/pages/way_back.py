"""Where an act leads back to."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def way_back(request: HttpRequest, otherwise: str) -> str:
    """The page of this console that the act was opened on, if its address says so; never one elsewhere."""
    url = request.POST.get("back") or request.GET.get("back") or ""
    local = url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if local else as_it_was_seen(request, otherwise)


def as_it_was_seen(request: HttpRequest, path: str) -> str:
    """This page of the console, read as a conversation if it was so where the act was opened on it."""
    on = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "")
    return f"{path}?view=chat" if on.path == path and parse_qs(on.query).get("view") == ["chat"] else path
