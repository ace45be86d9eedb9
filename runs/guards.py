"""The guard of an API verb: who calls (bearer token, or a page's session with CSRF) and whether the role allows it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from runs.access import PermissionMissing, user_of_token
from runs.errors import RunsError


class CsrfRefused(RunsError):
    """The page's form token is missing or old; reload the page and try again."""


class BearerToken(HttpBearer):
    """`Authorization: Bearer hf_…`, as printed by `manage.py token create`."""

    def __init__(self, permission: str) -> None:
        super().__init__()
        self.permission = permission

    def authenticate(self, request: HttpRequest, token: str) -> User:
        user = user_of_token(token)
        if user is None:
            raise AuthenticationError()  # a wrong token never falls back to whoever the browser is signed in as
        request.user = user
        return _allowed(user, self.permission)


class PageSession(APIKeyCookie):
    """The login of the pages, for their own fetches; a request that changes something needs the CSRF header."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self, permission: str) -> None:
        super().__init__()
        self.permission = permission

    def _get_key(self, request: HttpRequest) -> str | None:
        # Signed in first, CSRF second: nobody at all is 401, not 403.
        if request.user.is_authenticated and check_csrf(request):
            raise CsrfRefused
        return request.COOKIES.get(self.param_name)

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        return _allowed(request.user, self.permission) if isinstance(request.user, User) else None


def may(permission: str) -> list[BearerToken | PageSession]:
    """The `auth=` of a verb. It is judged before the body is read."""
    return [BearerToken(permission), PageSession(permission)]


def _allowed(user: User, permission: str) -> User:
    if not user.has_perm(permission):
        raise PermissionMissing(user.get_username(), permission)
    return user


def actor_of(request: HttpRequest) -> str:
    """The name under which the journal keeps who did it: the login's, never one from the request."""
    return request.user.get_username()
