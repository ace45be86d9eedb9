"""The dialog of a move: the verdict first, with its reasons; then the reason, and the move."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from journal.append import lock_head
from journal.entries import Kind
from recovery.models import Purpose, Replay
from runs.models import Release, Run, Status, WorkerSession
from runs.queries import entries_of
from runs.short_ids import short_id
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(cast: None) -> Run:
    """A stranded run, and a live worker of another release of its agent."""
    run = Story().now_is(Status.WAITING_FOR_VERSION, reason="waits for a worker that serves it").run
    release = Release.objects.create(id="8" * 64, agent=run.agent, version="8", content=run.release.content)
    WorkerSession.objects.create(
        id=run.id, name="w8", host="h", pid=1, pool="threads", concurrency=4, region="local", serves=[release.id],
        heartbeat_at=timezone.now(), expires_at=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    return run


def judged(run: Run, verdict: str = "compatible", **more: Any) -> Replay:
    """As a worker would have."""
    reasons = [{"seq": 3, "code": "decision", "says": "Another call <b>.", "verdict": verdict}]
    given = {"verdict": verdict, "as_of_seq": lock_head(run.id).last_seq, "ended_at": timezone.now(),
             "result": {"code": "c" * 64, "reasons": reasons if verdict != "compatible" else []}} | more  # fmt: skip
    return Replay.objects.create(run=run, release_id="8" * 64, purpose=Purpose.PIN, actor="olga", **given)


def at(run: Run) -> str:
    return f"/runs/{short_id(run.id)}/pin"


def test_unjudged_it_offers_the_releases_that_workers_serve_and_to_judge(olga: Client, run: Run) -> None:
    page = olga.get(at(run)).content.decode()
    assert f"{run.agent}@8" in page and "candidate, 1 worker" in page
    assert "Not judged yet" in page and "Judge the move" in page and 'name="reason"' not in page


def test_judging_orders_one_judgement_and_says_that_it_waits(
    olga: Client, run: Run, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    monkeypatch.setattr("recovery.pages.pinning.SOON", 0.0)
    for _ in range(2):
        page = olga.post(at(run), {"do": "judge", "release": "8" * 64}).content.decode()
        assert "Judging…" in page and "waits for a worker" in page and "disabled" in page
    made = Replay.objects.get()
    assert (made.purpose, made.actor, made.release_id) == ("pin", "olga", "8" * 64)
    Replay.objects.update(taken_at=timezone.now())
    assert "decides it again" in olga.get(f"{at(run)}?release={'8' * 64}").content.decode()


def test_compatible_it_says_what_is_written_and_moves_the_run(olga: Client, run: Run) -> None:
    made = judged(run)
    page = olga.get(at(run)).content.decode()
    assert "Compatible" in page and "What is written" in page and f'name="judged" value="{made.pk}"' in page
    sent = {"release": "8" * 64, "judged": str(made.pk)}
    assert olga.post(at(run), sent | {"reason": ""}).status_code == 422
    answer = olga.post(at(run), sent | {"reason": "v7 has no workers"})
    assert answer.status_code == 302
    moved = Run.objects.get(id=run.id)
    assert (moved.release_id, moved.status) == ("8" * 64, "queued")
    pin = entries_of(run.id)[-1]
    assert (pin.kind, pin.actor, pin.body["code"], pin.body["reason"]) == ("PIN", "olga", "c" * 64, "v7 has no workers")
    assert re.search(r"goes on under \S+@8", olga.get(answer.url).content.decode())


@pytest.mark.parametrize(("verdict", "word"), [("fork needed", "Fork needed"), ("refused", "Refused")])
def test_what_may_not_be_moved_is_told_by_entry_with_other_ways(
    olga: Client, run: Run, verdict: str, word: str
) -> None:
    made = judged(run, verdict)
    page = olga.get(at(run)).content.decode()
    assert word in page and "?seq=3" in page and "Another call &lt;b&gt;." in page
    assert "/fork" in page and "start a worker of" in page and 'name="reason"' not in page
    answer = olga.post(at(run), {"release": "8" * 64, "judged": str(made.pk), "reason": "all the same"})
    assert answer.status_code == 409 and "Nothing was written" in answer.content.decode()
    assert Run.objects.get(id=run.id).release_id == run.release_id


def test_a_judgement_of_before_does_not_count(olga: Client, run: Run) -> None:
    judged(run, as_of_seq=0)
    page = olga.get(at(run)).content.decode()
    assert "The journal has gone on since it was judged" in page and 'name="reason"' not in page


def test_one_that_could_not_be_judged_says_why(olga: Client, run: Run) -> None:
    judged(run, verdict="", error="3 workers died over it", as_of_seq=None, result=None)
    page = olga.get(at(run)).content.decode()
    assert "could not be judged" not in page or "3 workers died over it" in page
    assert "Judge the move" in page


def test_where_nobody_serves_another_release_it_says_so(olga: Client, run: Run) -> None:
    WorkerSession.objects.update(ended_at=timezone.now())
    page = olga.get(at(run)).content.decode()
    assert "Not possible now" in page and "Start one" in page


def test_a_run_that_is_over_is_said_to_be_so_whoever_serves_what(olga: Client, run: Run) -> None:
    WorkerSession.objects.update(ended_at=timezone.now())
    Run.objects.filter(id=run.id).update(status=Status.DONE, ended_at=timezone.now())
    page = olga.get(at(run)).content.decode()
    assert "It is done since" in page and "Start one" not in page


def test_who_may_not_re_pin_is_refused_and_the_menu_says_so(victor: Client, run: Run) -> None:
    assert victor.get(at(run)).status_code == 403
    assert 'title="Your role does not allow this">Re-pin' in victor.get(f"/runs/{short_id(run.id)}").content.decode()


def test_e14_the_page_of_a_diverged_run_shows_both_moves_and_the_ways_out(olga: Client, victor: Client) -> None:
    story = Story()
    recorded, attempted = [{"call": "refund", "args": {}}], [{"call": "mail", "args": {}}]
    more = {"reason": "entry 3: other", "seq": 3, "recorded": recorded, "attempted": attempted}
    story.write(Kind.CONTROL, {"verb": "diverged"} | more)
    story.now_is(Status.HELD, "diverged: entry 3: other")
    page = olga.get(story.url).content.decode()
    assert "decides otherwise than the journal says" in page and "Recorded at seq 3" in page
    assert "refund" in page and "Attempted by this code" in page and "mail" in page
    assert "Start a worker with the code of before" in page
    ways = page.split('id="diverged-t"')[1]
    assert f"/runs/{short_id(story.run.id)}/pin" in ways and f"/runs/{short_id(story.run.id)}/fork" in ways
    seen = victor.get(story.url).content.decode().split('id="diverged-t"')[1]
    assert f"/runs/{short_id(story.run.id)}/pin" not in seen and "Your role does not allow this" in seen


def test_e13_the_page_of_a_stranded_run_says_since_when_and_the_ways_out(olga: Client, run: Run) -> None:
    page = olga.get(f"/runs/{short_id(run.id)}").content.decode()
    assert f"No live worker serves {run.release}" in page and "the run goes on by itself" in page
    assert f"/runs/{short_id(run.id)}/pin" in page.split('id="stranded-t"')[1]
