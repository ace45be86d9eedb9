"""Who may do what: the four roles, their permissions, and API tokens."""

from __future__ import annotations

import getpass
import hashlib
import os
import secrets
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.auth.hashers import make_password
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from runs.audit import record
from runs.errors import RunsError, UnknownAgent
from runs.models import AgentScope, Token
from runs.texts import plain_text

VIEW = "runs.view_run"
START = "runs.start_run"
CONTROL = "runs.control_run"
ANSWER = "runs.answer_ask"
APPROVE = "runs.approve_intent"
RECONCILE = "runs.reconcile_intent"
GATE = "runs.place_gate"
BULK = "runs.act_in_bulk"
SAVE_VIEW = "runs.save_view"
SHARE_VIEW = "runs.share_view"
SEE_AUDIT = "runs.see_audit"
EXPORT_AUDIT = "runs.export_audit"
STAGE = "runs.stage_release"
ROLL_BACK = "runs.roll_back_release"
REPIN = "runs.repin_run"
FORK = "runs.fork_run"
DRAIN = "runs.order_drain"
ADMINISTER = "runs.administer"

OPERATES = frozenset({
    VIEW, START, CONTROL, ANSWER, RECONCILE, GATE, BULK, SAVE_VIEW, SHARE_VIEW, SEE_AUDIT, EXPORT_AUDIT, ROLL_BACK,
    REPIN, FORK, DRAIN,
})  # fmt: skip
ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset({VIEW}),
    "operator": OPERATES,
    "approver": frozenset({VIEW, ANSWER, APPROVE, RECONCILE, SAVE_VIEW}),
    "admin": OPERATES | {APPROVE, STAGE, ADMINISTER},
}
DEMO_USERS = {"olga": "operator", "ada": "approver", "victor": "viewer", "max": "admin"}
LAST_USE_IS_NOTED_EVERY = timedelta(minutes=1)


type Person = User | AnonymousUser


class PermissionMissing(RunsError):
    """You are signed in, but your role does not allow this."""

    def __init__(self, user: str, permission: str) -> None:
        super().__init__()
        self.user = user
        self.permission = permission


class OutsideScope(RunsError):
    """This reaches runs of agents outside of your scope."""


class UnknownRole(RunsError):
    """There is no such role; the roles are viewer, operator, approver and admin."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role


class UserNotFound(RunsError):
    """There is no user of this name."""


class TokenNotFound(RunsError):
    """There is no live token of this number."""


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
def make_token(
    username: str, role: str | None = None, *, days: int | None = None, name: str = "", actor: str | None = None
) -> str:
    """A new token of this user; the text is shown once and only its SHA-256 is kept.

    A missing user is made, as a viewer unless a role is named. A named role replaces the roles the user had. It is of
    no use any more after `days`. Raises UnknownRole or BadUsername.
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
    ends = None if days is None else timezone.now() + timedelta(days=days)
    row = Token.objects.create(user=user, digest=_digest(token), name=plain_text(name), expires_at=ends)
    by = actor or shell_actor()
    record(by, "token.create", subject=user.get_username(), token=row.pk, role=role, days=days)
    return token


@transaction.atomic
def revoke_token(token_id: int, *, actor: str) -> Token:
    """It opens nothing any more; its row stays for the record. Raises TokenNotFound."""
    row = Token.objects.select_for_update(of=("self",)).select_related("user").filter(pk=token_id).first()
    if row is None or row.revoked_at is not None:
        raise TokenNotFound(f"({token_id})")
    row.revoked_at, row.revoked_by = timezone.now(), plain_text(actor)
    row.save(update_fields=["revoked_at", "revoked_by"])
    record(actor, "token.revoke", subject=row.user.get_username(), token=row.pk)
    return row


@transaction.atomic
def set_scope(username: str, agents: Collection[str], *, actor: str) -> User:
    """From now on the user sees and acts on runs of these agents alone; of all, if there are none.

    Raises UserNotFound.
    """
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        raise UserNotFound(f"({username[:60]})")
    AgentScope.objects.filter(user=user).delete()
    AgentScope.objects.bulk_create([AgentScope(user=user, agent=agent) for agent in sorted(set(agents))])
    record(actor, "user.scope", subject=username, agents=sorted(set(agents)) or "all")
    return user


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
    """Whose token it is; None for one that is unknown, revoked or expired, and for a user who was switched off."""
    now = timezone.now()
    live = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    rows = Token.objects.select_related("user").filter(live, revoked_at__isnull=True, user__is_active=True)
    row = rows.filter(digest=_digest(token)).first()
    if row is None:
        return None
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
