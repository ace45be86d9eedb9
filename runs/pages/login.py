"""Signing in and out. A name or an address that failed too often waits, whichever web process it asks."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.forms import LoginForm
from allauth.account.views import LoginView
from django.contrib.auth import logout
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from runs.audit import client_address, record
from runs.signed_in import is_own_path

TOO_MANY = "too_many_login_attempts"
WAIT_MINUTES = 5


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]
    """How we differ from allauth: the audit list is told, no page greets, and a way on is a path of this site."""

    def login(self, request: HttpRequest, user: AbstractBaseUser) -> None:
        super().login(request, user)
        record(user.get_username(), "login")

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """The list keeps no name that is none: people type passwords into the wrong field."""
        known = User.objects.filter(username=credentials.get("username", "")).exists()
        record("nobody", "login.refused", subject=credentials["username"] if known else "an unknown name")

    def is_safe_url(self, url: str) -> bool:
        return is_own_path(url)

    def is_ajax(self, request: HttpRequest) -> bool:
        return False

    def add_message(self, *args: Any, **kwargs: Any) -> None: ...

    def get_login_stages(self) -> list[str]:
        return []

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request) or "unknown"

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        return str(credentials.get("username", "")).lower()  # by whichever host name the site was asked


class SignIn(LoginForm):  # type: ignore[misc]
    """Its field has the name by which browsers and password managers know it."""

    def add_prefix(self, field_name: str) -> str:
        return "username" if field_name == "login" else str(super().add_prefix(field_name))


class LoginPage(LoginView):  # type: ignore[misc]
    template_name = "login.html"
    form_class = SignIn

    def form_invalid(self, form: Form) -> HttpResponse:
        if form.has_error("__all__", TOO_MANY):
            return too_many(self.request, form)
        answer: HttpResponse = self.render_to_response(self.get_context_data(form=form), status=422)
        return answer

    def get_context_data(self, **given: Any) -> dict[str, Any]:
        """Without allauth's addresses of signing up and the like, which we do not have."""
        context: dict[str, Any] = super(LoginView, self).get_context_data(**given)
        return context | page_context(self.request)


login_page = LoginPage.as_view(http_method_names=["get", "head", "post"])


def too_many(request: HttpRequest, form: Form | None = None) -> HttpResponse:
    """Also the site's answer to an address that tries too often."""
    given = page_context(request) | {"form": form or SignIn(request=request), "wait": WAIT_MINUTES}
    answer = render(request, "login.html", given, status=429)
    answer.headers["Retry-After"] = str(WAIT_MINUTES * 60)
    return answer


def page_context(request: HttpRequest) -> dict[str, Any]:
    wanted = destination(request)
    return {"next": wanted, "unsent": "unsent" in request.GET}


def destination(request: HttpRequest) -> str:
    """Where the person wanted to go, if that is a page of this site; else nowhere."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    return wanted if is_own_path(wanted) else ""


@require_POST
def logout_page(request: HttpRequest) -> HttpResponseBase:
    if request.user.is_authenticated:
        record(request.user.get_username(), "logout")
    logout(request)
    return redirect("login")
