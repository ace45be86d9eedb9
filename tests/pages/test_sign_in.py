from typing import Any

import pytest
from django.test import Client

from runs.models import AuditRecord
from tests.pages.conftest import PASSWORD

TRIES = 10  # of one name

pytestmark = pytest.mark.django_db


ELSEWHERE = [
    "https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example/", "\\\\evil.example",
    "///evil.example", "http:evil.example", "http://localhost/x", "/\t/evil.example", " //evil.example", "evil.example",
]  # fmt: skip


def sign_in(client: Client, name: str = "olga", password: str = PASSWORD, **more: str):  # type: ignore[no-untyped-def]
    return client.post("/login", {"username": name, "password": password} | more)


def test_the_right_password_leads_to_the_first_page(cast: None) -> None:
    client = Client()
    assert sign_in(client)["Location"] == "/"
    assert client.get("/login")["Location"] == "/"
    assert client.get("/login?next=/workers")["Location"] == "/workers"


def test_it_leads_back_to_where_one_wanted_to_go_but_never_to_another_site(cast: None) -> None:
    assert sign_in(Client(), next="/workers")["Location"] == "/workers"
    for elsewhere in ELSEWHERE:
        assert sign_in(Client(), next=elsewhere)["Location"] == "/", elsewhere
        assert elsewhere not in Client().get("/login", {"next": elsewhere}).content.decode()


def test_a_wrong_password_is_said_in_words_and_not_which_part_was_wrong(cast: None) -> None:
    known, unknown = sign_in(Client(), password="no"), sign_in(Client(), name="nobody", password="no")
    assert known.status_code == unknown.status_code == 422
    assert b"That name and password do not match." in known.content
    assert b"That name and password do not match." in unknown.content


def test_a_name_that_failed_too_often_waits_even_with_the_right_password(cast: None) -> None:
    for _ in range(TRIES):
        assert sign_in(Client(), password="no").status_code == 422
    refused = sign_in(Client())
    assert refused.status_code == 429 and b"Too many attempts" in refused.content
    assert sign_in(Client(), name="ada").status_code == 302


def test_behind_a_proxy_an_address_waits_alone(cast: None, settings: Any) -> None:
    settings.HOLDFAST_PROXIES = 1
    here, there = "9.9.9.9, 10.0.0.1", "9.9.9.9, 10.0.0.2"  # the first of each is what the client claims
    for n in range(50):
        Client(headers={"X-Forwarded-For": here}).post("/login", {"username": f"nobody-{n}", "password": "no"})
    assert sign_in(Client(headers={"X-Forwarded-For": here})).status_code == 429
    assert sign_in(Client(headers={"X-Forwarded-For": there})).status_code == 302
    assert AuditRecord.objects.filter(act="login").get().address == "10.0.0.2"


def test_signing_out_takes_a_form_with_a_token(cast: None) -> None:
    client = Client(enforce_csrf_checks=True)
    page = client.get("/login")
    token = page.cookies["csrftoken"].value
    sent = {"username": "olga", "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert client.post("/login", sent).status_code == 302
    assert client.post("/logout").status_code == 403
    assert client.post("/logout", {"csrfmiddlewaretoken": client.cookies["csrftoken"].value})["Location"] == "/login"
    assert client.get("/runs").status_code == 302
