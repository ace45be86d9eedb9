import pytest
from django.test import Client

from journal.entries import Kind
from journal.read import read_entries
from runs.models import Run, Status
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
    assert olga.post(f"{story.url}/{verb}", {"reason": "asked by support"}).status_code == 302
    last = read_entries(None, story.run.id, kinds=[Kind.CONTROL])[-1]
    assert (last.actor, last.body["verb"], last.body["reason"]) == ("olga", verb, "asked by support")


def test_a_reason_is_asked_for_in_place(olga: Client) -> None:
    story = Story()
    answer = olga.post(f"{story.url}/hold", {"reason": "  "})
    assert answer.status_code == 422 and "Write a reason." in answer.content.decode()


def test_a_run_that_ended_meanwhile_is_said_to_have_ended(olga: Client) -> None:
    story = Story()
    story.done(result=1)
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    answer = olga.post(f"{story.url}/cancel", {"reason": "too late"})
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
