import pytest
from django.test import Client

from journal.entries import Kind
from journal.read import read_entries
from tests.pages.journals import in_doubt

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("verdict", ["happened", "never_happened", "probe", "abort"])
def test_each_answer_is_written_with_evidence_and_name(ada: Client, verdict: str) -> None:
    story, seq = in_doubt()
    sent = {
        "verdict": verdict,
        "evidence": "the ledger, row 7",
        "result": '{"id": "r-1"}' if verdict == "happened" else "",
    }
    assert ada.post(f"{story.url}/intents/{seq}/reconcile", sent).status_code == 302
    said = read_entries(None, story.run.id, kinds=[Kind.RECONCILE])[-1]
    assert (said.actor, said.body["verdict"], said.body["evidence"]) == ("ada", verdict, "the ledger, row 7")
    if verdict == "happened":
        assert read_entries(None, story.run.id, kinds=[Kind.OBS])[-1].body["result"] == {"id": "r-1"}


def test_the_page_shows_what_is_known_and_every_answer(ada: Client) -> None:
    story, seq = in_doubt()
    page = ada.get(f"{story.url}/intents/{seq}/reconcile").content.decode()
    for known in ("Did refund happen?", "24000", f"{story.run.id}:1", "the connection was cut", "Attempt 1 committed"):
        assert known in page
    for button in ("Ask the tool by key", "Record that it happened", "Send once with the same key", "Abort run"):
        assert button in page


def test_missing_evidence_and_a_result_that_is_no_json_are_said_in_place(ada: Client) -> None:
    story, seq = in_doubt()
    answer = ada.post(
        f"{story.url}/intents/{seq}/reconcile", {"verdict": "happened", "evidence": "", "result": "{oops"}
    )
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Write how you know." in page and "This is not JSON." in page and "{oops" in page
    for awkward in ("NaN", "[" * 100_000):
        refused = ada.post(
            f"{story.url}/intents/{seq}/reconcile", {"verdict": "happened", "evidence": "x", "result": awkward}
        )
        assert refused.status_code == 422


def test_the_second_answer_is_told_who_was_first(ada: Client, olga: Client) -> None:
    story, seq = in_doubt()
    address = f"{story.url}/intents/{seq}/reconcile"
    ada.post(address, {"verdict": "happened", "evidence": "seen", "result": "1"})
    late = olga.post(address, {"verdict": "never_happened", "evidence": "not seen"})
    assert late.status_code == 409
    assert "Your answer was not written" in late.content.decode() and "ada" in late.content.decode()
