"""Forms: every one that writes needs a token of this login; an old tab is told so; reading changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from journal.read import read_head
from runs.models import AuditRecord, Gate, Run, SavedView
from runs.short_ids import short_id
from tests.pages.conftest import PASSWORD
from tests.pages.journals import Story, awaiting_approval
from tests.security.table import API, NONE, PAGES, address_of, in_turn
from tests.security.test_every_verb import MANNERS, STILL

pytestmark = pytest.mark.django_db
WRITES = [route for route in STILL if route in PAGES and PAGES[route].writes != NONE]
DIALOG = {"HX-Request": "true", "HX-Target": "dialog#dialog"}


def checking(name: str = "max") -> Client:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username=name))
    return client


def everything() -> tuple[Any, ...]:
    runs = Run.objects.order_by("id").values_list("id", "status", "reason", "as_of_seq", "epoch")
    heads = [read_head(None, run_id).last_seq for run_id in Run.objects.order_by("id").values_list("id", flat=True)]
    acts = AuditRecord.objects.exclude(act="refused").exclude(act__endswith=".export").values_list("act", flat=True)
    return list(runs), heads, list(acts), Gate.objects.count(), SavedView.objects.count()


TOKENS = [None, "", "x" * 64, "0" * 32]
HEADERS = [*MANNERS.values(), DIALOG]


@pytest.mark.parametrize("token", TOKENS)
def test_every_form_that_writes_is_refused_without_the_right_token(cast: None, token: str | None) -> None:
    client, story = checking(), awaiting_approval()[0]
    client.get("/runs")
    before = everything()
    for place, route in enumerate(WRITES):
        address = address_of(route, PAGES[route], short_id(story.run.id), str(story.run.id))
        for at, headers in enumerate(HEADERS):
            if not in_turn(len(HEADERS), place, at, TOKENS.index(token)):
                continue
            given = dict(PAGES[route].sends or {}) | ({} if token is None else {"csrfmiddlewaretoken": token})
            answer = client.post(address, given, headers=headers)
            assert answer.status_code == 403, (route, headers)
            assert "Nothing was written" in answer.content.decode(), route
    for method, path in API:
        if method != "GET":
            address = path.replace("{ref}", short_id(story.run.id)).replace("{seq}", "3").replace("{gate_id}", "1")
            sent = {} if token is None else {"X-CSRFToken": token}
            answer = client.generic(method, f"/api/v1{address}", b"{}", "application/json", headers=sent)
            assert answer.status_code == 403 and answer.json()["type"].endswith(":csrf-refused"), path
    assert everything() == before


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://testserver.evil.example"])
def test_a_form_from_another_site_is_refused_even_with_a_token(cast: None, origin: str) -> None:
    client, story = checking(), Story()
    token = token_in(client, f"{story.url}/hold")
    given = {"reason": "x", "csrfmiddlewaretoken": token}
    assert client.post(f"{story.url}/hold", given, headers={"Origin": origin}).status_code == 403
    assert read_head(None, story.run.id).last_seq == 1
    assert client.post(f"{story.url}/hold", given, headers={"Origin": "http://testserver"}).status_code == 302


def token_in(client: Client, page: str) -> str:
    """As the page's own form would send it."""
    html = client.get(page).content.decode()
    return html.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]


@pytest.mark.parametrize("again", ["olga", "ada"])
def test_an_old_tab_is_told_that_nothing_was_written_and_opens_its_page_again(cast: None, again: str) -> None:
    browser, story = Client(enforce_csrf_checks=True), Story()
    login(browser, "olga")
    page = f"{story.url}/hold"
    old = {"reason": "three sentences that nobody wants to write twice", "csrfmiddlewaretoken": token_in(browser, page)}
    browser.post("/logout", {"csrfmiddlewaretoken": token_in(browser, "/runs")})
    login(browser, again)
    for headers in ({}, {"HX-Request": "true"}, DIALOG):
        here = {"Referer": f"http://testserver{page}?x=1"} | headers
        answer = browser.post(page, old, headers=here)
        told = answer.content.decode()
        assert answer.status_code == 403
        assert f"You signed in again in another tab, as {again}" in told and "Nothing was written." in told
        assert f'href="{page}?x=1"' in told and old["reason"] in told
        assert ("<!doctype html>" in told) is (not headers)
    assert read_head(None, story.run.id).last_seq == 1
    if again == "olga":
        fresh = old | {"csrfmiddlewaretoken": token_in(browser, page)}
        assert browser.post(page, fresh).status_code == 302
        assert read_head(None, story.run.id).last_seq == 2


def test_a_tab_whose_login_is_over_is_told_so_at_the_login_and_led_back(cast: None) -> None:
    browser, story = Client(enforce_csrf_checks=True), Story()
    login(browser, "olga")
    page = f"{story.url}/hold"
    old = {"reason": "x", "csrfmiddlewaretoken": token_in(browser, page)}
    browser.post("/logout", {"csrfmiddlewaretoken": token_in(browser, "/runs")})
    here = {"Referer": f"http://testserver{page}"}
    led = browser.post(page, old, headers=here)
    assert led.status_code == 302 and led.headers["Location"] == f"/login?next={page}&unsent=1"
    assert b"What you sent was not written" in browser.get(led.headers["Location"]).content
    fragment = browser.post(page, old, headers=here | DIALOG)
    assert fragment.status_code == 401 and fragment.headers["HX-Redirect"] == f"/login?next={page}&unsent=1"
    assert read_head(None, story.run.id).last_seq == 1


def login(browser: Client, name: str) -> None:
    given = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token_in(browser, "/login")}
    assert browser.post("/login", given).status_code == 302


def test_a_login_form_from_another_site_signs_nobody_in(cast: None) -> None:
    browser = Client(enforce_csrf_checks=True)
    assert browser.post("/login", {"username": "olga", "password": PASSWORD}).status_code == 403
    assert browser.get("/runs").status_code == 302


def test_reading_changes_nothing(cast: None) -> None:
    client, story = checking(), awaiting_approval()[0]
    before = everything()
    for place, route in enumerate(STILL):
        for at, headers in enumerate(HEADERS):
            for method in ("GET", "HEAD"):
                if not in_turn(2, place, at, method == "GET"):
                    continue
                address = address_of(route, PAGES[route], short_id(story.run.id), str(story.run.id))
                given = {"reason": "x", "verdict": "approve", "digest": "6be1c07d" * 8, "name": "v", "scope": "all"}
                client.generic(
                    method, address, QUERY_STRING="&".join(f"{k}={v}" for k, v in given.items()), headers=headers
                )
    assert everything() == before


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
def test_a_method_is_what_the_request_says_and_nothing_else(cast: None, name: str) -> None:
    client, story = checking(), Story()
    for method in ("POST", "DELETE"):
        client.get(f"{story.url}/hold?_method={method}&reason=x", headers={name: method})
        client.get(f"/api/v1{story.url}/hold?_method={method}", headers={name: method})
    assert read_head(None, story.run.id).last_seq == 1
    for odd in ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND"):
        token = token_in(client, "/runs")
        answer = client.generic(odd, f"{story.url}/hold", b"reason=x", headers={"X-CSRFToken": token})
        assert answer.status_code in (403, 405), odd
    assert read_head(None, story.run.id).last_seq == 1


def test_a_form_that_is_sent_twice_writes_an_approval_once(cast: None) -> None:
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    story, seq = awaiting_approval()
    given = {"verdict": "approve", "digest": "6be1c07d" * 8, "note": ""}
    address = f"{story.url}/intents/{seq}/approval"
    first, second = client.post(address, given), client.post(address, given)
    assert first.status_code == 302 and second.status_code == 409
    assert "ada" in second.content.decode()
    assert AuditRecord.objects.filter(act="intent.approve").count() == 1


def test_a_changed_digest_approves_nothing(cast: None) -> None:
    client = Client()
    client.force_login(User.objects.get(username="ada"))
    story, seq = awaiting_approval()
    before = read_head(None, story.run.id).last_seq
    answer = client.post(f"{story.url}/intents/{seq}/approval", {"verdict": "approve", "digest": "f" * 64})
    assert answer.status_code == 409
    assert read_head(None, story.run.id).last_seq == before
