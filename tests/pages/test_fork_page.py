"""The page of a fork before it starts: where, what is copied, what could happen twice; the order; the run's page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from journal.entries import Kind
from journal.tags import Sealed
from recovery import forking
from recovery.errors import ForkDiverges
from recovery.forking import fork_run
from runs.models import Run, Status
from runs.queries import entries_of
from runs.short_ids import short_id
from tests.pages.journals import DIGEST, Story, session
from tests.pages.replays import newer

pytestmark = pytest.mark.django_db


def refunded() -> Story:
    """A lookup, a refund, a letter; frontiers at 1, 2, 4, 5, 7, 8, 10."""
    story = Story()
    story.plan(thought="Look it up")
    story.call("lookup", order_id="o-1")
    story.result({"total_cents": 24_000})
    story.plan(thought="Refund to the card")
    story.call(order_id="o-1", amount_cents=24_000)
    story.result({"id": "re-1"})
    story.plan(thought="Tell them")
    story.call("mail", to="a@example.org")
    story.result(None)
    story.done(result=True)
    return story.now_is(Status.DONE, ended_at="2026-11-30T00:00:00Z")


def shown(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def ordered(client: Client, address: str, **given: Any) -> Any:
    return client.post(address, {"reason": "the amount was wrong", "read": "on", "request_id": "r-1"} | given)


def test_it_says_what_is_copied_and_what_could_happen_twice(olga: Client) -> None:
    page = shown(olga, f"{refunded().url}/fork?at=4")
    assert "entries 1 to 4, 1 step;" in page and "the fork's id&gt;:2" in page
    assert "2 effects could happen twice" in page and "it would be done a second time" in page
    assert "Fork at seq 4, 2 could repeat" in page and "No live worker serves refund-desk 7" in page


def test_how_an_effect_stands_is_told_in_words(olga: Client) -> None:
    story = Story()
    story.call("refund", gate="approval", order_id="o-1")
    story.write(Kind.APPROVAL, {"verdict": "requested", "digest": DIGEST}, step=1, actor="system")
    story.now_is(Status.AWAITING_APPROVAL)
    page = shown(olga, f"{story.url}/fork?at=1")
    assert "<span>Waiting approval</span>" in page and "<span>awaiting_approval</span>" not in page


def test_without_a_place_it_is_the_last_one_and_nothing_could_repeat(olga: Client) -> None:
    page = shown(olga, f"{refunded().url}/fork")
    assert "Fork at seq 10?" in page and "Nothing to repeat" in page and "could repeat</button>" not in page


def test_where_a_call_was_unsettled_it_says_why_and_leads_to_the_nearest_places(olga: Client) -> None:
    story = refunded()
    page = shown(olga, f"{story.url}/fork?at=6")
    assert "It cannot be forked at seq 6" in page and "refund (step 2, entry 6) was not settled" in page
    assert 'href="?at=5"' in page and 'href="?at=7"' in page and "Why you fork it" not in page
    assert "the journal has the entries 1 to 11" in shown(olga, f"{story.url}/fork?at=99")


def test_it_needs_a_reason_and_that_what_could_repeat_was_read(olga: Client) -> None:
    story = refunded()
    answer = olga.post(f"{story.url}/fork?at=4", {"reason": ""})
    page = answer.content.decode()
    assert answer.status_code == 422 and "Write a reason" in page and "Tick that you have read" in page
    assert not Run.objects.filter(forked_from=story.run).exists()


def test_an_order_leads_to_the_fork_and_a_second_click_to_the_same_one(olga: Client) -> None:
    story = refunded()
    first = ordered(olga, f"{story.url}/fork?at=4")
    made = Run.objects.get(forked_from=story.run)
    assert first["Location"] == f"/runs/{short_id(made.id)}" and made.forked_at == 4
    assert ordered(olga, f"{story.url}/fork?at=4")["Location"] == first["Location"]
    again = ordered(olga, f"{story.url}/fork?at=4", request_id="r-2")
    assert again["Location"] != first["Location"]
    refused = ordered(olga, f"{story.url}/fork?at=4", reason="another")
    page = refused.content.decode()
    assert refused.status_code == 409 and "olga ordered" in page
    assert 'name="request_id" value="r-1"' not in page and 'name="request_id" value="' in page


def test_what_the_command_refuses_is_said_and_what_was_typed_stays(olga: Client) -> None:
    story = refunded()
    answer = ordered(olga, f"{story.url}/fork?at=6")
    page = answer.content.decode()
    assert answer.status_code == 409 and "Nothing was forked" in page and "Entry 6 is none" in page


def test_the_forks_page_names_its_source_marks_what_is_copied_and_lists_the_family(olga: Client) -> None:
    story = refunded()
    made = fork_run(run_id=story.run.id, at=4, reason="the amount was wrong", actor="olga")
    page = shown(olga, f"/runs/{short_id(made.id)}?seq=3")
    assert "Forked from" in page and f'seq 3 of <span class="id">{short_id(story.run.id)}</span>' in page
    assert page.count("data-copied") >= 4 + 1 and "copied, seq 1 to 4" in page and "Family of forks" in page
    assert "the amount was wrong</dd>" in shown(olga, f"/runs/{short_id(made.id)}?seq=1")
    note = shown(olga, f"{story.url}?seq=12")
    assert f'<dt>Fork</dt><dd><a class="id" href="/runs/{short_id(made.id)}">' in note
    source = shown(olga, story.url)
    assert f'<a class="id" href="/runs/{short_id(made.id)}">{short_id(made.id)}</a> at 4' in source


def test_an_entry_at_a_frontier_offers_a_fork_from_there(olga: Client, victor: Client) -> None:
    story = refunded()
    assert f"{story.url}/fork?at=4" in shown(olga, f"{story.url}?seq=4")
    assert "Fork from here" not in shown(olga, f"{story.url}?seq=3")
    assert "Fork from here" not in shown(olga, f"{story.url}?seq=11")
    assert "Fork from here" not in shown(victor, f"{story.url}?seq=4")


def test_the_list_of_runs_draws_the_copied_part_apart(victor: Client) -> None:
    story = refunded()
    fork_run(run_id=story.run.id, at=4, reason="again", actor="olga")
    page = shown(victor, "/runs?q=")
    assert 'class="PLAN copied"' in page and "the first 4 copied" in page


def test_another_release_is_offered_where_a_worker_serves_it(olga: Client) -> None:
    story = refunded()
    session(serves=[newer().id])
    page = shown(olga, f"{story.url}/fork?at=4&release=8")
    assert "Goes on under</dt><dd>refund-desk 8" in page and "8, served by 1 worker" in page


def test_what_is_copied_can_be_edited_and_is_marked(olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    story = refunded()
    page = shown(olga, f"{story.url}/fork?at=4")
    assert "Edit something that is copied" in page and "Result of lookup, seq 4" in page
    assert 'href="?at=4&amp;edit=1#order"' in page
    page = shown(olga, f"{story.url}/fork?at=4&edit=4")
    assert "First a worker of refund-desk@7 decides the copied part again" in page and 'name="entry-4"' in page
    monkeypatch.setattr(forking, "judged", lambda *given: None)
    ordered(olga, f"{story.url}/fork?at=4&edit=4", **{"entry-4": '{"total_cents": 100}'})
    made = Run.objects.get(forked_from=story.run)
    entry = entries_of(made.id)[3]
    assert entry.body["result"] == {"total_cents": 100} and entry.body["edited_at_fork"]["by"] == "olga"
    page = shown(olga, f"/runs/{short_id(made.id)}?seq=4")
    assert "wf-edited" in page and "by olga at the fork" in page


def test_an_edit_that_changes_nothing_is_none(olga: Client) -> None:
    story = refunded()
    ordered(olga, f"{story.url}/fork?at=4&edit=4", **{"entry-4": '{"total_cents": 24000}'})
    assert "edited_at_fork" not in entries_of(Run.objects.get(forked_from=story.run).id)[3].body


def test_an_edit_that_is_no_json_is_told_at_its_field_and_nothing_is_forked(olga: Client) -> None:
    story = refunded()
    answer = ordered(olga, f"{story.url}/fork?at=4&edit=4", **{"entry-4": "{total"})
    assert answer.status_code == 422 and "This is not JSON" in answer.content.decode()
    assert not Run.objects.filter(forked_from=story.run).exists()


def test_a_secret_is_no_field_and_stays_as_it_is(olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(input={"order_id": "o-1", "card": Sealed(b"\x01" * 40)})
    page = shown(olga, f"{story.url}/fork?at=1&edit=1")
    assert "card is secret, and stays as recorded" in page and "AQEB" not in page.partition('id="order"')[2]
    monkeypatch.setattr(forking, "judged", lambda *given: None)
    ordered(olga, f"{story.url}/fork?at=1&edit=1", **{"entry-1": '{"order_id": "o-2"}'})
    body = entries_of(Run.objects.get(forked_from=story.run).id)[0].body
    assert body["input"] == {"order_id": "o-2", "card": Sealed(b"\x01" * 40)}


def test_where_a_worker_would_decide_otherwise_the_entry_is_named(
    olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = refunded()

    def differs(*given: Any) -> None:
        raise ForkDiverges("diverged", 3, ["a call of lookup: args.order_id differs"], 7)

    monkeypatch.setattr(forking, "judged", differs)
    answer = ordered(olga, f"{story.url}/fork?at=4&edit=4", **{"entry-4": "1"})
    page = answer.content.decode()
    assert answer.status_code == 409 and "Nothing was forked" in page and f"{story.url}?seq=3" in page
    assert ">1</textarea>" in page


def test_without_a_worker_to_judge_it_nothing_is_forked(olga: Client) -> None:
    answer = ordered(olga, f"{refunded().url}/fork?at=4&edit=4", **{"entry-4": "1"})
    assert answer.status_code == 409 and "No live worker serves this release" in answer.content.decode()
