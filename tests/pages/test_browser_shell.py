"""The shell, the overview and the list of workers in a real browser."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.utils import timezone

from runs.gates import place_gate
from runs.models import Run, Status
from tests.pages.browser import Site, told
from tests.pages.journals import Story, session

pytestmark = pytest.mark.slow


def waits(state: str, status: str, minutes: int) -> Story:
    since = (timezone.now() - timedelta(minutes=minutes)).isoformat()
    record = {"seq": 2, "step": 1, "tool": "refund", "state": state, "since": since, "deadline": None}
    return Story().now_is(status, intents=[record])


def furnish() -> None:
    """Something of everything that the pages show."""
    waits("in_doubt", Status.NEEDS_RECONCILIATION, 12)
    waits("awaiting_approval", Status.AWAITING_APPROVAL, 5)
    Story().now_is(Status.HELD, "held by olga: a look")
    lost = session("w-lost", ended_at=timezone.now(), end_reason="process died")
    taker = session("w-taker")
    story = Story().now_is(Status.RUNNING, session=taker, epoch=2)
    body = {"text": "taken over", "epoch": 2, "from": str(lost.id), "session": str(taker.id)}
    story.write("NOTE", body, actor="system")
    Story().now_is(Status.DONE, ended_at=timezone.now())
    place_gate(scope="tool:refund", reason="the bank is away", actor="olga")


def test_keys_move_and_open_and_nothing_is_written(site: Site) -> None:
    story = Story()
    Run.objects.filter(pk=story.run.pk).update(request_key="key-77")
    page = site.open("olga", "/")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/workers")
    page.keyboard.press("?")
    page.locator("#dlg-keys[open]").wait_for()
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("/")
    page.keyboard.type("key-77")
    page.locator("#jump-results a", has_text="refund-desk").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{story.url}")
    assert story.last == 1


def test_escape_closes_the_jump_at_once_whatever_was_typed(site: Site) -> None:
    page = site.open("olga", "/")
    page.keyboard.press("/")
    page.keyboard.type("order")
    page.keyboard.press("Escape")
    page.locator("#dlg-jump").wait_for(state="hidden")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_way_back_leads_to_the_page_as_it_is_now(site: Site, scripts: bool) -> None:
    story = Story().now_is(Status.HELD, "held by olga: a look")
    page = site.open("victor", story.url, java_script_enabled=scripts)
    page.locator(".run-st", has_text="Held").wait_for()
    page.goto("/workers")
    story.now_is(Status.QUEUED)
    page.go_back()
    page.locator(".run-st", has_text="Queued").wait_for()


def test_a_page_kept_whole_by_the_browser_is_loaded_again(site: Site) -> None:
    page = site.open("victor", "/workers")
    with page.expect_navigation():
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")


def test_a_person_without_scripts_jumps_and_reads_the_overview(site: Site) -> None:
    furnish()
    story = Story()
    page = site.open("victor", "/", java_script_enabled=False)
    assert "Approvals waiting" in page.content() and "w-lost" in page.content()
    page.get_by_role("link", name="Jump to run").click()
    page.get_by_label("Run id, request key, business id or label").first.fill(str(story.run.id))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{story.url}")


def test_the_overview_goes_on_by_itself_and_the_badge_with_it(site: Site) -> None:
    page = site.open("victor", "/")
    page.locator("#live", has_text="Live").wait_for()
    story = waits("awaiting_approval", Status.AWAITING_APPROVAL, 5)
    told(story.run.id)
    page.locator("#need-awaiting_approval").wait_for()
    page.locator("#badge-mast", has_text="1").wait_for()
    place_gate(scope="tool:refund", reason="the bank is away", actor="olga")
    page.locator("#conditions", has_text="tool:refund").wait_for()
    assert page.locator("#part-agents").get_by_text("refund-desk").count() == 1


def test_a_phone_sees_every_number_of_the_overview_without_scrolling_sideways(site: Site) -> None:
    furnish()
    page = site.open("victor", "/", viewport={"width": 390, "height": 844})
    for part in ("#agent-refund-desk td", "#agent-refund-desk .meter", "#part-hours .chart:visible .c-done"):
        boxes = [spot.bounding_box() for spot in page.locator(part).all()]
        assert boxes and all(box and box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes), part


def test_rows_under_the_pointer_do_not_change_places(site: Site) -> None:
    waits("awaiting_approval", Status.AWAITING_APPROVAL, 5)
    page = site.open("victor", "/")
    page.locator("#live", has_text="Live").wait_for()
    page.locator("#need-awaiting_approval").hover()
    older = waits("in_doubt", Status.NEEDS_RECONCILIATION, 60)
    told(older.run.id)
    page.locator("#badge-mast", has_text="2").wait_for()
    assert page.locator(".needs > li").count() == 1
    page.locator("h1").hover()
    page.locator("#need-in_doubt").wait_for()
    ids = page.eval_on_selector_all(".needs > li", "rows => rows.map(row => row.id)")
    assert ids == ["need-in_doubt", "need-awaiting_approval"]


def test_a_lost_stream_says_since_when_and_comes_back(site: Site) -> None:
    page = site.open("victor", "/")
    page.locator("#live", has_text="Live").wait_for()
    page.context.set_offline(True)
    page.locator("#live", has_text="Offline. As of").wait_for()
    page.locator("#stale", has_text="Offline since").wait_for()
    assert "UTC" in page.locator("#stale").inner_text()
    page.context.set_offline(False)
    page.locator("#live", has_text="Live").wait_for()
    page.locator("#stale").wait_for(state="hidden")
    site.complaints.clear()


def test_above_the_cap_a_page_polls_and_says_so(
    chromium: Any, dsn: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runs.access import ensure_demo_users
    from tests.pages.browser import serving

    monkeypatch.setenv("HOLDFAST_STREAMS", "1")
    ensure_demo_users("unused")
    with serving(dsn, tmp_path) as address:
        site = Site(address, chromium)
        first = site.open("victor", "/")
        first.locator("#live", has_text="Live").wait_for()
        second = site.open("victor", "/")
        second.locator("#live", has_text="Polling every 10 s").wait_for()
        Story().now_is(Status.HELD, "a look")
        second.locator("#need-held").wait_for()
        for context in list(chromium.contexts):
            context.close()


@pytest.mark.parametrize("how", ["logout", "role"])
def test_a_stream_ends_when_its_viewer_may_look_no_more(site: Site, how: str) -> None:
    page = site.open("victor", "/")
    page.locator("#live", has_text="Live").wait_for()
    if how == "logout":
        Session.objects.all().delete()
        page.wait_for_url("**/login**")
    else:
        User.objects.get(username="victor").groups.remove(Group.objects.get(name="viewer"))
        page.get_by_text("Your role does not allow this").wait_for()
    site.complaints.clear()


def test_workers_rows_change_by_themselves(site: Site) -> None:
    worker = session("w1")
    page = site.open("victor", "/workers")
    page.locator("#live", has_text="Live").wait_for()
    page.locator(f"#session-{worker.id}", has_text="Serving").wait_for()
    worker.draining_at = timezone.now()
    worker.save()
    page.locator(f"#session-{worker.id}", has_text="Drained").wait_for()
    another = session("w2")
    page.locator(f"#session-{another.id}").wait_for()
    began = time.monotonic()
    page.locator("#workers-head", has_text="1 serving, 1 draining").wait_for()
    assert time.monotonic() - began < 30
