"""The first line of each page: who is asking, and may they. A page that nobody may see leads to the login and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

type View[**P] = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def signed_in[**P](permission: str) -> Callable[[View[P]], View[P]]:
    """For a fragment, a lost login reloads the page, which then leads to the login."""

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                fragment = request.headers.get("HX-Request") == "true"
                return HttpResponse(status=401, headers={"HX-Refresh": "true"}) if fragment else login_first(request)
            if not request.user.has_perm(permission):
                raise PermissionDenied(permission)
            return view(request, *args, **kwargs)

        return guarded

    return guard


def login_first(request: HttpRequest) -> HttpResponse:
    """After a form that was sent too late, back to the page it stood on: its address may know no GET."""
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/runs")
