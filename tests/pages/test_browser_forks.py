"""Replay, fork and comparison in a real browser: by the keyboard, while something is decided, without scripts."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now

from recovery.models import Replay
from runs.models import Run
from runs.short_ids import short_id
from tests.pages.browser import Site, told
from tests.pages.replays import call_of, decided, diverged, divergence, ordered, result_of
from tests.pages.test_compare_page import forked
from tests.pages.test_fork_page import refunded

pytestmark = pytest.mark.slow


def test_divergences_are_walked_by_key_and_the_address_follows(site: Site) -> None:
    page = site.open("victor", f"{diverged().url}/replay?release=8")
    assert "seq 6" in page.locator("#divergence h2").inner_text()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#divergence h2", has_text="seq 5").wait_for()
    page.wait_for_url("**seq=5&what=text*")
    assert page.evaluate("document.activeElement.querySelector('.wf-seq').textContent") == "5"  # the focus stayed
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("#divergence h2", has_text="seq 9").wait_for()
    page.get_by_role("link", name="Changes only").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**show=changes*")
    page.reload()
    assert "tool is gone" in page.locator("#divergence h2").inner_text()


def test_a_page_that_waits_shows_the_worker_and_then_the_result_by_itself(site: Site) -> None:
    story = diverged()
    made = ordered(story)
    page = site.open("victor", f"{story.url}/replay?release=8")
    page.get_by_text("Waits for a worker of refund-desk@8").wait_for()
    Replay.objects.filter(pk=made.pk).update(taken_at=Now(), taken_by=made.run_id)
    told(story.run.id)
    page.get_by_text("A worker of refund-desk@8 decides it again").wait_for()
    result = result_of(story, divergence(6, call_of("refund", n=1), call_of("refund", n=2)))
    Replay.objects.filter(pk=made.pk).update(ended_at=Now(), as_of_seq=story.last, result=result, verdict="diverged")
    page.locator("#divergence h2", has_text="seq 6").wait_for()
    assert page.get_by_role("link", name="Report").is_visible()


def test_without_scripts_a_replay_is_waited_for_and_read(site: Site) -> None:
    story = diverged()
    made = ordered(story)
    page = site.open("victor", f"{story.url}/replay?release=8", java_script_enabled=False)
    page.get_by_text("Waits for a worker").wait_for()
    Replay.objects.filter(pk=made.pk).update(
        ended_at=Now(), as_of_seq=story.last, result=result_of(story), verdict="same"
    )
    page.get_by_role("heading", name="It decides the same").wait_for()  # the page refreshes itself


def test_on_a_phone_a_divergence_leads_down_to_what_differs(site: Site) -> None:
    page = site.open("victor", f"{diverged().url}/replay?release=8", viewport={"width": 390, "height": 844})
    page.locator("a.dv", has_text="Tool is gone").click()
    page.wait_for_url("**#divergence")
    assert page.locator("#divergence h2").evaluate("e => e.getBoundingClientRect().top") < 400


def test_a_fork_is_looked_at_and_ordered_by_key(site: Site) -> None:
    story = refunded()
    page = site.open("olga", f"{story.url}?seq=4")
    page.get_by_role("link", name="Fork from here").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="2 effects could happen twice").wait_for()
    page.get_by_label("From seq").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("6")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="It cannot be forked at seq 6").wait_for()
    page.get_by_role("link", name="Seq 7").focus()
    page.keyboard.press("Enter")
    page.get_by_label("I have read what could happen twice").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.get_by_label("Why you fork it").focus()
    page.keyboard.type("the letter was wrong")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("The fork goes on by itself.").wait_for()
    made = Run.objects.get(forked_from=story.run)
    assert page.url.partition("?")[0].endswith(short_id(made.id)) and made.forked_at == 7
    assert page.locator("[data-copied]").count() >= 7


def test_a_comparison_is_walked_by_key(site: Site) -> None:
    _, made = forked()
    page = site.open("victor", f"/runs/{short_id(made.id)}")
    page.get_by_role("link", name="compare", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Step 2: differs").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Step 1: copied").wait_for()
    page.wait_for_url("**step=1*")
    page.get_by_role("link", name="Changes only").focus()
    page.keyboard.press("Enter")
    page.locator("#pair-1").wait_for(state="detached")
    assert page.locator("a.dv").count() == 2


def test_a_printed_fork_says_what_is_copied(site: Site) -> None:
    story, made = forked()
    page = site.open("victor", f"/runs/{short_id(made.id)}")
    page.emulate_media(media="print")
    assert f"entries 1 to 4 are copied from run {story.run.id}" in page.locator(".print-head").inner_text()
    assert page.locator(".wf-copies").is_visible()
    decided(story)
    page.goto(f"{story.url}/replay?release=8")
    assert not page.locator("#again").is_visible() and page.locator("#compared").is_visible()
