"""The page of drains: what is in force and how far it is, what one would touch, who may order what, and history."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from journal.entries import Kind
from recovery.drains import advance_drains, lift_drain, order_drain
from recovery.models import Drain, Phase
from runs.access import set_scope
from runs.models import AuditRecord, Gate, Status, WorkerSession
from runs.pages.dialogs import TARGET
from runs.pages.sharing import shared
from tests.pages.journals import Story, in_doubt, session

pytestmark = pytest.mark.django_db
IN_DIALOG = {"HX-Request": "true", "HX-Target": TARGET}
IN_PART = {"HX-Request": "true", "HX-Target": "section#blast"}
FORM = {"kind": "worker", "worker": "w1", "timeout": "600", "reason": "kernel patch"}


def busy(worker: WorkerSession, tool: str = "refund") -> Story:
    """A run that the worker holds, in a call of the tool."""
    story = Story()
    story.plan()
    story.call(tool, order_id="o-1")
    return story.now_is(Status.RUNNING, session=worker, epoch=1)


def ordered(scope: str = "worker:w1", timeout: float = 600, **fields: Any) -> Drain:
    drain = order_drain(scope=scope, timeout=timeout, reason="kernel patch", actor="olga")
    if fields:
        Drain.objects.filter(pk=drain.pk).update(**fields)
    drain.refresh_from_db()
    return drain


def heard(drain: Drain) -> None:
    """Every worker has sent a heartbeat since, and the phases follow."""
    WorkerSession.objects.update(heartbeat_at=timezone.now() + timedelta(seconds=5))
    advance_drains()
    drain.refresh_from_db()


def page(client: Client, path: str = "/drains") -> str:
    shared.clear()
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


# -- what is in force --------------------------------------------------------------------------------------------------


def test_a_drain_in_force_tells_its_clock_its_meter_and_what_is_in_the_way(olga: Client) -> None:
    worker = session("w1")
    story, other = busy(worker), busy(worker)
    drain = ordered()
    other.now_is(Status.QUEUED, session=None)
    html = page(olga)
    assert "1 of 2 runs at a checkpoint" in html and "to the deadline" in html and ">09:5" in html
    assert "1 in a tool call" in html and "In the way" in html and "refund, step 1" in html
    assert story.url in html and other.url not in html
    assert f"/drains/{drain.pk}/extend" in html and "Call off drain" in html
    assert "Not heard of yet at" in html and "1. Stop claiming" in html


def test_a_call_that_may_outlast_the_deadline_says_so(olga: Client) -> None:
    busy(session("w1"))
    ordered(timeout=5)
    assert "after the deadline" in page(olga)


def test_intents_in_doubt_are_told_with_a_way_to_the_inbox(olga: Client) -> None:
    session("w1")
    story, seq = in_doubt()
    story.now_is(Status.NEEDS_RECONCILIATION, intents=[{"seq": seq, "step": 1, "tool": "refund", "state": "in_doubt"}])
    ordered("agent:refund-desk")
    html = page(olga)
    assert "1 intent in the scope has no result." in html and "/inbox?tab=intents&amp;agent=refund-desk" in html


def test_once_it_is_over_the_gate_is_told_and_can_be_lifted(olga: Client) -> None:
    session("w1")
    drain = ordered()
    heard(drain)
    assert drain.phase == Phase.DONE
    html = page(olga)
    assert "Empty in time" in html and "Lift the gate" in html and "Extend" not in html
    assert "gate in force" in html


def test_nothing_in_force_says_so(victor: Client) -> None:
    html = page(victor)
    assert "No drain is in force" in html and "Nothing was drained yet." in html


# -- who may what ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["victor", "ada"])
def test_whoever_may_not_drain_only_reads(cast: None, who: str) -> None:
    client = Client()
    client.force_login(User.objects.get(username=who))
    busy(session("w1"))
    drain = ordered()
    html = page(client)
    assert "Starting a drain needs the operator role or admin" in html and "Call off" not in html
    assert client.post("/drains/order", FORM).status_code == 403
    assert client.post(f"/drains/{drain.pk}/lift", {"reason": "x"}).status_code == 403
    assert drain.scope in page(client, f"/drains/{drain.pk}")


def test_within_a_scope_only_its_own_agents_can_be_drained_and_counted(olga: Client) -> None:
    worker = session("w1")
    busy(worker)
    set_scope("olga", ["other"], actor="max")
    drain = ordered()
    html = page(olga)
    assert "0 runs still in flight" in html and "Call off" not in html and "refund-desk" not in html
    assert "There is nothing to drain" in html
    assert olga.post("/drains/order", FORM).status_code == 422
    assert olga.get(f"/drains/{drain.pk}/lift").status_code == 403
    hidden = ordered("agent:refund-desk")
    assert olga.get(f"/drains/{hidden.pk}").status_code == 404


# -- a new one ---------------------------------------------------------------------------------------------------------


def test_the_preview_counts_what_it_touches_and_names_the_act(olga: Client) -> None:
    busy(session("w1"))
    html = olga.post("/drains/preview", FORM, headers=IN_PART).content.decode()
    assert "<html" not in html and "What this drain touches" in html
    assert "Drain 1 run on 1 worker" in html and 'hx-target="#drain-button"' in html
    assert not Drain.objects.exists() and not Gate.objects.exists()


def test_the_preview_works_without_scripts(olga: Client) -> None:
    busy(session("w1"))
    html = olga.post("/drains/preview", FORM).content.decode()
    assert "<html" in html and "Drain 1 run on 1 worker" in html and 'value="kernel patch"' in html


def test_a_deadline_below_the_longest_timeout_and_runs_with_nowhere_to_go_are_warned_of(olga: Client) -> None:
    busy(session("w1"))
    html = olga.post("/drains/preview", FORM | {"timeout": "30"}, headers=IN_PART).content.decode()
    assert "The deadline is below the longest timeout" in html and "1 run in flight now may outlast it." in html
    assert "1 run would have nowhere to go" in html
    session("w2")
    html = olga.post("/drains/preview", FORM, headers=IN_PART).content.decode()
    assert "nowhere to go" not in html and "longest timeout" not in html


def test_it_asks_once_and_then_drains(olga: Client) -> None:
    busy(session("w1"))
    asked = olga.post("/drains/order", FORM, headers=IN_DIALOG)
    html = asked.content.decode()
    assert asked.status_code == 200 and "Drain 1 run on 1 worker?" in html and not Drain.objects.exists()
    answer = olga.post("/drains/order", FORM | {"sure": "1"}, headers=IN_DIALOG)
    assert answer.status_code == 204 and answer["HX-Redirect"] == "/drains"
    drain = Drain.objects.get()
    assert (drain.scope, drain.owner, drain.reason, drain.in_flight) == ("worker:w1", "olga", "kernel patch", 1)
    assert AuditRecord.objects.filter(act="drain.order", actor="olga").exists()


def test_a_second_click_is_no_mistake_and_somebody_elses_is_told(olga: Client, max: Client) -> None:
    session("w1")
    sure = FORM | {"sure": "1"}
    assert olga.post("/drains/order", sure).status_code == olga.post("/drains/order", sure).status_code == 302
    late = max.post("/drains/order", sure | {"reason": "mine"}, headers=IN_DIALOG)
    assert late.status_code == 409 and "Somebody was first" in late.content.decode()
    assert Drain.objects.count() == 1
    assert "This scope has a gate already" in max.post("/drains/preview", FORM, headers=IN_PART).content.decode()


def test_without_a_reason_the_form_says_so_where_it_stands(olga: Client) -> None:
    session("w1")
    answer = olga.post("/drains/order", FORM | {"reason": ""}, headers=IN_DIALOG)
    assert answer.status_code == 422 and answer["HX-Retarget"] == "#start"
    assert "Write a reason" in answer.content.decode()
    assert "Write a reason" in olga.post("/drains/order", FORM | {"reason": ""}).content.decode()


def test_a_target_that_is_not_there_is_refused(olga: Client) -> None:
    session("w1")
    answer = olga.post("/drains/order", FORM | {"worker": "gone", "sure": "1"})
    assert answer.status_code == 422 and not Drain.objects.exists()


def test_the_address_chooses_the_scope(olga: Client) -> None:
    session("w1")
    html = page(olga, "/drains?scope=agent:refund-desk")
    assert 'value="agent" checked' in html and '<span class="id">agent:refund-desk</span>' in html
    assert "/drains?scope=worker%3Aw1#start" in page(olga, "/workers")


# -- extend and call off -----------------------------------------------------------------------------------------------


def test_extending_moves_the_deadline_and_is_kept(olga: Client) -> None:
    busy(session("w1"))
    drain = ordered()
    assert "Extend the drain of worker:w1?" in page(olga, f"/drains/{drain.pk}/extend")
    assert olga.post(f"/drains/{drain.pk}/extend", {"seconds": "300"}).status_code == 422
    answer = olga.post(f"/drains/{drain.pk}/extend", {"seconds": "300", "reason": "one is slow"}, headers=IN_DIALOG)
    assert answer["HX-Redirect"] == f"/drains/{drain.pk}"
    was = drain.deadline_at
    drain.refresh_from_db()
    assert drain.deadline_at - was == timedelta(minutes=5)
    assert "moved by 5 m 00 s by olga" in page(olga, f"/drains/{drain.pk}")


def test_one_that_is_over_is_not_extended(olga: Client) -> None:
    session("w1")
    drain = ordered()
    heard(drain)
    answer = olga.post(f"/drains/{drain.pk}/extend", {"seconds": "300", "reason": "late"})
    assert answer.status_code == 409 and "It is over" in answer.content.decode()


def test_calling_off_lifts_the_gate_and_says_what_goes_on(olga: Client, max: Client) -> None:
    busy(session("w1"))
    drain = ordered()
    assert "1 is still in flight" in page(olga, f"/drains/{drain.pk}/lift")
    answer = olga.post(f"/drains/{drain.pk}/lift", {"reason": "not today"})
    assert answer.status_code == 302
    html = page(olga, f"/drains/{drain.pk}")
    assert "Called off" in html and "Lifted by olga" in html and "not today" in html
    again = max.post(f"/drains/{drain.pk}/lift", {"reason": "me too"})
    assert again.status_code == 409 and "Lifted already" in again.content.decode()


# -- how it ended ------------------------------------------------------------------------------------------------------


def test_the_report_names_what_was_handed_over_and_what_became_of_it(olga: Client) -> None:
    worker = session("w1")
    story, silent = busy(worker), busy(worker, "mail")
    drain = ordered(deadline_at=timezone.now() - timedelta(seconds=1))
    heard(drain)
    assert drain.phase == Phase.HANDED_OVER
    story.result({"ok": True})
    html = page(olga, f"/drains/{drain.pk}")
    assert f"{story.run.id}:1" in html and "answered late: succeeded" in html
    assert f"{silent.run.id}:1" in html and "not answered yet" in html
    row = page(olga).partition('id="drain-history"')[2]
    assert "Handed over" in row and "0 of 2" in row
    assert 'data-th="Handed over">2</td>' in row and 'data-th="Went on since">0</td>' in row, "an answer is no step on"
    story.plan()
    story.call(gate="gate", order_id="o-2")
    assert 'data-th="Went on since">0</td>' in page(olga), "what a gate holds is none either"
    story.write(Kind.ATTEMPT, {"attempt": 1, "source": "worker"}, step=2)
    assert 'data-th="Went on since">1</td>' in page(olga)


def test_a_model_that_answered_late_is_told_apart_from_a_run_that_went_on(olga: Client) -> None:
    worker = session("w1")
    story = Story()
    story.write(Kind.ATTEMPT, {"attempt": 1, "source": "model"})
    story.now_is(Status.RUNNING, session=worker, epoch=1)
    drain = ordered(deadline_at=timezone.now() - timedelta(seconds=1))
    heard(drain)
    assert "nothing was written since" in page(olga, f"/drains/{drain.pk}")
    story.plan()
    assert "answered, and not gone on" in page(olga, f"/drains/{drain.pk}")
    story.call(order_id="o-1")
    assert ">it went on<" in page(olga, f"/drains/{drain.pk}")


def test_what_a_worker_left_that_was_lost_meanwhile_is_no_checkpoint(olga: Client) -> None:
    worker = session("w1")
    story = busy(worker)
    drain = ordered("agent:refund-desk")
    WorkerSession.objects.filter(id=worker.id).update(ended_at=timezone.now() + timedelta(seconds=1))
    heard(drain)
    html = page(olga)
    assert "0 of 1 run at a checkpoint" in html and "1 left by a lost worker" in html
    assert "1 run by a worker that was lost meanwhile" in html
    Drain.objects.filter(pk=drain.pk).update(deadline_at=timezone.now())
    heard(drain)
    html = page(olga, f"/drains/{drain.pk}")
    assert "was not at a checkpoint when it ended" in html and f"{story.run.id}:1" in html
    assert "Every run" not in html and "0 of 1" in html


def test_history_is_paged(olga: Client) -> None:
    session("w1")
    for _ in range(32):
        lift_drain(drain_id=ordered().pk, reason="again", actor="olga")
    html = page(olga)
    assert "Older" in html
    oldest = page(olga, html.partition('href="?before=')[2].partition("#")[0].join(["/drains?before=", ""]))
    assert "Newest" in oldest and oldest.count("kernel patch") == 2


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def test_every_page_says_that_a_drain_is_in_force(victor: Client) -> None:
    worker = session("w1")
    busy(worker)
    drain = ordered()
    html = page(victor, "/jump").partition('id="conditions"')[2].partition("</aside>")[0]
    assert "Draining worker:w1" in html and "0 of 1 runs at a checkpoint" in html and "until" in html
    assert f'href="/drains/{drain.pk}"' in html and "more" not in html  # its gate is no line of its own


def test_runs_in_its_scope_are_marked(victor: Client) -> None:
    worker = session("w1")
    story, free = busy(worker), busy(session("w2"))
    ordered()
    html = page(victor, "/runs")
    assert f'id="run-{story.run.id}" data-s="draining"' in html and f'id="run-{free.run.id}" data-s="running"' in html
    head = page(victor, story.url).partition('id="run-head"')[2].partition("</section>")[0]
    assert "Draining" in head and "On the way to a checkpoint" in head
    assert "On the way to a checkpoint" not in page(victor, free.url)


def test_the_gates_page_says_which_gate_is_a_drains(olga: Client) -> None:
    session("w1")
    drain = ordered()
    Gate.objects.create(scope="tool:refund", reason="look", actor="max")
    html = page(olga, "/gates")
    assert html.count("Draining worker:w1") == 2  # the banner, and the gate
    assert f'<a class="tag" href="/drains/{drain.pk}">' in html


def test_a_worker_under_a_gate_is_draining(olga: Client) -> None:
    worker = session("w1")
    busy(worker)
    ordered()
    html = page(olga, "/workers")
    assert "Draining, 1 left" in html and "by the gate worker:w1" in html
    assert "Drain w1" not in html


def test_a_note_in_a_journal_is_no_call(olga: Client) -> None:
    worker = session("w1")
    story = Story()
    story.write(Kind.NOTE, {"text": "seen"}, actor="olga")
    story.now_is(Status.RUNNING, session=worker, epoch=1)
    ordered()
    assert "between steps" in page(olga)
