"""Roles, demo users and tokens."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection

from runs.access import (
    ADMINISTER,
    BULK,
    CONTROL,
    EXPORT_AUDIT,
    GATE,
    ROLES,
    SEE_AUDIT,
    SHARE_VIEW,
    START,
    BadUsername,
    UnknownRole,
    ensure_demo_users,
    ensure_roles,
    make_token,
    user_of_token,
)
from runs.models import Token


def permissions_of(username: str) -> set[str]:
    return {code for code in User.objects.get(username=username).get_all_permissions() if code.startswith("runs.")}


@pytest.mark.django_db
def test_roles_are_made_once_and_mended_when_somebody_changed_them() -> None:
    ensure_roles()
    Group.objects.get(name="viewer").permissions.add(Permission.objects.get(codename="administer"))
    Group.objects.get(name="admin").permissions.clear()
    ensure_roles()
    for role, codes in ROLES.items():
        held = Group.objects.get(name=role).permissions.values_list("content_type__app_label", "codename")
        assert {f"{app}.{code}" for app, code in held} == codes


@pytest.mark.django_db
def test_roles_come_back_when_their_permissions_are_gone() -> None:
    Permission.objects.filter(content_type__app_label="runs").delete()
    ensure_roles()
    assert Group.objects.get(name="operator").permissions.count() == len(ROLES["operator"])


@pytest.mark.django_db
def test_the_demo_users_have_their_roles_and_the_password() -> None:
    ensure_demo_users("first")
    ensure_demo_users("second")
    assert User.objects.get(username="olga").check_password("second")
    assert permissions_of("olga") == ROLES["operator"]
    assert permissions_of("ada") == ROLES["approver"]
    assert permissions_of("victor") == ROLES["viewer"]
    assert permissions_of("max") == ROLES["admin"]


def test_nobody_but_an_admin_may_do_everything() -> None:
    assert ROLES["admin"] - ROLES["operator"] == {"runs.approve_intent", "runs.stage_release", "runs.administer"}
    assert ROLES["viewer"] == {"runs.view_run"}
    assert ROLES["approver"] - ROLES["operator"] == {"runs.approve_intent"}
    assert not ROLES["approver"] & {START, CONTROL, GATE, BULK, SHARE_VIEW, SEE_AUDIT, EXPORT_AUDIT, ADMINISTER}
    assert ROLES["viewer"] == {"runs.view_run"}


@pytest.mark.django_db
def test_a_token_makes_a_missing_user_who_only_views() -> None:
    token = make_token("new@example.org")
    user = user_of_token(token)
    assert user is not None and user.username == "new@example.org"
    assert not user.has_usable_password()
    assert permissions_of(user.username) == ROLES["viewer"]


@pytest.mark.django_db
def test_a_named_role_replaces_the_one_before_and_no_role_keeps_it() -> None:
    first, second = make_token("olga", "operator"), make_token("olga", "approver")
    make_token("olga")
    assert permissions_of("olga") == ROLES["approver"]
    assert user_of_token(first) == user_of_token(second) == User.objects.get(username="olga")


@pytest.mark.django_db
def test_only_the_digest_of_a_token_is_kept() -> None:
    token = make_token("olga")
    row = Token.objects.get()
    assert bytes(row.digest) == hashlib.sha256(token.encode()).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT runs_token::text FROM runs_token")
        assert token not in str(cursor.fetchall())


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "hf_", "x" * 10_000, "\x00", "\udcff"])
def test_a_text_that_is_no_token_is_nobodys(token: str) -> None:
    make_token("olga")
    assert user_of_token(token) is None


@pytest.mark.django_db
@pytest.mark.parametrize("username", ["", "two words", "a\0b", "x" * 151])
def test_a_name_that_cannot_be_a_users_is_refused(username: str) -> None:
    with pytest.raises(BadUsername):
        make_token(username)
    assert not User.objects.exists()


@pytest.mark.django_db
def test_an_unknown_role_is_refused_and_makes_nobody() -> None:
    with pytest.raises(UnknownRole):
        make_token("olga", "emperor")
    assert not User.objects.exists()


def test_many_processes_may_make_roles_and_the_same_user_at_once(transactional_db: None) -> None:
    def make(_: int) -> str:
        try:
            return make_token("olga", "operator")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(make, range(8)))
    assert len(set(tokens)) == Token.objects.count() == 8
    assert permissions_of("olga") == ROLES["operator"]
