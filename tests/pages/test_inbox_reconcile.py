"""Saying what became of a call, on the inbox's pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import Client

from journal.entries import Kind
from journal.read import read_entries
from journal.verify import verify_run
from recovery.files import LARGEST
from runs.models import Evidence, Run, Status
from tests.pages.journals import Story, in_doubt, session
from tests.pages.waiting_items import doubtful, item, listed, typed

pytestmark = pytest.mark.django_db


def said(story: Story) -> list[Any]:
    return [(e.actor, e.body["verdict"]) for e in read_entries(None, story.run.id, kinds=[Kind.RECONCILE])]


def settling(story: Story) -> Any:
    return next(e.body for e in read_entries(None, story.run.id, kinds=[Kind.OBS]) if e.settles is not None)


def test_the_page_shows_what_is_known_and_every_answer(ada: Client) -> None:
    story, seq = doubtful()
    page = ada.get(f"{item(story, seq)}/reconcile").content.decode()
    for known in ("Did refund happen?", "24000", f"{story.run.id}:1", "the connection was cut", "Attempt 1 committed"):
        assert known in page
    for button in (
        "Ask refund by key", "Record that it happened", f"Execute refund once with key {story.run.id}:1", "Abort run",
    ):  # fmt: skip
        assert button in page
    assert page.count("checked") == 1 and 'value="probe" checked' in page


def test_of_a_stranded_run_it_is_said_on_every_page_that_shows_it(ada: Client) -> None:
    """No worker comes that would find out."""
    story, seq = doubtful()
    lost = session("gone", ended_at=Now())
    listed(story.now_is(Status.WAITING_FOR_VERSION, "waits for a worker that serves refund-desk@4", session=lost))
    page = ada.get(item(story, seq)).content.decode()
    assert "Did it happen?" in page and "Say what happened" in page and "A worker is on it" not in page
    assert "No live worker serves refund-desk@" in page
    run = ada.get(story.url).content.decode()
    assert f"Reconcile seq {seq}" in run and "Another worker takes over" not in run
    assert "Waits for a worker that serves" in run
    assert f"{item(story, seq)}" in ada.get("/inbox").content.decode()
    assert "Reconcile refund" in ada.get(f"{story.url}/acts").content.decode()
    done = ada.post(f"{item(story, seq)}/reconcile", {"verdict": "probe", "evidence_probe": "it may know"}, follow=True)
    assert done.status_code == 200 and said(story) == [("ada", "probe")]


def test_a_tool_that_cannot_be_asked_is_not_offered_to_be(ada: Client) -> None:
    story, seq = doubtful("mail", "unkeyed")
    page = ada.get(f"{item(story, seq)}/reconcile").content.decode()
    assert "by key" not in page.partition("What we know")[0] and 'value="probe"' not in page and "checked" not in page
    assert "Sending it again may repeat it" in ada.get(item(story, seq)).content.decode()


def test_asking_the_tool_needs_a_why_and_nothing_else(ada: Client) -> None:
    story, seq = doubtful()
    address = f"{item(story, seq)}/reconcile"
    assert ada.post(address, {"verdict": "probe", "evidence_probe": ""}).status_code == 422
    done = ada.post(address, {"verdict": "probe", "evidence_probe": "the tool may know"}, follow=True)
    page = done.content.decode()
    assert "A worker asks the tool" in page and "What the tool answered" in page and "A worker is on it" in page
    assert said(story) == [("ada", "probe")]
    story.write(Kind.RECONCILE, {"verdict": "undecided", "evidence": "502 from the bank"}, step=1)
    listed(story.now_is(Status.NEEDS_RECONCILIATION, "refund (step 1) may have happened"))
    page = ada.get(item(story, seq)).content.decode()
    assert "502 from the bank" in page and "Could not say" in page


def test_what_happened_is_typed_by_the_tools_return_type(ada: Client) -> None:
    story, seq = doubtful()
    typed()
    address = f"{item(story, seq)}/reconcile"
    page = ada.get(address).content.decode()
    assert 'name="result/id"' in page and 'name="result/amount_cents"' in page
    sent = {"verdict": "happened", "evidence_happened": "the ledger, row 7", "result/id": "re-1"}
    wrong = ada.post(address, sent | {"result/amount_cents": "a lot", "external_id": "re_1Pq"})
    text = wrong.content.decode()
    assert wrong.status_code == 422 and "not a whole number" in text
    assert "the ledger, row 7" in text and "re_1Pq" in text and 'value="re-1"' in text and 'value="a lot"' in text
    assert said(story) == []
    done = ada.post(address, sent | {"result/amount_cents": "24000", "external_id": "re_1Pq"}, follow=True)
    assert "Nothing was sent." in done.content.decode() and "re_1Pq" in done.content.decode()
    assert settling(story) == {
        "outcome": "succeeded", "result": {"id": "re-1", "amount_cents": 24_000}, "source": "operator",
    }  # fmt: skip


def test_a_result_that_is_not_known_is_null(ada: Client) -> None:
    story, seq = doubtful()
    typed()
    sent = {"verdict": "happened", "evidence_happened": "the customer says so", "unknown": "on", "result/id": " "}
    assert ada.post(f"{item(story, seq)}/reconcile", sent).status_code == 302
    assert settling(story)["result"] is None


def test_a_result_that_is_written_and_said_not_to_be_known_is_refused(ada: Client) -> None:
    story, seq = doubtful()
    typed()
    said = {"verdict": "happened", "evidence_happened": "the bank says so", "unknown": "on", "attempt": "1"}
    for written in ({"result/id": "re_1"}, {"result:as": "json", "result": "5"}):
        page = ada.post(f"{item(story, seq)}/reconcile", said | written)
        assert page.status_code == 422 and "A result stands above." in page.content.decode()
        assert story.last == seq + 1, "nothing was written"
    assert "re_1" in ada.post(f"{item(story, seq)}/reconcile", said | {"result/id": "re_1"}).content.decode()


def test_a_call_under_way_says_what_a_worker_does_about_it_by_its_class(ada: Client) -> None:
    for effect, said in (("unkeyed", "It is not sent again"), ("keyed", "sends it again under the same key")):
        story, seq = doubtful("mail", effect)
        story.now_is(Status.RUNNING, epoch=1, session=session("w1"))
        page = ada.get(item(story, seq)).content.decode()
        assert said in page and "A worker is on it" in page
        assert effect != "unkeyed" or "under the same key" not in page


def test_a_file_as_evidence_is_kept_and_given_out_as_a_download(ada: Client, victor: Client) -> None:
    story, seq = doubtful()
    content = b"<script>alert(1)</script>" * 3_000
    file = SimpleUploadedFile("../../bank <b>.html", content, "text/html")
    sent = {"verdict": "happened", "evidence_happened": "see the file", "unknown": "on", "file": file}
    page = ada.post(f"{item(story, seq)}/reconcile", sent, follow=True).content.decode()
    assert "bank &lt;b&gt;.html" in page and "../" not in page
    entry = read_entries(None, story.run.id, kinds=[Kind.RECONCILE])[-1]
    kept = entry.body["file"]
    assert (kept["name"], kept["type"], kept["size"]) == ("bank <b>.html", "text/html", len(content))
    assert entry.body["evidence"] == "see the file"
    answer = victor.get(f"{item(story, seq)}/evidence/{kept['sha256']}")
    assert answer.content == content and answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment") and answer["X-Content-Type-Options"] == "nosniff"
    assert victor.get(f"{item(story, seq)}/evidence/{'0' * 64}").status_code == 404
    assert verify_run(story.run.id) == []


def test_a_file_that_is_too_large_is_refused_and_the_text_stays(ada: Client) -> None:
    story, seq = doubtful()
    file = SimpleUploadedFile("scan.pdf", b"x" * (LARGEST + 1), "application/pdf")
    sent = {"verdict": "happened", "evidence_happened": "see the scan", "unknown": "on", "file": file}
    answer = ada.post(f"{item(story, seq)}/reconcile", sent)
    assert answer.status_code == 422
    assert "may have 10 MB" in answer.content.decode() and "see the scan" in answer.content.decode()
    assert said(story) == []


def test_executing_again_says_when_and_what_may_repeat_is_typed(ada: Client) -> None:
    story, seq = doubtful("mail", "unkeyed")
    typed()
    address = f"{item(story, seq)}/reconcile"
    page = ada.get(address).content.decode()
    assert "not before" in page and "If it did happen, it happens twice" in page
    sent = {"verdict": "never_happened", "evidence_never_happened": "no letter went out"}
    for typed_name in ("", "refund", "MAIL"):
        answer = ada.post(address, sent | {"typed_tool": typed_name})
        assert answer.status_code == 422 and "Type the tool&#x27;s name, mail" in answer.content.decode()
    assert said(story) == []
    done = ada.post(address, sent | {"typed_tool": "mail"}, follow=True)
    assert "not before" in done.content.decode() and said(story) == [("ada", "never_happened")]


def test_an_abort_is_typed_and_the_question_stays_on_record(ada: Client) -> None:
    story, seq = doubtful()
    address = f"{item(story, seq)}/reconcile"
    sent = {"verdict": "abort", "evidence_abort": "too old to matter"}
    assert ada.post(address, sent | {"typed_run": "r-00000000"}).status_code == 422
    name = story.url.rpartition("/")[2]
    page = ada.post(address, sent | {"typed_run": name}, follow=True).content.decode()
    assert "Never answered" in page and "Aborted, says ada" in page
    assert Run.objects.get(pk=story.run.pk).intents[0]["state"] == "aborted"
    assert item(story, seq) not in ada.get("/inbox").content.decode()
    record = ada.get("/inbox/settled?by=nobody").content.decode()
    assert item(story, seq) in record and "Refund 240.00 for o-1" in record


def test_the_second_answer_is_told_who_was_first_and_keeps_what_was_typed(ada: Client, olga: Client) -> None:
    story, seq = doubtful()
    address = f"{item(story, seq)}/reconcile"
    ada.post(address, {"verdict": "happened", "evidence_happened": "seen", "unknown": "on"})
    late = olga.post(address, {"verdict": "never_happened", "evidence_never_happened": "not seen", "attempt": "1"})
    page = late.content.decode()
    assert late.status_code == 409 and "ada answered: happened, at" in page
    again = ada.post(address, {"verdict": "happened", "evidence_happened": "seen", "unknown": "on"})
    assert again.status_code == 409 and "You answered: happened, at" in again.content.decode()
    assert said(story) == [("ada", "happened")]


def test_an_answer_to_an_earlier_attempt_is_not_written(ada: Client) -> None:
    story, seq = doubtful()
    story.write(Kind.ATTEMPT, {"attempt": 2, "source": "retry"}, step=1)
    story.result(outcome="unknown", error="cut again")
    sent = {"verdict": "never_happened", "evidence_never_happened": "not there", "attempt": "1"}
    answer = ada.post(f"{item(story, seq)}/reconcile", sent)
    assert answer.status_code == 409 and "sent again since you looked" in answer.content.decode()
    assert "not there" in answer.content.decode() and said(story) == []


def late_result(story: Story, outcome: str = "succeeded", result: Any = "refund-9") -> int:
    from journal.encoding import encode

    body = encode({"outcome": outcome, "result": result, "source": "worker"})
    row = Evidence.objects.create(run=story.run, step=1, epoch=1, session=session("w7"), body=body, outcome=outcome)
    return int(row.pk)


def test_a_late_result_is_shown_and_can_be_adopted_once(ada: Client, victor: Client) -> None:
    story, seq = doubtful()
    number = late_result(story)
    page = ada.get(item(story, seq)).content.decode()
    assert "Results that came too late" in page and "w7, epoch 1" in page and "refund-9" in page
    assert "Adopt this result" in page and "Adopt this result" not in victor.get(item(story, seq)).content.decode()
    address = f"{item(story, seq)}/adopt/{number}"
    assert "Adopt this late result of refund?" in ada.get(address).content.decode()
    assert ada.post(address, {"note": ""}).status_code == 422
    assert ada.post(address, {"note": "the bank agrees"}).status_code == 302
    assert settling(story) == {"outcome": "succeeded", "result": "refund-9", "source": "late"}
    last = read_entries(None, story.run.id, kinds=[Kind.RECONCILE])[-1]
    assert last.body == {"verdict": "happened", "evidence": f"late result {number} of w7, epoch 1: the bank agrees"}
    assert Evidence.objects.get(pk=number).adopted_seq == last.seq + 1
    assert ada.post(address, {"note": "again"}).status_code == 409
    assert "Adopted at" in ada.get(item(story, seq)).content.decode()


def test_a_late_result_that_says_nothing_is_not_adopted(ada: Client) -> None:
    story, seq = doubtful()
    number = late_result(story, "unknown", None)
    assert "Adopt this result" not in ada.get(item(story, seq)).content.decode()
    assert ada.post(f"{item(story, seq)}/adopt/{number}", {"note": "x"}).status_code == 409
    assert ada.get(f"{item(story, seq)}/adopt/{number + 1}").status_code == 404


def test_several_tools_are_asked_at_once_and_each_says_what_became_of_it(ada: Client, victor: Client) -> None:
    one, other, gone = doubtful(), doubtful(), doubtful()
    mail = doubtful("mail", "unkeyed")
    page = ada.get("/inbox").content.decode()
    assert page.count('name="item"') == 3 and "Ask the tool for the ticked" in page
    assert 'name="item"' not in victor.get("/inbox").content.decode()
    ada.post(f"{item(*gone)}/reconcile", {"verdict": "happened", "evidence_happened": "seen", "unknown": "on"})
    ids = [f"{story.run.id.hex}-{seq}" for story, seq in (one, other, gone, mail)]
    asked = ada.post("/inbox/ask-the-tools", {"item": [*ids, "nonsense"], "evidence": "it may know"})
    text = asked.content.decode()
    assert asked.status_code == 200 and "Asked 2 of 4" in text
    assert "Somebody settled this first" in text and "cannot be asked by key" in text
    assert said(one[0]) == said(other[0]) == [("ada", "probe")] and said(mail[0]) == []
    assert ada.post("/inbox/ask-the-tools", {"evidence": "x"}).status_code == 422
    assert ada.get("/inbox/ask-the-tools").status_code == 405


def test_what_people_and_machines_settled_is_listed_apart(ada: Client) -> None:
    mine, itself, copied = doubtful(), doubtful(), doubtful()
    mine[0].claimed()
    itself[0].claimed()
    copied[0].write(Kind.RECONCILE, {"verdict": "happened", "evidence": "of its source"}, step=1, actor="ada")
    ada.post(f"{item(*mine)}/reconcile", {"verdict": "happened", "evidence_happened": "row 7", "unknown": "on"})
    itself[0].write(Kind.RECONCILE, {"verdict": "happened", "evidence": "the tool was asked by key"}, step=1)
    itself[0].write(Kind.OBS, {"outcome": "succeeded", "result": {"id": "re-9"}, "source": "probe"}, step=1, settles=1)
    people = ada.get("/inbox/settled").content.decode()
    assert item(*mine) in people and "row 7" in people and item(*itself) not in people and "of its source" not in people
    machines = ada.get("/inbox/settled?by=itself").content.decode()
    assert item(*itself) in machines and "re-9" in machines and item(*mine) not in machines
    assert ada.get("/inbox/settled?after=nonsense").status_code == 422
    assert ada.get("/inbox/settled?by=nonsense").status_code == 200


def test_the_old_addresses_lead_to_the_item_and_still_take_answers(ada: Client) -> None:
    for verdict in ("happened", "never_happened", "probe", "abort"):
        story, seq = in_doubt()
        old = f"{story.url}/intents/{seq}/reconcile"
        assert ada.get(old)["Location"] == item(story, seq)
        sent = {"verdict": verdict, "evidence": "row 7", "result": '{"id": "r-1"}' if verdict == "happened" else ""}
        assert ada.post(old, sent).status_code == 302
        last = read_entries(None, story.run.id, kinds=[Kind.RECONCILE])[-1]
        assert (last.actor, last.body["verdict"], last.body["evidence"]) == ("ada", verdict, "row 7")
    story, seq = in_doubt()
    for awkward in ("{oops", "NaN", "[" * 100_000):
        sent = {"verdict": "happened", "evidence": "x", "result": awkward}
        refused = ada.post(f"{story.url}/intents/{seq}/reconcile", sent)
        assert refused.status_code == 422 and "This is not JSON" in refused.content.decode()
