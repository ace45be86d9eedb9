import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from journal.entries import Kind
from runs.models import Run, Status
from tests.pages.incidents import incident, url_of
from tests.pages.journals import DIGEST, Story, awaiting_approval, in_doubt, release, session

pytestmark = pytest.mark.django_db


def repr_of_shown(value: object) -> str:
    return ascii(value)[:20] if isinstance(value, str) else type(value).__name__


def test_a_run_says_its_status_why_since_when_and_what_releases_it(victor: Client) -> None:
    story, _ = in_doubt()
    page = victor.get(story.url).content.decode()
    assert "Needs reconciliation" in page
    assert "may have happened: the key may be forgotten" in page
    assert "Someone says, with evidence, whether it happened." in page
    assert "Pinned to" in page and f"/releases/{release().id}" in page and "epoch 0" in page


def test_a_run_without_an_input_says_so(victor: Client) -> None:
    story = Story(input=None)
    assert "No input, started by" in victor.get(story.url).content.decode()


def test_a_pending_intent_shows_its_exact_arguments_whole_key_and_digest(victor: Client) -> None:
    story, seq = awaiting_approval()
    page = victor.get(story.url).content.decode()
    asked = page[page.index('id="questions"') : page.index('id="run-facts"')]
    assert f"{story.run.id}:1" in asked and DIGEST in asked
    assert "amount_cents" in asked and "24000" in asked
    assert f"/intents/{seq}/approval" not in page  # Victor may not decide


def test_many_questions_do_not_bury_the_page(victor: Client) -> None:
    story = Story()
    for n in range(8):
        story.ask(f"question {n}")
    page = victor.get(story.now_is(Status.WAITING, "asks").url).content.decode()
    assert page.count('class="callout pending"') == 6 and "8 in all wait for a person" in page


def test_a_take_over_shows_the_gap_and_who_took_over(victor: Client) -> None:
    story = Story()
    story.call()
    story.taken_over(session("w2"))
    page = victor.get(story.url).content.decode()
    assert "wf-gap" in page and "until w2 took epoch 1" in page
    assert "w2</span>, epoch 1" in page


def test_a_silent_session_is_marked_lost_with_its_last_heartbeat(victor: Client) -> None:
    from datetime import timedelta

    from django.utils import timezone

    ago = timezone.now() - timedelta(seconds=90)
    silent = session("w9", heartbeat_at=ago, expires_at=ago + timedelta(seconds=10))
    story = Story().now_is(Status.RUNNING, session=silent)
    page = victor.get(story.url).content.decode()
    assert "Lost" in page and "Last heartbeat of w9" in page and "1 m 30 s ago" in page


def test_the_address_names_the_entry_shown_and_the_chain_is_verified(victor: Client) -> None:
    story, seq = in_doubt()
    page = victor.get(f"{story.url}?seq={seq}").content.decode()
    assert f"seq {seq}</span></h2>" in page
    assert "Hash verified" in page


def test_a_changed_entry_is_called_broken(victor: Client) -> None:
    from tests.pages.journals import tampered

    story, seq = in_doubt()
    tampered(story, 1)
    page = victor.get(f"{story.url}?seq={seq}").content.decode()
    assert "Chain broken after seq 0" in page and "Hash verified" not in page


def test_an_entry_comes_alone_for_the_inspector(victor: Client) -> None:
    story, seq = in_doubt()
    answer = victor.get(f"{story.url}/entries/{seq}")
    assert answer.status_code == 200 and b"<html" not in answer.content
    assert victor.get(f"{story.url}/entries/999").status_code == 404


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (-0.0, "-0.0"),
        (1e22, "1e+22"),
        ("a\0b", "a\\u0000b"),
        ("\ud800", "\\ud800"),
        ("\u202eevil", "\\u202eevil"),
        (b"\x00\xff", "b&#x27;\\x00\\xff&#x27;"),
        ({1, 2}, "(set)"),
        ({2: "two"}, "2 (int)"),
        (10**5000, "0x"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ],
    ids=repr_of_shown,
)
def test_awkward_values_are_readable_and_inert(victor: Client, value: object, shown: str) -> None:
    story = Story()
    story.call(what=value)
    seq = story.result(value)
    answer = victor.get(f"{story.url}?seq={seq}")
    assert answer.status_code == 200
    assert shown in answer.content.decode()
    assert b"<script>alert" not in answer.content


def test_deep_and_wide_values_do_not_break_the_page(victor: Client) -> None:
    deep: object = "bottom"
    for _ in range(80):
        deep = [deep]
    story = Story()
    story.call()
    seq = story.result({"deep": deep, "wide": list(range(30_000))})
    page = victor.get(f"{story.url}?seq={seq}").content.decode()
    assert "The rest is not drawn" in page


def test_markup_in_data_stays_text_everywhere(olga: Client) -> None:
    evil = "</span><img src=x onerror=alert(1)>"
    story = Story()
    story.plan(thought=evil)
    story.call(tool=evil, **{evil: evil})
    story.result(evil, outcome="failed", error=evil)
    story.write(Kind.CONTROL, {"verb": "hold", "reason": evil}, actor=evil)
    story.write("STRANGE", {evil: evil})
    story.call("mail", summary=evil)
    story.ask(evil, {"title": evil, "type": "object"}, options=[evil])
    story.opens(Kind.TIMER, verb="set", signal=evil)
    story.write(Kind.SIGNAL, {"name": evil, "payload": evil, "id": evil}, actor=evil)
    story.write(Kind.NOTE, {"text": evil}, actor=evil)
    story.spawn(agent=evil).now_is(Status.HELD, evil)
    story.write(Kind.CHILD, {"verb": "ended", "child": evil, "outcome": evil, "error": evil}, step=story.step)
    story.write(Kind.CONTROL, {"verb": "cancel", "reason": evil, "cause": {"run": evil, "seq": evil}}, actor=evil)
    story.now_is(Status.HELD, evil, labels={evil: evil}, business_id=evil)
    pages = [story.url, "/runs", *(f"{story.url}?seq={seq}" for seq in range(1, story.last + 1))]
    for page in [*pages, f"{story.url}/asks/8/answer"]:
        answer = olga.get(page)
        assert answer.status_code == 200 and b"<img" not in answer.content


def test_a_long_journal_is_drawn_a_window_at_a_time(victor: Client) -> None:
    story = Story()
    for _ in range(210):
        story.write(Kind.NOTE, {"text": "remark"})
    newest = victor.get(story.url).content.decode()
    assert 'id="row-211"' in newest and 'id="row-11"' not in newest and "Earlier entries" in newest
    assert 'id="row-3"' in victor.get(f"{story.url}?seq=3").content.decode()


def test_siblings_stand_each_in_their_own_step(victor: Client) -> None:
    story = Story()
    story.plan()
    story.call("mail", to="a")
    story.call("mail", to="b")
    story.step = 1
    story.result({"sent": "a"})
    page = victor.get(story.url).content.decode()
    assert page.count('class="wf-step"') == 3
    assert page.index('id="row-5"') < page.index('id="row-4"')  # the first one's result stands with the first call


def test_a_finished_run_shows_its_result(victor: Client) -> None:
    story = Story()
    story.done(result={"refunded": True})
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    page = victor.get(story.url).content.decode()
    assert "Result" in page and "refunded" in page and "/cancel" not in page


def test_an_unknown_run_is_said_to_be_unknown(victor: Client) -> None:
    answer = victor.get("/runs/r-00000000")
    assert answer.status_code == 404 and b"There is no such run" in answer.content


def test_a_row_of_a_later_day_than_the_first_says_by_how_many_days(victor: Client) -> None:
    run = incident(ago=3 * 86_400, lasts=2 * 86_400 + 60)
    page = victor.get(url_of(run)).content.decode()
    assert re.search(r'id="row-24".*?>\d\d:\d\d\+[23]d</time>', page, re.DOTALL)
    assert f"{run.created_at:%Y-%m-%d} UTC" in page[page.index('class="wf-zone"') :][:60]


def test_a_queued_run_says_when_all_slots_are_taken_and_by_what(victor: Client) -> None:
    story, others = Story(), [Story() for _ in range(2)]
    Run.objects.filter(pk=story.run.pk).update(reason="waits for a worker", since=Now() - timedelta(seconds=9))
    worker = session("w1", concurrency=2)
    others[0].now_is(Status.RUNNING, session=worker)
    assert "slots" not in victor.get(story.url).content.decode()
    others[1].now_is(Status.RUNNING, session=worker)
    said = "Just now all 2 slots of the workers that serve it are taken by runs of one agent."
    assert said in victor.get(story.url).content.decode()
    elsewhere = session("w2", concurrency=1)
    assert "slots" not in victor.get(story.url).content.decode()
    Story().now_is(Status.RUNNING, session=elsewhere, agent="other")
    assert (
        "all 3 slots" in (page := victor.get(story.url).content.decode()) and "2 of them by runs of one agent" in page
    )
