"""The page of a dry replay: what differs, beside what was decided; the wait for it; the report."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from journal.encoding import tagged
from journal.tags import Sealed
from tests.pages.journals import Story, session
from tests.pages.replays import call_of, decided, diverged, divergence, newer, ordered

pytestmark = pytest.mark.django_db


def shown(client: Client, address: str, status: int = 200, **headers: Any) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_first_divergence_in_effect_is_shown_beside_what_was_recorded(victor: Client) -> None:
    page = shown(victor, f"{diverged().url}/replay?release=8")
    assert "Dry replay under refund-desk 8" in page and "2 in effect, 2 in text" in page
    assert "Plan text that led here" in page and "<b>less</b>" in page
    assert "seq 6: other arguments" in page and "a call of refund: amount_cents differs." in page
    assert "<b>24000</b>" in page and "<b>22800</b>" in page
    assert "Entries 1 to 10: 2 and 5 differ in text, 6 and 9 diverge, 10 not reached, the rest identical." in page


def test_the_address_says_which_divergence_and_how(victor: Client) -> None:
    url = diverged().url
    page = shown(victor, f"{url}/replay?release=8&seq=9&show=changes")
    assert "seq 9: tool is gone" in page and "there is no tool mail any more." in page
    assert 'aria-current="true">Changes only' in page.replace("\n", "")
    assert "what=missing_tool" in page and "Seq 6" in page


def test_what_was_not_reached_says_why(victor: Client) -> None:
    story = diverged()
    decided(story, stopped_at=6, stopped_why="the flow makes other moves here")
    page = shown(victor, f"{story.url}/replay?release=8&seq=9")
    assert "Not reached" in page and "stopped at seq 6: the flow makes other moves here" in page
    assert "The replay did not come so far" in page and "None so far" in page


def test_a_row_is_asked_for_by_itself(victor: Client) -> None:
    part = shown(
        victor, f"{diverged().url}/replay?release=8&seq=2", **{"HX-Request": "true", "HX-Target": "div#compared"}
    )
    assert "<html" not in part and "seq 2: text only" in part and part.count("aria-current") == 2


def test_a_journal_that_is_decided_the_same_says_so(victor: Client) -> None:
    story = Story()
    decided(story)
    page = shown(victor, f"{story.url}/replay?release=8")
    assert "It decides the same" in page and "Nothing differs" in page


def test_nothing_sealed_is_shown(victor: Client) -> None:
    story = Story()
    sealed = tagged(Sealed(b"\x01" * 40))
    decided(story, divergence(1, call_of("pay", card=sealed), call_of("pay", card=sealed, to="x")))
    page = shown(victor, f"{story.url}/replay?release=8")
    assert "[secret]" in page and sealed["box"] not in page


def test_an_answer_of_a_model_that_was_asked_again_says_what_it_cost(victor: Client) -> None:
    story = Story()
    again = {
        "requests": 2, "failed": 1, "tokens": 17_904.0, "cost": 0.12, "usage": {},
        "divergences": [divergence(1, "The full amount", "Less the voucher")],
    }  # fmt: skip
    made = decided(story, model=again)
    type(made).objects.filter(pk=made.pk).update(asks_model=True)
    page = shown(victor, f"{story.url}/replay?release=8")
    assert "0.12" in page and "17,904 tokens, 2 requests, 1 failed" in page
    assert "Model says otherwise" in page and "0 in effect, 0 in text, 1 by the model" in page


def test_one_that_waits_says_for_whom_and_looks_again_without_scripts(victor: Client) -> None:
    story = Story()
    made = ordered(story)
    page = shown(victor, f"{story.url}/replay?release=8")
    assert "Waits for a worker of refund-desk@8" in page and "No live worker serves" in page
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page and "/live/replays/" in page
    type(made).objects.filter(pk=made.pk).update(taken_at=made.created_at)
    session(serves=[newer().id])
    page = shown(victor, f"{story.url}/replay?release=8")
    assert "A worker of refund-desk@8 decides it again" in page and "served by 1 worker." in page


def test_one_that_failed_says_why_and_offers_another(olga: Client) -> None:
    story = Story()
    made = ordered(story)
    type(made).objects.filter(pk=made.pk).update(ended_at=made.created_at, error="its worker was lost")
    page = shown(olga, f"{story.url}/replay?release=8")
    assert "its worker was lost. Nothing was sent" in page and "Replay again" in page


def test_the_report_is_the_result_as_it_is_kept(victor: Client) -> None:
    story = diverged()
    page = shown(victor, f"{story.url}/replay?release=8")
    address = page.split(".json")[0].rpartition('href="')[2] + ".json"
    answer = victor.get(address)
    assert "attachment" in answer["Content-Disposition"]
    assert [one["seq"] for one in json.loads(answer.content)["divergences"]] == [2, 5, 6, 9]
    assert victor.get(f"{Story().url}/replay/{address.rpartition('/')[2]}").status_code == 404


def test_a_release_that_is_none_is_refused_and_a_viewer_orders_nothing(victor: Client) -> None:
    story = Story()
    assert "The agent has no such release" in shown(victor, f"{story.url}/replay?release=99", 422)
    assert victor.post(f"{story.url}/replay", {"release": newer().id}).status_code == 403
    page = shown(victor, f"{story.url}/replay").partition('id="again"')[2]
    assert "disabled" in page and "who operates orders them" in page and "Ordered as you" not in page


def test_who_may_not_fork_or_order_is_offered_neither(victor: Client, olga: Client) -> None:
    url = f"{diverged().url}/replay?release=8"
    for words in ('href="#again"', "Look at the fork"):
        assert words in shown(olga, url) and words not in shown(victor, url)


def test_without_a_release_it_is_the_newest_and_others_are_a_step_away(victor: Client) -> None:
    story = diverged()
    decided(story)
    ordered(story, release=story.run.release)
    page = shown(victor, f"{story.url}/replay")
    assert "Waits for a worker of refund-desk@7" in page
    story.run.replay_set.filter(release=story.run.release).update(ended_at="2026-11-30T00:00:00Z", error="lost")
    page = shown(victor, f"{story.url}/replay")
    assert f'<a href="?release={newer().id}">8</a> (same)' in page


def test_an_order_is_refused_where_nobody_serves_the_release_else_waited_for(olga: Client) -> None:
    story = Story()
    answer = olga.post(f"{story.url}/replay", {"release": story.run.release_id})
    assert answer.status_code == 409 and "Nothing was ordered" in answer.content.decode()
    session()
    answer = olga.post(f"{story.url}/replay", {"release": story.run.release_id})
    assert answer["Location"] == f"{story.url}/replay?release={story.run.release_id}"
    assert story.run.replay_set.get().actor == "olga"


def test_a_run_that_diverged_leads_to_its_replay(victor: Client) -> None:
    story = Story()
    story.write("CONTROL", {"verb": "diverged", "reason": "entry 2: other"})
    story.now_is("held", "diverged: entry 2: other")
    head = shown(victor, story.url).partition('id="run-head"')[2].partition("popovertarget")[0]
    assert f'{story.url}/replay"' in head
