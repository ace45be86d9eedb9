"""Deciding on the inbox's pages: what is signed is what was read, once, and nobody is told that it worked when not."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client

from journal.entries import Kind
from journal.read import read_entries
from runs.access import set_scope
from runs.models import Status
from runs.short_ids import short_id
from tests.pages.conftest import signed_in
from tests.pages.journals import DIGEST, Story, awaiting_approval, tampered
from tests.pages.waiting_items import TWO, asked, item, listed, typed

pytestmark = pytest.mark.django_db
READ = {"digest": DIGEST, "read": "on"}
OTHER = "0a1b2c3d" * 8


def decisions(story: Story) -> list[tuple[str, str]]:
    found = read_entries(None, story.run.id, kinds=[Kind.APPROVAL])
    return [(e.actor, e.body["verdict"]) for e in found if e.body["verdict"] != "requested"]


def test_an_item_says_everything_that_binds(ada: Client) -> None:
    story, seq = asked(TWO, fields={"amount_cents": 24_000}, release="x")
    page = ada.get(item(story, seq)).content.decode()
    for said in (
        "Refund 240.00 for o-1", "What matters, as the tool says", "All arguments", '"o-1"', "24000",
        "240.00 in major units", DIGEST, "Matches seq 3, 4", "Keyed", f"{story.run.id}:1",
        "Any 2 approvers except olga, who asked; 0 of 2 granted", "olga", "It does not expire.", "Refund the order",
        f"?seq={seq}", "wants to call",
    ):  # fmt: skip
        assert said in page, said


def test_a_deadline_is_told_both_ways_with_what_happens_then(ada: Client) -> None:
    expires = 4_000_000_000.0
    story, seq = asked(TWO | {"ttl": 60.0, "on_expiry": "deny"}, expires=expires)
    page = ada.get(item(story, seq)).content.decode()
    assert "Due in" in page and "2096-10-02 07:06:40" in page and "refund-desk is told" in page


def test_approving_needs_the_tick_that_all_was_read(ada: Client) -> None:
    story, seq = asked()
    page = ada.get(f"{item(story, seq)}/approve").content.decode()
    assert "I have read all 2 arguments above" in page and f'value="{DIGEST}"' in page
    refused = ada.post(f"{item(story, seq)}/approve", {"digest": DIGEST, "note": "within policy"})
    assert refused.status_code == 422
    assert "Tick that you have read the arguments." in refused.content.decode()
    assert "within policy" in refused.content.decode() and decisions(story) == []
    done = ada.post(f"{item(story, seq)}/approve", READ | {"note": "within policy", "actor": "max"}, follow=True)
    assert "You approved it" in done.content.decode() and decisions(story) == [("ada", "granted")]


def test_rejecting_needs_a_reason_and_says_so_in_place(ada: Client) -> None:
    story, seq = asked()
    refused = ada.post(f"{item(story, seq)}/reject", {"digest": DIGEST})
    assert refused.status_code == 422 and "Say why it is rejected" in refused.content.decode()
    assert ada.post(f"{item(story, seq)}/reject", {"digest": DIGEST, "note": "not this one"}).status_code == 302
    assert decisions(story) == [("ada", "denied")]
    page = ada.get(item(story, seq)).content.decode()
    assert "It was rejected" in page and "Rejected by ada: not this one" in page


def test_a_quorum_that_is_not_complete_stays_listed_with_who_has_agreed(ada: Client, max: Client) -> None:
    story, seq = asked(TWO)
    ada.post(f"{item(story, seq)}/approve", READ)
    page = ada.get(item(story, seq)).content.decode()
    assert "1 of 2 granted: ada at " in page and "You granted it at " in page and 'aria-disabled="true"' in page
    assert "1 of 2" in max.get("/inbox?tab=approvals").content.decode()
    again = ada.post(f"{item(story, seq)}/approve", READ)
    assert again.status_code == 409 and "You granted it, at" in again.content.decode()
    assert max.post(f"{item(story, seq)}/approve", READ).status_code == 302
    assert decisions(story) == [("ada", "granted"), ("max", "granted")]


def test_edited_arguments_are_written_beside_the_agents_and_void_what_was_granted(ada: Client) -> None:
    story, seq = asked(TWO)
    typed()
    page = ada.get(f"{item(story, seq)}/edit").content.decode()
    assert 'value="24000"' in page and 'value="o-1"' in page
    sent: dict[str, Any] = {"digest": DIGEST, "note": "half of it", "args/order_id": "o-1", "args/amount_cents": "many"}
    refused = ada.post(f"{item(story, seq)}/edit", sent)
    assert refused.status_code == 422 and "not a whole number" in refused.content.decode()
    assert "half of it" in refused.content.decode() and 'value="many"' in refused.content.decode()
    assert ada.post(f"{item(story, seq)}/edit", sent | {"args/amount_cents": "12000"}).status_code == 302
    assert decisions(story) == [("ada", "edited")]
    shown = ada.get(item(story, seq)).content.decode()
    assert "Changed by ada" in shown and "The agent asked for" in shown and "12000" in shown and "24000" in shown


def test_a_question_back_parks_the_item_until_somebody_answers(ada: Client, olga: Client, victor: Client) -> None:
    story, seq = asked(TWO)
    assert ada.post(f"{item(story, seq)}/ask", {"digest": DIGEST, "note": ""}).status_code == 422
    assert ada.post(f"{item(story, seq)}/ask", {"digest": DIGEST, "note": "Which order?"}).status_code == 302
    page = ada.get(item(story, seq)).content.decode()
    assert "ada asks back" in page and "Which order?" in page and "Answer ada" in page
    early = ada.post(f"{item(story, seq)}/approve", READ)
    assert early.status_code == 409 and "Which order?" in early.content.decode()
    assert victor.post(f"{item(story, seq)}/reply", {"text": "o-1"}).status_code == 403
    assert olga.post(f"{item(story, seq)}/reply", {"text": "  "}).status_code == 422
    assert olga.post(f"{item(story, seq)}/reply", {"text": "o-1, of May"}).status_code == 302
    page = ada.get(item(story, seq)).content.decode()
    assert "olga answered" in page and "o-1, of May" in page
    late = olga.post(f"{item(story, seq)}/reply", {"text": "the other one"})
    assert late.status_code == 409 and "the other one" in late.content.decode()
    assert ada.post(f"{item(story, seq)}/approve", READ).status_code == 302


def test_the_second_decision_is_told_who_was_first(ada: Client, max: Client) -> None:
    story, seq = asked()
    ada.post(f"{item(story, seq)}/approve", READ)
    late = max.post(f"{item(story, seq)}/reject", {"digest": DIGEST, "note": "please not"})
    page = late.content.decode()
    assert late.status_code == 409 and "ada granted it, at" in page and "Your answer was not written." in page
    assert "please not" in page and "Reject with reason" not in page
    assert decisions(story) == [("ada", "granted")]


def test_a_second_click_and_the_way_back_are_told_that_the_first_counts(ada: Client) -> None:
    story, seq = asked()
    assert ada.post(f"{item(story, seq)}/approve", READ).status_code == 302
    again = ada.post(f"{item(story, seq)}/approve", READ)
    assert again.status_code == 409
    assert (
        "You granted it, at" in again.content.decode() and "Nothing was written a second time" in again.content.decode()
    )
    assert decisions(story) == [("ada", "granted")]


def test_changed_arguments_are_shown_before_anything_is_signed(ada: Client) -> None:
    story, seq = asked()
    story.write(Kind.APPROVAL, {"verdict": "edited", "args": {"order_id": "o-1", "amount_cents": 7}}, step=1)
    story.write(Kind.APPROVAL, {"verdict": "requested", "digest": OTHER, "why": "worker changed the arguments"}, step=1)
    listed(story)
    refused = ada.post(f"{item(story, seq)}/approve", READ)
    page = refused.content.decode()
    assert refused.status_code == 409 and "the arguments changed" in page
    assert "amount_cents changed from 24000 to 7" in page and f'value="{OTHER}"' in page and "checked" not in page
    assert "granted" not in dict(decisions(story)).values()
    assert "Asked anew" in ada.get(item(story, seq)).content.decode()
    assert ada.post(f"{item(story, seq)}/approve", {"digest": OTHER, "read": "on"}).status_code == 302


def test_an_expired_item_is_gone_and_the_reason_stays(ada: Client) -> None:
    story, seq = asked(TWO | {"ttl": 1.0}, expires=1_000_000_000.0)
    late = ada.post(f"{item(story, seq)}/reject", {"digest": DIGEST, "note": "too late anyway"})
    page = late.content.decode()
    assert late.status_code == 410 and "Expired at" in page and "too late anyway" in page
    story.write(Kind.APPROVAL, {"verdict": "expired", "digest": DIGEST, "on_expiry": "park"}, step=1)
    listed(story)
    shown = ada.get(item(story, seq)).content.decode()
    assert "Expired at" in shown and "asks for approval anew" in shown and "It has expired." in shown
    assert "expired" in ada.get("/inbox").content.decode()


def test_an_expired_item_tells_nothing_as_if_it_were_to_come(olga: Client) -> None:
    story, seq = asked(TWO | {"ttl": 60.0}, expires=4_000_000_000.0)
    story.write(Kind.APPROVAL, {"verdict": "expired", "digest": DIGEST}, step=1, actor="system")
    page = olga.get(item(listed(story), seq)).content.decode()
    assert "Expired at" in page and "Ask for approval anew" in page
    assert "If nobody answers" not in page and "Retry now" not in page


def test_an_item_of_a_held_run_says_that_it_is_sent_once_the_run_is_resumed(ada: Client) -> None:
    story, seq = asked()
    for below in ("", "/approve"):
        assert "The run is held" not in ada.get(item(story, seq) + below).content.decode()
    story.now_is(Status.HELD, "held by olga: a look at <it>")
    for below in ("", "/approve"):
        page = ada.get(item(story, seq) + below).content.decode()
        assert "Held by olga: a look at &lt;it&gt;. What is approved is sent once the hold is lifted." in page, below


def test_a_message_names_the_item_that_it_is_about(ada: Client) -> None:
    first, second = asked(), asked()
    ada.post(f"{item(*first)}/reject", {"digest": DIGEST, "note": "no"})
    page = ada.get(f"{item(*second)}/approve").content.decode()
    named = f"{short_id(first[0].run.id)} step 1, Refund 240.00 for o-1. You rejected it"
    assert named in page


def test_groups_are_told_before_and_judged_again_after(ada: Client) -> None:
    story, seq = asked(TWO | {"group": "finance"})
    page = ada.get(item(story, seq)).content.decode()
    assert "Only members of finance may sign this." in page and "Any 2 members of finance" in page
    refused = ada.post(f"{item(story, seq)}/approve", READ)
    assert refused.status_code == 403 and "Another person has to sign" in refused.content.decode()
    assert decisions(story) == []


def test_whoever_changed_the_arguments_cannot_approve_them_under_four_eyes(ada: Client, max: Client) -> None:
    story, seq = asked(TWO)
    changed = {"verdict": "edited", "args": {"order_id": "o-1", "amount_cents": 7}}
    story.write(Kind.APPROVAL, changed, step=1, actor="ada")
    story.write(Kind.APPROVAL, {"verdict": "requested", "digest": OTHER, "policy": TWO}, step=1)
    listed(story)
    page = ada.get(item(story, seq)).content.decode()
    assert "You edited its arguments, so you cannot approve it." in page and f"{item(story, seq)}/reject" in page
    refused = ada.post(f"{item(story, seq)}/approve", {"digest": OTHER, "read": "on", "note": "mine"})
    assert refused.status_code == 403 and "Another person has to sign" in refused.content.decode()
    assert "mine" in refused.content.decode()
    assert max.post(f"{item(story, seq)}/approve", {"digest": OTHER, "read": "on"}).status_code == 302


def test_an_altered_journal_is_signed_by_nobody(ada: Client) -> None:
    story, seq = asked()
    tampered(story, seq)
    page = ada.get(item(story, seq)).content.decode()
    assert "The journal was altered" in page and "Nothing can be signed on it." in page
    assert f"{item(story, seq)}/approve" not in page


def test_a_digest_is_never_taken_from_the_request_for_granted(ada: Client) -> None:
    story, seq = asked()
    for digest in ("", OTHER):
        answer = ada.post(f"{item(story, seq)}/approve", {"digest": digest, "read": "on"})
        assert answer.status_code in (409, 422)
    assert decisions(story) == []


def test_the_old_addresses_lead_to_the_item_and_still_take_decisions(ada: Client) -> None:
    story, seq = awaiting_approval()
    old = f"{story.url}/intents/{seq}/approval"
    assert ada.get(old)["Location"] == item(story, seq)
    assert ada.post(old, {"verdict": "deny", "digest": DIGEST}).status_code == 422
    assert ada.post(old, {"verdict": "approve", "digest": DIGEST, "note": "fine"}).status_code == 302
    assert decisions(story) == [("ada", "granted")]
    assert ada.get(f"{story.url}/intents/99/approval").status_code == 404


def test_without_scripts_an_act_is_a_page_and_with_them_a_dialog(ada: Client) -> None:
    story, seq = asked()
    whole = ada.get(f"{item(story, seq)}/approve").content.decode()
    asks = {"HX-Request": "true", "HX-Target": "dialog#dialog"}
    part = ada.get(f"{item(story, seq)}/approve", headers=asks).content.decode()
    assert "<html" in whole and "<html" not in part and "Approve these exact arguments?" in part
    done = ada.post(f"{item(story, seq)}/approve", READ, headers=asks)
    assert done.status_code == 204 and done["HX-Redirect"] == item(story, seq)


@pytest.mark.django_db(transaction=True)
def test_twenty_decisions_at_once_are_one(cast: None) -> None:
    """E15 through the pages."""
    story, seq = asked()
    clients = [signed_in("ada"), signed_in("max")]
    statuses: list[int] = []
    begin = threading.Barrier(20)

    def decide(n: int) -> None:
        try:
            client = Client()
            client.cookies = clients[n % 2].cookies
            begin.wait()
            if n % 4 < 2:
                answer = client.post(f"{item(story, seq)}/approve", READ)
            else:
                answer = client.post(f"{item(story, seq)}/reject", {"digest": DIGEST, "note": f"no {n}"})
            statuses.append(answer.status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(statuses) == [302] + [409] * 19
    assert len(decisions(story)) == 1


def test_too_few_people_to_sign_is_said_before_an_edit_and_after_it(ada: Client, max: Client) -> None:
    story, seq = asked(TWO)
    typed()
    left = "2 people have to sign, and ada is left who may"
    assert "Too few people" not in max.get(item(story, seq)).content.decode()
    dialog = max.get(f"{item(story, seq)}/edit").content.decode()
    assert "After your change too few people are left to sign" in dialog and left in dialog
    changed = {"verdict": "edited", "args": {"order_id": "o-1", "amount_cents": 7}}
    story.write(Kind.APPROVAL, changed, step=1, actor="max")
    story.write(Kind.APPROVAL, {"verdict": "requested", "digest": OTHER, "policy": TWO}, step=1)
    page = ada.get(item(listed(story), seq)).content.decode()
    assert "Too few people are left to sign" in page and left in page
    User.objects.create(username="eva").groups.add(Group.objects.get(name="approver"))
    assert "Too few people" not in ada.get(item(story, seq)).content.decode()
    set_scope("eva", ["another"], actor="test")
    assert "Too few people" in ada.get(item(story, seq)).content.decode()


def test_what_a_relative_has_done_since_it_was_asked_for_is_told_as_it_stands_now(ada: Client) -> None:
    other, theirs = asked()
    named = {"run": str(other.run.id), "seq": theirs, "step": 1, "outcome": "awaiting_approval"}
    story, seq = asked(repeats=[named])
    html = ada.get(item(story, seq)).content.decode()
    name = f'<a href="/runs/{short_id(other.run.id)}?seq={theirs}">'
    assert name in html and "step 1, which waits for approval. When" not in html and "under a key of its own" in html
    other.write(Kind.APPROVAL, {"verdict": "granted", "digest": DIGEST}, step=1, actor="ada")
    other.write(Kind.ATTEMPT, {"attempt": 1, "source": "approval"}, step=1)
    other.result({"id": "re-1"})
    html = ada.get(item(story, seq)).content.decode()
    assert "step 1, which succeeded." in html and "it stood there as one which waits for approval" in html
    assert "it is asked for once more" in html and "under a key of its own" not in html
    other.write(Kind.DONE, {"result": 1})
    assert "step 1, which succeeded." in ada.get(item(story, seq)).content.decode()


def test_a_tool_that_asks_for_approval_itself_was_not_sent_and_is_not_asked_for_anew(ada: Client) -> None:
    story = Story()
    seq = story.call()
    failed = {"error": "NeedsApproval: above 50", "code": "needs_approval", "due": 0.0}
    story.write(Kind.ERROR, failed, step=1)
    story.write(Kind.APPROVAL, {"verdict": "requested", "digest": DIGEST, "why": "above 50"}, step=1, actor="system")
    listed(story)
    page = ada.get(item(story, seq)).content.decode()
    assert "The tool asks for approval" in page and "Above 50." in page and "Asked anew" not in page
    assert "nothing was done: the tool asks for approval first" in page and "NeedsApproval" not in page
    story.write(Kind.APPROVAL, {"verdict": "granted", "digest": DIGEST}, step=1, actor="ada")
    story.write(Kind.ATTEMPT, {"attempt": 2, "source": "worker"}, step=1)
    assert "Sent 2 times" not in ada.get(f"{story.url}?view=chat").content.decode()
