import pytest
from django.test import Client

from journal.entries import Entry, Kind
from journal.read import read_entries
from runs.models import Run, Status
from runs.short_ids import short_id
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("verb", "status"),
    [("hold", Status.QUEUED), ("resume", Status.HELD), ("release", Status.QUARANTINED), ("cancel", Status.QUEUED)],
)
def test_a_control_says_what_it_writes_and_writes_it_with_reason_and_name(
    olga: Client, verb: str, status: Status
) -> None:
    story = Story()
    before = {Status.HELD: "hold", Status.QUARANTINED: "quarantine"}.get(status)
    if before:
        story.write(Kind.CONTROL, {"verb": before, "reason": "before"})
    story.now_is(status)
    assert f"CONTROL({verb})" in olga.get(f"{story.url}/{verb}").content.decode()
    typed = {"reason": "asked by support", "confirm": short_id(story.run.id)}
    assert olga.post(f"{story.url}/{verb}", typed).status_code == 302
    last = read_entries(None, story.run.id, kinds=[Kind.CONTROL])[-1]
    assert (last.actor, last.body["verb"], last.body["reason"]) == ("olga", verb, "asked by support")


def last_entry(story: Story) -> Entry:
    return read_entries(None, story.run.id)[-1]


def test_a_note_is_written_also_when_the_run_has_ended(olga: Client) -> None:
    story = Story()
    story.done(result=1)
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    assert f"{story.url}/note" in olga.get(story.url).content.decode()
    assert "Write the note." in olga.post(f"{story.url}/note", {"text": " "}).content.decode()
    assert olga.post(f"{story.url}/note", {"text": "called the bank"}).status_code == 302
    assert (last_entry(story).kind, last_entry(story).body, last_entry(story).actor) == (
        "NOTE",
        {"text": "called the bank"},
        "olga",
    )


def test_a_signal_is_sent_with_its_payload_once(olga: Client) -> None:
    story = Story()
    story.opens(Kind.TIMER, verb="set", signal="confirmed")
    story.now_is(Status.WAITING, "waits for the signal confirmed", awaits_signals=["confirmed"])
    address = f"{story.url}/signal?name=confirmed"
    assert address in olga.get(story.url).content.decode()
    assert 'value="confirmed"' in olga.get(address).content.decode()
    sent = {"name": "confirmed", "payload": '{"pages": 3}', "signal_id": "click-1"}
    for _ in range(2):
        assert olga.post(address, sent).status_code == 302
    assert [e.body for e in read_entries(None, story.run.id, kinds=[Kind.SIGNAL])] == [
        {"name": "confirmed", "payload": {"pages": 3}, "id": "click-1"}
    ]
    other = olga.post(address, sent | {"payload": "4"})
    assert other.status_code == 409 and "with another payload" in other.content.decode()
    assert Run.objects.get(pk=story.run.pk).status == Status.QUEUED


@pytest.mark.parametrize("payload", ["{oops", "NaN", "[" * 100_000])
def test_a_payload_that_is_no_json_is_said_at_the_field(olga: Client, payload: str) -> None:
    story = Story()
    answer = olga.post(f"{story.url}/signal", {"name": "", "payload": payload})
    page = answer.content.decode()
    assert answer.status_code == 422 and "This is not JSON" in page and "Name the signal" in page


def test_retry_is_offered_while_something_waits_to_be_tried_again(olga: Client) -> None:
    story = Story()
    story.call()
    story.now_is(Status.WAITING, "refund (step 1) is tried again")
    assert f"{story.url}/retry" not in olga.get(story.url).content.decode()
    refused = olga.post(f"{story.url}/retry", {"reason": "now"})
    assert refused.status_code == 409 and "waits to be tried again" in refused.content.decode()
    story.write(Kind.ERROR, {"error": "away", "due": 4e9}, step=1)
    assert f"{story.url}/retry" in olga.get(story.url).content.decode()
    assert olga.post(f"{story.url}/retry", {"reason": "they are back"}).status_code == 302
    assert last_entry(story).body == {"verb": "retry", "reason": "they are back"}


def test_a_cancel_says_how_many_runs_it_reaches(olga: Client) -> None:
    story = Story()
    one, two = story.spawn(), story.spawn()
    one.spawn()
    two.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    page = olga.get(f"{story.url}/cancel").content.decode()
    assert "It reaches 3 runs: this one and 2 open runs below it." in page and "Cancel run: 3 runs" in page
    olga.post(f"{story.url}/cancel", {"reason": "a mistake", "confirm": short_id(story.run.id)})
    assert last_entry(one).body["cause"]["run"] == str(story.run.id)
    assert "It reaches" not in olga.get(f"{one.spawn().url}/cancel").content.decode()


def test_a_reason_is_asked_for_in_place(olga: Client) -> None:
    story = Story()
    answer = olga.post(f"{story.url}/hold", {"reason": "  "})
    assert answer.status_code == 422 and "Write a reason." in answer.content.decode()


def test_a_run_that_ended_meanwhile_is_said_to_have_ended(olga: Client) -> None:
    story = Story()
    story.done(result=1)
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    answer = olga.post(f"{story.url}/cancel", {"reason": "too late", "confirm": short_id(story.run.id)})
    assert answer.status_code == 409 and "The run has ended" in answer.content.decode()


def test_only_verbs_that_apply_are_offered(olga: Client) -> None:
    offered = {
        Status.RUNNING: {"hold", "cancel"},
        Status.HELD: {"resume", "cancel"},
        Status.QUARANTINED: {"release", "cancel"},
        Status.DONE: set(),
    }
    for status, verbs in offered.items():
        story = Story()
        if status == Status.HELD:
            story.write(Kind.CONTROL, {"verb": "hold", "reason": "before"})
        story.now_is(status, ended_at="2026-11-17T14:02:11Z" if status == Status.DONE else None)
        page = olga.get(story.url).content.decode()
        assert {v for v in ("hold", "cancel", "resume", "release") if f'{story.url}/{v}"' in page} == verbs


def test_the_kill_button_is_there_in_a_demo_only(olga: Client, settings: object) -> None:
    import socket

    from tests.pages.journals import session

    story = Story().now_is(Status.RUNNING, session=session(host=socket.gethostname(), pid=1))
    settings.HOLDFAST_DEMO = False  # type: ignore[attr-defined]
    assert "Kill this worker" not in olga.get(story.url).content.decode()
    assert olga.post(f"{story.url}/kill-worker").status_code == 409
    settings.HOLDFAST_DEMO = True  # type: ignore[attr-defined]
    assert "Kill this worker" in olga.get(story.url).content.decode()
    # Process 1 is no worker: whatever the row says, it gets no signal.
    assert olga.post(f"{story.url}/kill-worker").status_code == 409
    assert Run.objects.get(pk=story.run.pk).status == Status.RUNNING
