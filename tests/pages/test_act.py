"""An act on a run says what it writes, is written once, and not at all where the run moved on in a way that matters."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from journal.entries import Entry, Kind
from journal.read import read_entries
from runs.models import AgentScope, Status
from runs.short_ids import short_id
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, in_doubt, session

pytestmark = pytest.mark.django_db

DIALOG = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "dialog#dialog"}


def entries(story: Story, kind: str) -> list[Entry]:
    return read_entries(None, story.run.id, kinds=[kind])


def typed(story: Story, **more: Any) -> dict[str, Any]:
    return {"reason": "asked by support", "seen": str(story.last), "confirm": short_id(story.run.id)} | more


def test_a_second_click_writes_nothing_more(olga: Client) -> None:
    for verb, body in (("hold", {}), ("cancel", {}), ("note", {"text": "called the bank"})):
        story = Story()
        given = typed(story, **body)
        kind = Kind.NOTE if verb == "note" else Kind.CONTROL
        assert [olga.post(f"{story.url}/{verb}", given).status_code for _ in range(2)] == [302, 302]
        assert len(entries(story, kind)) == 1


def test_a_second_click_on_a_signal_changes_nothing(olga: Client) -> None:
    story = Story()
    page = olga.get(f"{story.url}/signal").content.decode()
    minted = page.split('name="signal_id" value="')[1].split('"')[0]
    given = typed(story, name="go", payload="{}", signal_id=minted)
    assert [olga.post(f"{story.url}/signal", given).status_code for _ in range(2)] == [302, 302]
    assert len(minted) == 12 and len(entries(story, Kind.SIGNAL)) == 1


def test_an_act_that_no_longer_applies_is_refused_with_what_happened_and_by_whom(olga: Client, max: Client) -> None:
    story = Story()
    given = typed(story, reason="a look of my own")
    max.post(f"{story.url}/hold", typed(story, reason="the bank asks"))
    late = olga.post(f"{story.url}/hold", given)
    page = late.content.decode()
    assert late.status_code == 409 and len(entries(story, Kind.CONTROL)) == 1
    assert "nothing was written" in page and "It is held already, by max" in page
    assert "CONTROL(hold)" in page and "by max" in page and "a look of my own" in page


def test_an_act_on_a_run_that_ended_meanwhile_says_so(olga: Client) -> None:
    story = Story()
    given = typed(story)
    story.done(result=1)
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    late = olga.post(f"{story.url}/cancel", given)
    assert late.status_code == 409
    assert "It has ended: done at 14:02:11 UTC." in late.content.decode() and "seq 2" in late.content.decode()


def test_what_came_meanwhile_and_does_not_matter_stops_nothing(olga: Client) -> None:
    story = Story()
    given = typed(story)
    story.plan(thought="on it")
    story.call(order_id="o-1")
    assert olga.post(f"{story.url}/hold", given).status_code == 302


def test_a_cancel_says_what_still_finishes_and_wants_the_id_typed(olga: Client) -> None:
    story, _ = in_doubt()
    story.call("mail", to="a@example.org")
    story.now_is(Status.RUNNING, session=session())
    page = olga.get(f"{story.url}/cancel").content.decode()
    assert "In doubt" in page and "stays in the inbox" in page
    assert "Under way" in page and "step 2, attempt 1" in page
    wrong = olga.post(f"{story.url}/cancel", typed(story, confirm="r-00000000"))
    assert wrong.status_code == 422 and "This is not r-" in wrong.content.decode()
    assert "asked by support" in wrong.content.decode() and not entries(story, Kind.CONTROL)


def test_an_act_that_does_not_apply_says_why_and_has_no_live_button(olga: Client) -> None:
    story = Story()
    for verb, why in (("resume", "It is not held: it is queued."), ("release", "It is not quarantined."),
                      ("retry", "Nothing of it waits for another attempt.")):  # fmt: skip
        page = olga.get(f"{story.url}/{verb}").content.decode()
        assert why in page and "disabled" in page
    story.now_is(Status.HELD, "gate tool:refund")
    assert "it goes on when the gate is lifted" in olga.get(f"{story.url}/resume").content.decode()


def test_an_act_opens_in_the_dialog_and_leads_back_by_htmx(olga: Client) -> None:
    story = Story()
    page = olga.get(f"{story.url}/hold", **DIALOG).content.decode()
    assert "<html" not in page and 'hx-target="#dialog"' in page and "Hold this run?" in page
    answer = olga.post(f"{story.url}/hold", typed(story), **DIALOG)
    assert answer.status_code == 204 and answer["HX-Redirect"] == story.url


def test_it_leads_back_to_the_list_it_came_from_and_never_elsewhere(olga: Client) -> None:
    story = Story()
    page = olga.get(f"{story.url}/note?back=/runs%3Fstatus=held").content.decode()
    assert 'name="back" value="/runs?status=held"' in page
    given = typed(story, text="x")
    assert olga.post(f"{story.url}/note", given | {"back": "/runs?status=held"})["Location"] == "/runs?status=held"
    for elsewhere in ("https://evil.example", "//evil.example/x", "javascript:alert(1)", "/\\evil.example"):
        assert olga.post(f"{story.url}/note", given | {"back": elsewhere})["Location"] == story.url


def test_a_signal_offers_the_names_that_the_run_waits_for(olga: Client) -> None:
    story = Story().now_is(Status.WAITING, awaits_signals=["go"])
    page = olga.get(f"{story.url}/signal").content.decode()
    assert 'name="name" value="go"' in page and "It waits for" in page
    wrong = olga.post(f"{story.url}/signal", {"name": "go", "payload": "{a: 1}"})
    assert wrong.status_code == 422 and "line 1, column 2, at “a: 1}”" in wrong.content.decode()


def test_a_second_click_on_an_answer_is_the_same_answer(olga: Client) -> None:
    story = Story()
    seq = story.ask("How much?", {"type": "integer"})
    story.now_is(Status.WAITING)
    address = f"{story.url}/asks/{seq}/answer"
    assert [olga.post(address, {"value": "3"}).status_code for _ in range(2)] == [302, 302]
    late = olga.post(address, {"value": "4"})
    page = late.content.decode()
    assert late.status_code == 409 and "your answer was not written" in page and 'value="4"' in page
    assert len(entries(story, Kind.ANSWER)) == 1


def test_a_run_of_others_does_not_exist(cast: None) -> None:

    story = Story()
    AgentScope.objects.create(user=User.objects.get(username="olga"), agent="another")
    for verb in ("cancel", "hold", "note", "signal", "asks/2/answer"):
        assert signed_in("olga").get(f"{story.url}/{verb}").status_code == 404


def test_all_acts_are_listed_and_of_those_that_do_not_apply_why(olga: Client, victor: Client) -> None:
    story = Story()
    seq = story.ask("How much?")
    story.now_is(Status.WAITING, "asks: How much?")
    page = olga.get(f"{story.url}/acts?back=/runs", **DIALOG).content.decode()
    assert "<html" not in page and f"{story.url}/asks/{seq}/answer?back=/runs" in page
    assert f"{story.url}/hold?back=/runs" in page and "It is not held: it is waiting." in page
    page = victor.get(f"{story.url}/acts").content.decode()
    assert "Your role does not allow this." in page and f"{story.url}/hold" not in page
    assert 'data-k="quiet"' not in olga.get(f"{story.url}/acts").content.decode()  # a button without a frame is text
    assert f"{story.url}/acts" in olga.get("/runs").content.decode()
    assert "/start" in olga.get("/runs").content.decode() and "/start" not in victor.get("/runs").content.decode()


def test_an_act_on_a_conversation_leads_back_to_it(olga: Client) -> None:
    story = Story()
    chat, elsewhere = f"http://testserver{story.url}?view=chat&seq=3", "http://testserver/runs/other?view=chat"
    page = olga.get(f"{story.url}/note", **DIALOG, headers={"HX-Current-URL": chat}).content.decode()
    assert f'name="back" value="{story.url}?view=chat"' in page
    assert f'value="{story.url}?view=chat"' in olga.get(f"{story.url}/note", headers={"Referer": chat}).content.decode()
    assert f'value="{story.url}"' in olga.get(f"{story.url}/note", headers={"Referer": elsewhere}).content.decode()
