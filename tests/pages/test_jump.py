"""Jump: to a run by what a person has of it."""

from __future__ import annotations

import pytest
from django.test import Client

from runs.models import AgentScope, Run
from runs.short_ids import short_id
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


def known(**fields: object) -> Run:
    story = Story()
    Run.objects.filter(pk=story.run.pk).update(**fields)
    story.run.refresh_from_db()
    return story.run


def goes_to(client: Client, q: str) -> str:
    return str(client.get("/jump", {"q": q}).headers.get("Location", ""))


@pytest.mark.parametrize("called", ["short", "short without r-", "whole", "key", "business", "label", "effect"])
def test_what_names_one_run_leads_there(victor: Client, called: str) -> None:
    Story()
    run = known(request_key="key-77", business_id="order:5540", labels={"tier": "gold", "customer": "c 7"})
    q = {
        "short": short_id(run.id), "short without r-": short_id(run.id)[2:].upper(), "whole": str(run.id),
        "key": " key-77 ", "business": "order:5540", "label": "customer:c 7", "effect": f"{run.id}:7",
    }[called]  # fmt: skip
    assert goes_to(victor, q) == f"/runs/{short_id(run.id)}"


def test_what_names_several_lists_the_newest_first(victor: Client) -> None:
    runs = [known(labels={"tier": "gold"}) for _ in range(3)]
    answer = victor.get("/jump", {"q": "tier:gold"})
    html = answer.content.decode()
    places = [html.index(short_id(run.id)) for run in reversed(runs)]
    assert answer.status_code == 200 and places == sorted(places)


def test_what_names_none_is_said_and_nothing_asked_for_gives_the_form(victor: Client) -> None:
    assert "No run is called order:1." in victor.get("/jump", {"q": "order:1"}).content.decode()
    for empty in ("", "  "):
        assert "No run is called" not in victor.get("/jump", {"q": empty}).content.decode()


def test_suggestions_are_a_list_and_never_lead_away(victor: Client) -> None:
    run = known(request_key="key-77")
    answer = victor.get("/jump", {"q": "key-77"}, headers={"HX-Request": "true"})
    html = answer.content.decode()
    assert answer.status_code == 200 and short_id(run.id) in html and "<html" not in html


def test_a_run_of_an_agent_that_is_not_mine_is_not_found(victor: Client) -> None:
    from django.contrib.auth.models import User

    run = known(request_key="key-77")
    AgentScope.objects.create(user=User.objects.get(username="victor"), agent="another")
    for q in ("key-77", short_id(run.id), str(run.id)):
        assert goes_to(victor, q) == "" and short_id(run.id) not in victor.get("/jump", {"q": q[:5]}).content.decode()


def test_markup_in_the_question_is_inert(victor: Client) -> None:
    html = victor.get("/jump", {"q": "<img src=x onerror=alert(1)>"}).content.decode()
    assert "<img" not in html and "&lt;img" in html
