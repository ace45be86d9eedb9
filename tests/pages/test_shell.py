"""What is around every page: the way on, what waits, what is held back, and what is said when something fails."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError
from django.template import engines
from django.test import Client, RequestFactory
from django.utils import timezone
from psycopg_pool import PoolTimeout

from runs.gates import place_gate
from runs.models import Status
from runs.pages import dialogs, failures
from runs.pages.dialogs import TARGET
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db
IN_DIALOG = {"HX-Request": "true", "HX-Target": TARGET}


def waits(state: str, status: str) -> Story:
    record = {"seq": 2, "step": 1, "tool": "refund", "state": state, "since": timezone.now().isoformat()}
    return Story().now_is(status, intents=[record])


def test_the_badge_counts_what_the_inbox_lists(victor: Client) -> None:
    assert 'id="badge-mast" data-k="human" hidden' in victor.get("/workers").content.decode()
    waits("awaiting_approval", Status.AWAITING_APPROVAL)
    waits("in_doubt", Status.NEEDS_RECONCILIATION)
    waits("asked", Status.WAITING)
    waits("in_doubt", Status.QUEUED)  # a worker asks
    html = victor.get("/workers").content.decode()
    assert '3<span class="vh"> waiting</span>' in html


def test_many_that_wait_are_not_counted_on(victor: Client) -> None:
    record = {"seq": 2, "step": 1, "tool": "refund", "state": "asked", "since": timezone.now().isoformat()}
    Story().now_is(Status.WAITING, intents=[record] * 150)
    assert "99+<span" in victor.get("/workers").content.decode()


def test_a_gate_in_force_is_a_condition_of_every_page(victor: Client) -> None:
    assert 'aria-live="polite" hidden' in victor.get("/workers").content.decode()
    place_gate(scope="all", reason="a <b>look</b>", actor="olga")
    place_gate(scope="tool:refund", reason="the bank is away", actor="olga")
    html = victor.get("/workers").content.decode()
    assert "Gate tool:refund" in html and "the bank is away" in html and "and 1 more" in html


def test_places_are_those_that_one_may_go_to(victor: Client, max: Client) -> None:
    assert 'href="/audit"' not in victor.get("/workers").content.decode()
    html = max.get("/workers").content.decode()
    for place in ("/", "/runs", "/inbox", "/workers", "/audit"):
        assert f'href="{place}"' in html
    assert "Account: max, admin" in html


def test_the_list_of_keys_names_those_places_alone(victor: Client, max: Client) -> None:
    keys = "<kbd>g</kbd> <kbd>{}</kbd></dt><dd>{}</dd>"
    html = victor.get("/workers").content.decode()
    assert keys.format("w", "Workers") in html and keys.format("a", "Audit") not in html
    assert keys.format("a", "Audit") in max.get("/workers").content.decode()


@pytest.mark.parametrize("place", ["/", "/runs", "/inbox", "/workers", "/agents"])
def test_no_page_is_kept_for_the_way_back(victor: Client, place: str) -> None:
    assert victor.get(place).headers["Cache-Control"] == "no-store"


def test_the_shell_adds_two_queries(victor: Client, django_assert_max_num_queries: Any) -> None:
    victor.get("/jump")
    with django_assert_max_num_queries(8):  # login, permissions, scope; and these two
        victor.get("/jump")


# -- dialogs -----------------------------------------------------------------------------------------------------------

ACT = """{% extends "base.html" %}{% block question %}Stop it?{% endblock %}{% block under %}<p>r-1</p>{% endblock %}
{% block dialog %}<form><div class="body">Why</div><footer><button>Stop</button></footer></form>{% endblock %}"""


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engines["django"].from_string(ACT)

    def render(request: Any, template: str, context: Any, status: int) -> Any:
        from django.http import HttpResponse

        return HttpResponse(made.render(context, request), status=status)

    monkeypatch.setattr(dialogs, "render", render)


def test_an_act_is_a_page_and_in_the_dialog_what_is_inside_of_it(act: None) -> None:
    page = dialogs.dialog_or_page(RequestFactory().get("/x"), "act.html", {})
    html = page.content.decode()
    assert "<html" in html and ">Stop it?</h1>" in html and "Why" in html and 'class="panel act"' in html
    inside = dialogs.dialog_or_page(RequestFactory().get("/x", headers=IN_DIALOG), "act.html", {}, status=422)
    html = inside.content.decode()
    assert "<html" not in html and '<h2 id="dialog-t">Stop it?</h2>' in html and "Why" in html and "r-1" in html
    assert inside.status_code == 422 and "HX-Target" in inside["Vary"]


def test_a_fragment_for_another_target_is_no_dialog(act: None) -> None:
    asked = RequestFactory().get("/x", headers={"HX-Request": "true", "HX-Target": "section#inspector"})
    assert not dialogs.asks_for_dialog(asked)


# -- failures ----------------------------------------------------------------------------------------------------------


def test_no_such_page_is_told_with_a_way_on(victor: Client) -> None:
    answer = victor.get("/nowhere", follow=True)
    assert answer.status_code == 404 and 'href="/jump"' in answer.content.decode()


def test_a_role_that_may_not_is_told_which_one_may(victor: Client) -> None:
    answer = victor.get("/audit")
    html = answer.content.decode()
    assert answer.status_code == 403 and "You are signed in as victor, viewer." in html
    assert "It takes the role operator or" in html


def test_a_refusal_in_a_dialog_stays_in_it_and_in_a_fragment_is_no_page(victor: Client) -> None:
    assert "<h1>" in victor.get("/runs/r-00000000").content.decode()
    inside = victor.get("/runs/r-00000000", headers=IN_DIALOG).content.decode()
    assert "<html" not in inside and 'id="dialog-t"' in inside
    fragment = victor.get("/runs/r-00000000", headers={"HX-Request": "true", "HX-Target": "div#x"}).content.decode()
    assert "<html" not in fragment and 'class="callout"' in fragment


def test_a_503_says_why() -> None:
    asked = RequestFactory().post("/runs/r-1/cancel?x=1")
    gone = failures.refused(asked, OperationalError("connection refused"), 503)
    assert gone["Retry-After"] == "2" and "The database does not answer." in gone.content.decode()
    assert "Nothing was written by this request." in gone.content.decode()
    busy = OperationalError("couldn't get a connection after 3.00 sec")
    busy.__cause__ = PoolTimeout("couldn't get a connection after 3.00 sec")
    html = failures.refused(RequestFactory().get("/runs"), busy, 503).content.decode()
    assert "All of this console" in html and "Nothing was written" not in html


def test_a_page_that_failed_names_a_reference_that_the_log_has_too(caplog: pytest.LogCaptureFixture) -> None:
    answer = failures.failed(RequestFactory().get("/runs"))
    (said,) = [record.getMessage() for record in caplog.records]
    reference = said.rpartition(" ")[2]
    assert answer.status_code == 500 and reference.startswith("hf-") and reference in answer.content.decode()
