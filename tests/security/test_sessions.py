"""Stolen and worn-out keys: another's cookie, a fixed session, tokens that ended, an address that leads elsewhere."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client, override_settings
from django.utils import timezone

from runs.access import TokenNotFound, make_token, revoke_token, user_of_token
from runs.models import Token
from tests.pages.conftest import PASSWORD, signed_in
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


def with_cookie(value: str) -> Client:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = value
    return client


def sign_in(client: Client, name: str = "olga", password: str = PASSWORD, **more: str) -> Any:
    return client.post("/login", {"username": name, "password": password} | more)


def test_a_cookie_ends_with_its_login(cast: None) -> None:
    client = Client()
    sign_in(client)
    stolen = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert with_cookie(stolen).get("/runs").status_code == 200
    client.post("/logout")
    assert with_cookie(stolen).get("/runs").status_code == 302
    assert not Session.objects.filter(session_key=stolen).exists()


def test_a_cookie_ends_when_its_user_is_switched_off_or_has_a_new_password(cast: None) -> None:
    for change in ("password", "is_active"):
        client, olga = signed_in("olga"), User.objects.get(username="olga")
        assert client.get("/runs").status_code == 200
        if change == "password":
            olga.set_password("another")
        olga.is_active = change != "is_active"
        olga.save()
        assert client.get("/runs").status_code == 302, change
        assert client.get("/api/v1/runs").status_code == 401, change


def test_a_session_that_was_planted_before_the_login_is_not_the_one_after_it(cast: None) -> None:
    victim = with_cookie("0123456789abcdefghijklmnopqrstuv")
    sign_in(victim)
    assert victim.cookies[settings.SESSION_COOKIE_NAME].value != "0123456789abcdefghijklmnopqrstuv"
    before = victim.cookies[settings.SESSION_COOKIE_NAME].value
    csrf = victim.cookies["csrftoken"].value if "csrftoken" in victim.cookies else ""
    victim.post("/logout")
    sign_in(victim, "ada")
    assert victim.cookies[settings.SESSION_COOKIE_NAME].value != before
    assert victim.cookies["csrftoken"].value != csrf


def test_cookies_are_out_of_reach_of_scripts_and_of_other_sites(cast: None) -> None:
    client = Client()
    sign_in(client)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"] and cookie["samesite"] == "Lax"


def test_made_up_cookies_open_nothing(cast: None) -> None:
    for value in ("", "x" * 32, "0" * 5000, "../../etc/passwd", "' OR 1=1 --", "a\\0b"):
        assert with_cookie(value).get("/runs").status_code == 302, value


# -- tokens ------------------------------------------------------------------------------------------------------------


def called(token: str, **more: Any) -> Any:
    return Client(raise_request_exception=False).get(
        "/api/v1/runs", headers={"Authorization": f"Bearer {token}"}, **more
    )


def test_a_revoked_token_opens_nothing_and_its_sisters_still_do(db: None) -> None:
    first, second = make_token("olga", "operator"), make_token("olga")
    number = Token.objects.order_by("id")[0].pk
    revoke_token(number, actor="max")
    assert called(first).status_code == 401 and called(second).status_code == 200
    with pytest.raises(TokenNotFound):
        revoke_token(number, actor="max")
    told = Token.objects.get(pk=number)
    assert told.revoked_by == "max" and told.revoked_at is not None


def test_a_token_ends_by_itself(db: None) -> None:
    token = make_token("olga", "operator", days=1)
    assert called(token).status_code == 200
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert called(token).status_code == 401 and user_of_token(token) is None


def test_a_token_opens_no_page_and_counts_nowhere_but_in_its_header(cast: None) -> None:
    token = make_token("olga")
    assert Client().get("/runs", headers={"Authorization": f"Bearer {token}"}).status_code == 302
    assert Client().get(f"/api/v1/runs?token={token}&access_token={token}").status_code == 401
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = token
    assert client.get("/api/v1/runs").status_code == 401


def test_a_token_acts_as_its_own_user_whatever_cookie_comes_with_it(cast: None) -> None:
    story = Story()
    client = signed_in("max")
    headers = {"Authorization": f"Bearer {make_token('victor')}"}
    answer = client.post(f"/api/v1{story.url}/hold", {"reason": "x"}, "application/json", headers=headers)
    assert answer.status_code == 403 and answer.json()["user"] == "victor"


def test_only_the_digest_of_a_token_is_kept(db: None) -> None:
    token = make_token("olga")
    kept = bytes(Token.objects.get().digest)
    assert len(kept) == 32 and token.encode() not in kept


# -- guessing ----------------------------------------------------------------------------------------------------------


def test_failures_count_in_one_place_for_all_web_processes(cast: None) -> None:
    assert settings.CACHES["default"]["BACKEND"].endswith("DatabaseCache")
    for _ in range(10):
        assert sign_in(Client(), password="wrong").status_code == 422
    refused = sign_in(Client())
    assert refused.status_code == 429 and refused.headers["Retry-After"] == "300"
    assert b"Nothing was checked; try again in 5 minutes." in refused.content
    cache.clear()
    assert sign_in(Client()).status_code == 302


def test_a_name_that_does_not_exist_waits_as_one_that_does(cast: None) -> None:
    answers = {}
    for name in ("olga", "nobody-of-that-name"):
        answers[name] = [sign_in(Client(), name, "wrong").status_code for _ in range(12)]
    assert answers["olga"] == answers["nobody-of-that-name"] == [422] * 10 + [429] * 2


def test_another_host_name_or_spelling_gives_no_more_tries(cast: None) -> None:
    for n in range(10):
        host = ("localhost", "127.0.0.1", "[::1]")[n % 3]
        name = ("olga", "OLGA", " olga ")[n % 3]
        Client().post("/login", {"username": name, "password": "wrong"}, headers={"Host": host})
    assert sign_in(Client()).status_code == 429


def test_an_address_that_tries_many_names_waits(cast: None) -> None:
    for n in range(50):
        assert sign_in(Client(), f"name-{n}", "wrong").status_code == 422
    assert sign_in(Client(), "name-51", "wrong").status_code == 429
    elsewhere = Client(REMOTE_ADDR="192.0.2.9").post("/login", {"username": "olga", "password": PASSWORD})
    assert elsewhere.status_code == 302


def test_a_header_does_not_make_another_address(cast: None) -> None:
    for n in range(50):
        Client().post("/login", {"username": f"n{n}", "password": "x"}, headers={"X-Forwarded-For": f"198.51.100.{n}"})
    assert sign_in(Client(), "n51", "x").status_code == 429


def test_a_right_password_in_between_wipes_nothing(cast: None) -> None:
    for _ in range(9):
        sign_in(Client(), password="wrong")
    assert sign_in(Client()).status_code == 302
    assert sign_in(Client(), password="wrong").status_code == 422
    assert sign_in(Client()).status_code == 429


# -- elsewhere ---------------------------------------------------------------------------------------------------------

ELSEWHERE = ["https://evil.example/x", "//evil.example/x", "/\\evil.example", "http://testserver.evil.example/x"]


@pytest.mark.parametrize("where", ELSEWHERE)
def test_no_page_leads_to_another_site(cast: None, where: str) -> None:
    nobody, olga = Client(), signed_in("olga")
    stale = Client(enforce_csrf_checks=True)
    stale.force_login(User.objects.get(username="olga"))
    hold = f"{Story().url}/hold"
    for name in ("Referer", "HX-Current-URL"):
        for answer in (
            nobody.post(hold, {"reason": "x"}, headers={name: where}),
            stale.post(hold, {"reason": "x"}, headers={name: where}),
            olga.post(hold, {"reason": "x", "next": where, "back": where}, headers={name: where}),
            olga.get(hold, {"back": where, "next": where}, headers={name: where}),
        ):
            assert "evil.example" not in answer.headers.get("Location", ""), name
            assert b"evil.example" not in answer.content, name
    for address in ("/runs", "/jump", "/bulk/order", "/gates/place", "/inbox", "/views/save"):
        answer = olga.get(address, {"next": where, "back": where, "return": where})
        assert "evil.example" not in answer.headers.get("Location", ""), address
        assert f'href="{where}' not in answer.content.decode(), address


@override_settings(ALLOWED_HOSTS=["localhost"])
def test_another_host_name_is_refused(cast: None) -> None:
    for host in ("evil.example", "localhost.evil.example", "localhost@evil.example", "localhost:80:80", "", "a b"):
        answer = Client(raise_request_exception=False).get("/login", headers={"Host": host or "x"})
        assert answer.status_code == 400, host
    ours = Client().get("/runs", headers={"Host": "localhost", "X-Forwarded-Host": "evil.example"})
    assert ours.status_code == 302 and "evil" not in ours.headers["Location"]
