"""Where an act leads back to."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def way_back(request: HttpRequest, otherwise: str) -> str:
    """The page of this console that the act was opened on, if its address says so; never one elsewhere."""
    url = request.POST.get("back") or request.GET.get("back") or ""
    local = url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
    return url if local else otherwise
