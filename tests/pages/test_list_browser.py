"""The list of runs in a browser: rows that change in place, updates that can be held, suggestions, a whole bulk act."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.bulk import carry_out_bulk
from runs.models import BulkAct, Run, SavedView, Status
from tests.pages.browser import Site, told
from tests.pages.journals import Story, in_doubt
from tests.rig.ledger import wait_until

pytestmark = pytest.mark.slow


def live(page: Any) -> Any:
    page.locator("#live", has_text="Live").wait_for()
    return page


def row(page: Any, story: Story, text: str = "") -> Any:
    return page.locator(f"#run-{story.run.id}", has_text=text)


def test_rows_change_in_place_and_new_runs_wait_to_be_asked_for(site: Site) -> None:
    first, second = Story(), Story()
    page = live(site.open("olga", "/runs"))
    row(page, second).locator("input[name=run]").check()
    first.now_is(Status.HELD, "held by olga: a look")
    second.now_is(Status.HELD, "held by max: a look")
    for story in (first, second):
        told(story.run.id)
    row(page, first, "by olga").wait_for()
    row(page, second, "by max").wait_for()
    assert row(page, second).locator("input[name=run]").is_checked(), "what was ticked stays ticked"
    assert page.locator(".bulk-n").inner_text() == "1 selected"
    row(page, second).locator("input[name=run]").uncheck()
    third = Story()
    told(third.run.id)
    newer = page.get_by_text("1 newer run. Show it")
    newer.wait_for()
    assert row(page, third).count() == 0
    newer.click()
    row(page, third).wait_for()
    assert page.locator(".mast").count() == 1, "the results alone were fetched"
    fourth = Story()
    told(fourth.run.id)
    page.get_by_text("1 newer run. Show it").wait_for()


def test_held_updates_change_no_row_until_they_go_on(site: Site) -> None:
    story = Story()
    page = live(site.open("victor", "/runs"))
    page.get_by_role("button", name="Hold updates").click()
    story.now_is(Status.HELD, "held by olga: a look")
    told(story.run.id)
    page.locator("#rows-live", has_text="there is news").wait_for()
    assert "Queued" in row(page, story).inner_text()
    page.get_by_role("button", name="Resume updates").click()
    row(page, story, "by olga").wait_for()
    assert page.locator(".mast").count() == 1, "the results alone were fetched"


def test_a_query_is_written_with_suggestions_by_keyboard_alone(site: Site) -> None:
    held, queued = Story().now_is(Status.HELD, "held by olga: x"), Story()
    page = live(site.open("victor", "/runs?q="))
    field = page.locator("#q")
    field.focus()
    page.keyboard.type("sta")
    page.locator("#q-suggest [role=option]", has_text="status:").first.wait_for()
    page.keyboard.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == "q-suggest-1"
    page.keyboard.press("Enter")
    page.locator("#q-suggest [role=option]", has_text="quarantined").wait_for()
    page.keyboard.type("hel")
    page.keyboard.press("ArrowDown")
    page.locator("#q-suggest [aria-selected=true]", has_text="held").wait_for()
    page.keyboard.press("Enter")
    assert field.input_value() == "status:held "
    row(page, queued).wait_for(state="detached")
    row(page, held).wait_for()
    page.wait_for_url("**status%3Aheld**")
    page.keyboard.press("Escape")
    assert page.locator("#q-suggest").is_hidden()


def test_a_wrong_query_is_pointed_at_while_it_is_written_and_kept(site: Site) -> None:
    Story()
    page = live(site.open("victor", "/runs?q="))
    page.locator("#q").fill("status:lost")
    page.locator("#q-fault", has_text="There is no status lost.").wait_for()
    assert page.locator("#q-fault mark").inner_text() == "lost"
    assert page.locator("#q").get_attribute("aria-invalid") == "true"
    assert page.locator("#q").input_value() == "status:lost"
    page.locator("#q").fill("status:queued")
    page.locator("#run-rows tr").wait_for()
    assert page.locator("#q").get_attribute("aria-invalid") is None


def test_facets_and_tabs_follow_each_other_and_the_address(site: Site) -> None:
    held, queued = Story().now_is(Status.HELD, "held by olga: x"), Story()
    page = live(site.open("victor", "/runs"))
    page.locator(".facet", has_text="Held").click()
    row(page, held).wait_for(state="detached")
    assert page.locator("#views [aria-current]").count() == 0
    page.go_back()
    row(page, held).wait_for()
    row(page, queued).wait_for()


def test_a_bulk_act_from_the_keyboard_to_its_end(site: Site) -> None:
    stories = [Story() for _ in range(3)]
    silent, _ = in_doubt()
    page = live(site.open("olga", "/runs?q=status:queued"))
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.locator(".bulk-n", has_text="2 selected").wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.locator("#act-t", has_text="Cancel 2 runs?").wait_for()
    page.locator("#reason").fill("ordered twice")
    page.locator("#typed").fill("2")
    page.get_by_role("button", name="Cancel 2 runs").click()
    page.locator("#progress-t", has_text="Under way").wait_for()
    page.locator("#live", has_text="Live").wait_for()
    wait_until(lambda: not carry_out_bulk(lambda: False), "it is carried out")
    act = BulkAct.objects.get()
    for item in act.items.all():
        told(item.run_id)
    page.locator("#progress-t", has_text="Finished").wait_for()
    assert page.locator("tbody .status", has_text="Done").count() == 2
    assert Run.objects.filter(id__in=[story.run.id for story in stories], reason="cancelled by olga").count() == 2
    assert Run.objects.get(id=silent.run.id).status == Status.NEEDS_RECONCILIATION


def test_a_view_is_saved_in_a_dialog(site: Site) -> None:
    Story()
    page = live(site.open("olga", "/runs?status=queued"))
    page.get_by_role("link", name="Save view").click()
    page.locator("#view-name").fill("In line")
    page.locator("#dialog").get_by_role("button", name="Save view").click()
    page.locator("#views [aria-current]", has_text="In line").wait_for()
    assert SavedView.objects.get().query == "status=queued"


def test_without_scripts_all_of_it_works(site: Site) -> None:
    stories = [Story() for _ in range(2)]
    held = Story().now_is(Status.HELD, "held by olga: x")
    page = site.open("olga", "/runs", java_script_enabled=False)
    page.locator("#q").fill("status:queued")
    page.locator(".facet input[value=held]").uncheck()
    while page.locator(".facet input:checked").count():
        page.locator(".facet input:checked").first.uncheck()
    page.get_by_role("button", name="Search").click()
    assert page.locator("#run-rows tr").count() == 2 and row(page, held).count() == 0
    row(page, stories[0]).locator("input[name=run]").check()
    page.get_by_role("button", name="Hold", exact=True).click()
    page.locator("#reason").fill("a look")
    page.get_by_role("button", name="Hold 1 run").click()
    assert "Under way" in page.locator("#progress-t").inner_text()
    page.get_by_role("button", name="Stop: 1 not yet reached").click()
    assert "Stopped" in page.locator("#progress-t").inner_text()
