"""Waits, trees and agents in a real browser: live, narrow, dark, by keyboard, and without any script."""

from __future__ import annotations

import pytest

from journal.entries import Kind
from runs.models import Gate, Status
from tests.pages.browser import Site, told
from tests.pages.everything import waiting
from tests.pages.journals import Story, session

pytestmark = pytest.mark.slow


def test_both_themes_paint_the_page_in_their_own_colours(site: Site) -> None:
    story = waiting()
    page = site.open("max", story.url)
    papers = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(story.url)
        papers.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    page.keyboard.press("t")
    assert len(papers) == 2 and page.evaluate("document.documentElement.dataset.theme") in ("light", "dark")


def test_a_child_that_goes_on_is_seen_on_its_parents_page(site: Site) -> None:
    story = Story()
    child = story.spawn().now_is(Status.QUEUED)
    story.now_is(Status.WAITING, "waits for its child")
    page = site.open("victor", story.url)
    page.locator("#live", has_text="Live").wait_for()
    child.now_is(Status.HELD, "held by olga: a look")
    page.locator("#tree", has_text="held by olga: a look").wait_for()
    page.locator("#timeline .wf-more", has_text="Held").wait_for()
    story.spawn()
    told(story.run.id)
    page.locator("#tree", has_text="2 children").wait_for()


def test_a_question_comes_and_goes_before_the_readers_eyes(site: Site) -> None:
    story = Story().now_is(Status.RUNNING, session=session("w1"))
    page = site.open("olga", story.url)
    page.locator("#live", has_text="Live").wait_for()
    seq = story.ask("Skip it?")
    story.now_is(Status.WAITING, "asks: Skip it?", session=None)
    told(story.run.id)
    page.locator("#questions").get_by_role("link", name=f"Answer seq {seq}").wait_for()
    story.write(Kind.ANSWER, {"value": "yes"}, step=1, settles=1, actor="ada")
    told(story.run.id)
    page.locator("#timeline", has_text="yes, says ada").wait_for()
    page.locator("#questions").get_by_role("link", name=f"Answer seq {seq}").wait_for(state="detached")


def test_a_person_answers_signals_and_holds_a_tool_without_any_script(site: Site) -> None:
    story = waiting()
    page = site.open("olga", story.url, java_script_enabled=False)
    page.locator("#questions").get_by_role("link", name="Answer seq 3").click()
    page.get_by_text("skip", exact=True).click()
    page.get_by_role("button", name="Answer once").click()
    assert "Your answer was written" in page.content()
    page.get_by_role("button", name="More about this run").click()
    page.get_by_role("link", name="Signal", exact=True).click()
    page.get_by_label("Payload").fill('{"pages": 3}')
    page.get_by_role("button", name="Signal").click()
    assert "Signal: written to the journal with your name." in page.content()
    page.goto("/agents/refund-desk")
    page.get_by_role("link", name="Hold every refund now").click()
    page.get_by_label("Reason").fill("the bank asks")
    page.get_by_role("button", name="Hold every refund").click()
    page.get_by_role("link", name="Lift the gate").click()
    page.get_by_label("Reason").fill("all is well")
    page.get_by_role("button", name="Lift the gate").click()
    assert "Gate tool:refund is lifted." in page.content()


def test_agents_and_answers_are_reached_by_keyboard(site: Site) -> None:
    story = waiting()
    page = site.open("olga", "/agents")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/refund-desk")
    page.goto(f"{story.url}/asks/3/answer")
    page.get_by_role("radio", name="skip").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.get_by_text("Your answer was written").wait_for()


def test_a_gate_that_takes_force_is_told_without_a_reload(site: Site) -> None:
    behind = session("w1")
    Story()
    Gate.objects.create(scope="tool:refund", reason="look", actor="olga")
    page = site.open("olga", "/agents/refund-desk")
    page.locator("#gates", has_text="In force at 0 of 1").wait_for()
    Gate.objects.update(created_at="2026-11-17T14:02:11Z")
    behind.refresh_from_db()
    page.locator("#gates", has_text="In force at 1 of 1").wait_for()
