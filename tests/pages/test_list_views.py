"""Saved views: a person's own, and shared ones."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import AuditRecord, SavedView, Status
from runs.short_ids import short_id
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db
HELD = "status=held"


def save(client: Client, name: str, address: str = HELD, **more: str) -> SavedView:
    answer = client.post(f"/views/save?{address}", {"name": name} | more)
    assert answer.status_code == 302, answer.content
    return SavedView.objects.get(name=name)


def test_a_view_is_a_tab_with_its_count_for_whoever_saved_it(olga: Client, ada: Client) -> None:
    held = Story().now_is(Status.HELD, "held by olga: x")
    view = save(olga, "On hold")
    assert view.query == HELD
    page = olga.get(f"/runs?{view.query}").content.decode()
    assert f'href="/runs?{HELD}" aria-current="page">On hold<span class="n">1</span>' in page
    assert short_id(held.run.id) in page and f"/views/{view.pk}" in page
    assert "On hold" not in ada.get("/runs").content.decode()
    assert AuditRecord.objects.filter(actor="olga", act="view.save", subject="On hold").exists()


def test_a_shared_view_is_everybodys_and_its_owners_to_change(olga: Client, victor: Client, max: Client) -> None:
    view = save(olga, "On hold", shared="1")
    page = victor.get(f"/runs?{HELD}").content.decode()
    assert "On hold" in page and "Shared by olga" in page and f"/views/{view.pk}" not in page
    assert max.get(f"/views/{view.pk}").status_code == 404
    assert max.post(f"/views/{view.pk}/delete").status_code == 404


def test_whoever_may_not_share_saves_for_themselves(ada: Client, victor: Client) -> None:
    assert save(ada, "Mine", shared="1").shared is False
    assert victor.post(f"/views/save?{HELD}", {"name": "x"}).status_code == 403
    assert "Save view" not in victor.get("/runs").content.decode()


def test_a_view_is_renamed_and_deleted(olga: Client) -> None:
    view = save(olga, "On hold")
    assert olga.post(f"/views/{view.pk}", {"name": "Held"}).status_code == 302
    assert "Held" in olga.get(f"/views/{view.pk}").content.decode()
    assert olga.get(f"/views/{view.pk}/delete").status_code == 405
    assert olga.post(f"/views/{view.pk}/delete").status_code == 302
    assert SavedView.objects.count() == 0


def test_a_view_is_not_called_as_a_tab_that_is_there_for_everybody(olga: Client) -> None:
    answer = olga.post(f"/views/save?{HELD}", {"name": "open"})
    assert answer.status_code == 422 and "There is a tab of this name already." in answer.content.decode()
    assert not SavedView.objects.exists()


def test_names_are_wanted_and_each_once_a_person(olga: Client, max: Client) -> None:
    save(olga, "On hold")
    for name, said in (("", "Write a name"), ("On hold", "You have a view of this name")):
        answer = olga.post(f"/views/save?{HELD}", {"name": name})
        assert answer.status_code == 422 and said in answer.content.decode()
    save(max, "Held elsewhere")


def test_in_the_dialog_it_comes_without_the_page_and_leads_on(olga: Client) -> None:
    asked = {"HX-Request": "true", "HX-Target": "dialog#dialog"}
    part = olga.get(f"/views/save?{HELD}", headers=asked).content.decode()
    assert "<html" not in part and 'hx-target="#dialog"' in part
    answer = olga.post(f"/views/save?{HELD}", {"name": "On hold"}, headers=asked)
    assert answer.status_code == 204 and answer.headers["HX-Redirect"] == f"/runs?{HELD}"


def test_a_view_whose_query_cannot_be_read_any_more_does_no_harm(olga: Client) -> None:
    SavedView.objects.create(owner=User.objects.get(username="olga"), name="Old", query="q=was%3A%3E1 status%3Alost")
    page = olga.get("/runs").content.decode()
    assert 'Old<span class="n">0</span>' in page
