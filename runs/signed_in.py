"""The first line of each page: who is asking, and may they. A page that nobody may see leads to the login and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate
from urllib.parse import urlencode, urlsplit

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme

type View[**P] = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

READS = ("GET", "HEAD")


def signed_in[**P](permission: str) -> Callable[[View[P]], View[P]]:
    """The guard of a page. A template asks for the same permission: `{% if perms.runs.control_run %}`."""

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return login_first(request)
            if not request.user.has_perm(permission):
                raise PermissionDenied(permission)
            answer = view(request, *args, **kwargs)
            # A page that the browser's history brings back is asked for again: it may offer what is long decided.
            answer.headers.setdefault("Cache-Control", "no-store")
            return answer

        guarded.permission = permission  # type: ignore[attr-defined]
        return guarded

    return guard


def login_first(request: HttpRequest) -> HttpResponse:
    """To the login and back. After a form, back to the page it stood on, and it is said that nothing was written.

    A fragment that was only read reloads its page, which then leads to the login.
    """
    fragment = request.headers.get("HX-Request") == "true"
    if fragment and request.method in READS:
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    asked = {"next": request.get_full_path()} if request.method in READS else {"next": page_of(request), "unsent": "1"}
    there = f"{resolve_url('login')}?{urlencode(asked, safe='/')}"
    return HttpResponse(status=401, headers={"HX-Redirect": there}) if fragment else redirect(there)


def page_of(request: HttpRequest) -> str:
    """The path of the page that a form stood on, if the browser says so and it is ours; else the first page."""
    told = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer") or "")
    path = told.path + (f"?{told.query}" if told.query else "")
    return path if told.netloc == request.get_host() and is_own_path(path) else "/"


def is_own_path(url: str) -> bool:
    return url.startswith("/") and url_has_allowed_host_and_scheme(url, allowed_hosts=None)
