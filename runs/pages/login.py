"""Signing in. A name or an address that failed too often waits."""

from __future__ import annotations

from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import cache
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

TRIES_BY_NAME = 10
TRIES_BY_ADDRESS = 50
WAIT_SECONDS = 300


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def login_page(request: HttpRequest) -> HttpResponseBase:
    if request.user.is_authenticated:
        return redirect(destination(request))
    form = AuthenticationForm(request, data=request.POST or None)
    context = {"form": form, "next": destination(request)}
    if request.method == "GET":
        return render(request, "login.html", context)
    if too_often(request):
        return render(request, "login.html", context | {"wait": WAIT_SECONDS // 60}, status=429)
    if form.is_valid():
        login(request, form.get_user())
        return redirect(destination(request))
    count_failure(request)
    return render(request, "login.html", context, status=422)


@require_POST
def logout_page(request: HttpRequest) -> HttpResponseBase:
    logout(request)
    return redirect("login")


def destination(request: HttpRequest) -> str:
    """Where the person wanted to go, if that is a page of this site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if safe else "/runs"


def counters(request: HttpRequest) -> dict[str, int]:
    """Cache keys and their limits. The cache is this process's own; several web processes each count."""
    name = request.POST.get("username", "")[:150].lower().encode().hex()
    return {f"login-name-{name}": TRIES_BY_NAME, f"login-from-{request.META.get('REMOTE_ADDR', '')}": TRIES_BY_ADDRESS}


def too_often(request: HttpRequest) -> bool:
    return any(cache.get(key, 0) >= limit for key, limit in counters(request).items())


def count_failure(request: HttpRequest) -> None:
    for key in counters(request):
        cache.add(key, 0, WAIT_SECONDS)
        cache.incr(key)
