"""Who may do what: the four roles, their permissions, and API tokens."""

from __future__ import annotations

import getpass
import hashlib
import os
import secrets
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import make_password
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from runs.errors import RunsError, UnknownAgent
from runs.models import AgentScope, Token

VIEW = "runs.view_run"
START = "runs.start_run"
CONTROL = "runs.control_run"
APPROVE = "runs.approve_intent"
RECONCILE = "runs.reconcile_intent"
ADMINISTER = "runs.administer"

ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset({VIEW}),
    "operator": frozenset({VIEW, START, CONTROL, RECONCILE}),
    "approver": frozenset({VIEW, APPROVE, RECONCILE}),
    "admin": frozenset({VIEW, START, CONTROL, APPROVE, RECONCILE, ADMINISTER}),
}
DEMO_USERS = {"olga": "operator", "ada": "approver", "victor": "viewer", "max": "admin"}
LAST_USE_IS_NOTED_EVERY = timedelta(minutes=1)


type Person = AbstractBaseUser | AnonymousUser


class PermissionMissing(RunsError):
    """You are signed in, but your role does not allow this."""

    def __init__(self, user: str, permission: str) -> None:
        super().__init__()
        self.user = user
        self.permission = permission


class UnknownRole(RunsError):
    """There is no such role; the roles are viewer, operator, approver and admin."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role


class BadUsername(RunsError):
    """A user name has 1 to 150 characters: letters, digits and @ . + - _ only."""

    def __init__(self, username: str) -> None:
        super().__init__()
        self.username = username


def agents_of(user: Person | None) -> frozenset[str] | None:
    """The agents whose runs this user sees and acts on; None for all. Nobody (`user=None`) is the shell or a worker.

    Read once for each loaded user: a request, or a stream, which ends by itself after some minutes.
    """
    if user is None:
        return None
    if not user.is_authenticated:
        return frozenset()
    kept: frozenset[str] | None
    try:
        kept = user.__dict__["_agents"]
    except KeyError:
        kept = frozenset(AgentScope.objects.filter(user=user.pk).values_list("agent", flat=True)) or None
        user.__dict__["_agents"] = kept
    return kept


def sees(user: Person | None, agent: str) -> bool:
    """Whether runs of this agent are within the user's scope."""
    within = agents_of(user)
    return within is None or agent in within


def check_agent(user: Person | None, agent: str) -> None:
    """Raises UnknownAgent, in the words for one that does not exist, where the user's scope leaves it out."""
    if not sees(user, agent):
        raise UnknownAgent(f"{agent!r} is none of {', '.join(sorted(agents_of(user) or ()))}.")


def seen_by[M: Model](user: Person | None, rows: QuerySet[M], field: str = "agent") -> QuerySet[M]:
    """Those of the rows that are within the user's scope; `field` names the row's agent."""
    within = agents_of(user)
    return rows if within is None else rows.filter(**{f"{field}__in": within})


def ensure_roles() -> None:
    """Makes the groups and gives each exactly its permissions. Any number of processes may call it, at any time."""
    granted = _permissions()
    for role, codes in ROLES.items():
        group, _ = Group.objects.get_or_create(name=role)
        group.permissions.set([granted[code] for code in codes])


def _permissions() -> dict[str, Permission]:
    wanted = ROLES["admin"]
    found = _stored_permissions()
    if not wanted <= found.keys():
        # `migrate` makes them in a signal; a database that was only cloned or restored may lack them.
        create_permissions(apps.get_app_config("runs"), verbosity=0)
        found = _stored_permissions()
    return found


def _stored_permissions() -> dict[str, Permission]:
    rows = Permission.objects.filter(content_type__app_label="runs").select_related("content_type")
    return {f"{row.content_type.app_label}.{row.codename}": row for row in rows}


def ensure_demo_users(password: str) -> None:
    """Olga operates, Ada approves, Victor views, Max administers; all with this password."""
    ensure_roles()
    hashed = make_password(password)  # once: it is slow on purpose
    for username, role in DEMO_USERS.items():
        user, _ = User.objects.get_or_create(username=username)
        user.password = hashed
        user.save(update_fields=["password"])
        user.groups.set([Group.objects.get(name=role)])


@transaction.atomic
def make_token(username: str, role: str | None = None) -> str:
    """A new token of this user; the text is shown once and only its SHA-256 is kept.

    A missing user is made, as a viewer unless a role is named. A named role replaces the roles the user had.
    Raises UnknownRole or BadUsername.
    """
    if role is not None and role not in ROLES:
        raise UnknownRole(role)
    ensure_roles()
    user, created = User.objects.get_or_create(username=_checked(username))
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    if role is not None or created:
        user.groups.set([Group.objects.get(name=role or "viewer")])
    token = f"hf_{secrets.token_urlsafe(32)}"
    Token.objects.create(user=user, digest=_digest(token))
    return token


def _checked(username: str) -> str:
    field: Any = User._meta.get_field("username")
    try:
        field.run_validators(User.normalize_username(username))
    except Exception as refused:
        raise BadUsername(username) from refused
    if not username:
        raise BadUsername(username)
    return User.normalize_username(username)


def user_of_token(token: str) -> User | None:
    """Whose token it is; None for an unknown one and for a user who was switched off."""
    row = Token.objects.select_related("user").filter(digest=_digest(token), user__is_active=True).first()
    if row is None:
        return None
    now = timezone.now()
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - LAST_USE_IS_NOTED_EVERY)
    if row.last_used_at is None or row.last_used_at < now - LAST_USE_IS_NOTED_EVERY:
        Token.objects.filter(stale, pk=row.pk).update(last_used_at=now)
    return row.user


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def shell_actor() -> str:
    """Who acts at a shell: the login name of the system, marked so that no web user can look like it."""
    try:
        return f"shell:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's user may have no name
        return f"shell:{os.getuid()}"
