"""Moving many runs on pages: where to, what workers say of them, and then the move of those that may."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from recovery.models import Replay
from runs.models import BulkAct, Release, Run, WorkerSession
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


def other_release(run: Run, version: str = "8", served: bool = True) -> Release:
    release = Release.objects.create(
        id=version.rjust(64, "8"), agent=run.agent, version=version, content=run.release.content
    )
    if served:
        WorkerSession.objects.create(
            id=Story().run.id, name=f"w{version}", host="h", pid=1, pool="threads", concurrency=4, region="local",
            serves=[release.id], heartbeat_at=timezone.now(), expires_at=timezone.now() + timedelta(hours=1),
        )  # fmt: skip
    return release


def hidden(page: str) -> dict[str, str]:
    chosen = re.findall(r'<input type="radio" name="(release)" id="to-\d" value="([^"]*)" checked', page)
    return dict(chosen + re.findall(r'<input type="hidden" name="(counted|request_id)" value="([^"]*)"', page))


def judged(act: BulkAct, *outcomes: str) -> None:
    """As if workers had."""
    items = list(act.items.order_by("run_id"))
    for item, outcome in zip(items, outcomes, strict=True):
        said = "" if outcome == "done" else "Fork needed: entry 3: another call."
        act.items.filter(run_id=item.run_id).update(outcome=outcome, said=said, at=timezone.now())
    BulkAct.objects.filter(pk=act.pk).update(ended_at=timezone.now())


def ordered(olga: Client, address: str, **more: str) -> Any:
    page = olga.get(address)
    assert page.status_code == 200, page.content
    return olga.post(address, hidden(page.content.decode()) | more)


def test_first_where_to_then_the_verdicts_then_the_move(olga: Client) -> None:
    one, other = Story(), Story()
    release = other_release(one.run)
    address = f"/bulk/order?verb=pin&q=release:{one.run.release}"
    page = olga.get(address).content.decode()
    assert f"Re-pin 3 runs to {release}?" in page and "Nothing is moved yet" in page
    answer = ordered(olga, address)
    act = BulkAct.objects.get()
    assert answer.status_code == 302 and answer.url == f"/bulk/{act.pk}"
    assert (act.verb, act.release, act.actor) == ("judge", release, "olga") and not Replay.objects.exists()

    act.items.exclude(run_id__in=[one.run.id, other.run.id]).delete()
    judged(act, "done", "skipped")
    page = olga.get(f"/bulk/{act.pk}").content.decode()
    assert "Re-pin the 1 compatible run" in page and "Fork needed: entry 3" in page
    assert "</svg>Fork needed</span>" in page and "</svg>Compatible</span>" in page and ">Skipped</a>" not in page
    move = f"/bulk/{act.pk}/move"
    page = olga.get(move).content.decode()
    assert f"Re-pin 1 run to {release}?" in page and "Writes PIN" in page
    assert ordered(olga, move, reason="").status_code == 422
    answer = ordered(olga, move, reason="v7 is wrong")
    moved = BulkAct.objects.exclude(pk=act.pk).get()
    assert answer.url == f"/bulk/{moved.pk}" and (moved.verb, moved.judged) == ("pin", act)
    assert [item.run_id for item in moved.items.all()] == [one.run.id]


def test_where_nobody_serves_another_release_it_says_what_to_do(olga: Client) -> None:
    story = Story()
    other_release(story.run, served=False)
    page = olga.get(f"/bulk/order?verb=pin&q=release:{story.run.release}").content.decode()
    assert "No live worker serves another release" in page and "<button" not in main_of(page)


def test_an_act_on_no_run_has_no_button_and_no_count_of_nought(olga: Client) -> None:
    story = Story()
    release = other_release(story.run)
    for verb in ("pin", "hold", "cancel", "probe"):
        page = main_of(olga.get(f"/bulk/order?verb={verb}&q=agent:nobody").content.decode())
        assert "nothing to do" in page or verb == "pin", verb
        assert "<button" not in page and "0 run" not in page, verb
    judging = ordered(olga, f"/bulk/order?verb=pin&q=release:{story.run.release}")
    act = BulkAct.objects.get()
    assert judging.url == f"/bulk/{act.pk}"
    judged(act, "done", "done")
    Run.objects.update(release=release)
    page = main_of(olga.get(f"/bulk/{act.pk}/move").content.decode())
    assert "nothing to do" in page and "<button" not in page and "0 run" not in page


def main_of(page: str) -> str:
    return page.partition('class="panel act"')[2].partition("</main>")[0]


def test_the_page_of_a_release_leads_to_the_move_of_its_open_runs(olga: Client, victor: Client) -> None:
    story = Story()
    answer = olga.get(f"/releases/{story.run.release_id}/pin")
    assert answer.status_code == 302 and "verb=pin" in answer.url
    assert olga.get(answer.url).status_code == 200
    assert victor.get(answer.url).status_code == 403


def test_only_an_act_that_has_judged_is_followed_by_a_move(olga: Client) -> None:
    act = BulkAct.objects.create(verb="hold", query="", reason="so", actor="olga", door="page")
    assert olga.get(f"/bulk/{act.pk}/move").status_code == 404
