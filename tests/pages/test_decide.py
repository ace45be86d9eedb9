import pytest
from django.test import Client

from journal.entries import Kind
from journal.read import read_entries
from runs.models import Run
from tests.pages.journals import DIGEST, awaiting_approval

pytestmark = pytest.mark.django_db


def test_approving_writes_the_decision_with_the_deciders_name(ada: Client) -> None:
    story, seq = awaiting_approval()
    address = f"{story.url}/intents/{seq}/approval"
    page = ada.get(address).content.decode()
    assert "24000" in page and f"{story.run.id}:1" in page and DIGEST in page and "Approve refund once" in page
    answer = ada.post(
        address, {"verdict": "approve", "digest": DIGEST, "note": "within policy", "actor": "max"}, follow=True
    )
    assert "Your decision was written to the journal with your name." in answer.content.decode()
    last = read_entries(None, story.run.id, kinds=[Kind.APPROVAL])[-1]
    assert (last.actor, last.body["verdict"], last.body["note"]) == ("ada", "granted", "within policy")


def test_rejecting_needs_a_reason_and_says_so_in_place(ada: Client) -> None:
    story, seq = awaiting_approval()
    address = f"{story.url}/intents/{seq}/approval"
    answer = ada.post(address, {"verdict": "deny", "digest": DIGEST})
    assert answer.status_code == 422 and "Say why it is rejected" in answer.content.decode()
    assert ada.post(address, {"verdict": "deny", "digest": DIGEST, "note": "not this one"}).status_code == 302
    assert read_entries(None, story.run.id, kinds=[Kind.APPROVAL])[-1].body["verdict"] == "denied"


def test_the_second_decision_is_told_who_was_first(ada: Client, max: Client) -> None:
    story, seq = awaiting_approval()
    address = f"{story.url}/intents/{seq}/approval"
    ada.post(address, {"verdict": "approve", "digest": DIGEST})
    late = max.post(address, {"verdict": "deny", "digest": DIGEST, "note": "no"})
    page = late.content.decode()
    assert late.status_code == 409
    assert "Your answer was not written" in page and "ada" in page and "granted" in page and "Traceback" not in page


def test_another_digest_than_the_one_on_screen_is_refused(ada: Client) -> None:
    story, seq = awaiting_approval()
    answer = ada.post(f"{story.url}/intents/{seq}/approval", {"verdict": "approve", "digest": "0" * 64})
    assert answer.status_code == 409 and "What would run is not what you saw" in answer.content.decode()
    assert Run.objects.get(pk=story.run.pk).status == "awaiting_approval"


def test_an_intent_that_is_not_there_is_not_found(ada: Client) -> None:
    story, _ = awaiting_approval()
    assert ada.get(f"{story.url}/intents/99/approval").status_code == 404
    posted = ada.post(f"{story.url}/intents/99/approval", {"verdict": "approve", "digest": DIGEST})
    assert posted.status_code == 404
