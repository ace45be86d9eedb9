"""Acts in a real browser: hold a tool, answer by keyboard alone, start by a form on a phone; for whoever cannot see."""

from __future__ import annotations

from typing import Any

import pytest

from journal.entries import Kind
from journal.read import read_entries
from runs.models import Gate, Run, Status
from tests.pages.browser import Site
from tests.pages.journals import Story, session
from tests.pages.test_agents import agent
from tests.pages.test_start_page import START, release
from tests.pages.test_tool_page import TOOL

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PLACE = {"city": {"type": "string"}, "floor": {"type": "integer"}}
ADDRESS = {"type": "object", "properties": PLACE, "required": ["city"]}


def forget(site: Site, status: int) -> None:
    """The browser tells of every answer that is no success; this one was meant to be one."""
    site.complaints[:] = [said for said in site.complaints if f"status of {status}" not in said]


def test_a_tool_is_held_and_let_go_from_its_page(site: Site) -> None:
    agent()
    session("w1")
    page = site.open("olga", TOOL)
    page.get_by_role("link", name="Hold every payout now").click()
    dialog = page.locator("#dialog")
    dialog.get_by_role("button", name="Hold every payout").click()  # without a reason
    dialog.locator(".err", has_text="Write a reason.").wait_for()
    dialog.get_by_label("Reason").fill("the bank asks")
    dialog.get_by_role("button", name="Hold every payout").click()
    page.locator("#gate", has_text="Every call of it is held: the bank asks").wait_for()
    assert Gate.objects.get(lifted_at=None).actor == "olga"
    page.get_by_role("link", name="Lift the gate").click()
    dialog.get_by_label("Reason").fill("all is well")
    dialog.get_by_role("button", name="Lift the gate").click()
    page.get_by_text("Held before").wait_for()
    assert not Gate.objects.filter(lifted_at=None).exists()
    forget(site, 422)


def test_a_question_is_answered_by_keyboard_alone(site: Site) -> None:
    story = Story()
    story.ask("Where to?", ADDRESS)
    story.now_is(Status.WAITING, "asks: Where to?")
    page = site.open("olga", f"{story.url}/acts")
    tab_to(page, "Answer")
    page.keyboard.press("Enter")
    page.locator("#dialog[open]", has_text="Where to?").wait_for()
    tab_to(page, "City")
    page.keyboard.type("Bergen")
    page.keyboard.press("Tab")
    page.keyboard.type("3.5")
    page.keyboard.press("Enter")
    page.locator("#dialog .err", has_text="not a whole number").wait_for()
    tab_to(page, "Floor")
    page.keyboard.press("Control+a")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{story.url}")
    answers = read_entries(None, story.run.id, kinds=[Kind.ANSWER])
    assert [(one.body["value"], one.actor) for one in answers] == [({"city": "Bergen", "floor": 3}, "olga")]
    forget(site, 422)


def tab_to(page: Any, name: str, exact: bool = False) -> None:
    """As often as it takes; whatever has the focus says what it is called."""
    for _ in range(60):
        page.keyboard.press("Tab")
        called = page.evaluate(
            "(e => e.labels?.[0]?.textContent ?? e.getAttribute('aria-label') ?? e.textContent)(document.activeElement)"
        )
        if called.strip() == name or (not exact and called.strip().startswith(name)):
            return
    raise AssertionError(f"{name} is not reached by the keyboard")


def test_a_run_is_started_by_its_form_on_a_phone(site: Site) -> None:
    release()
    page = site.open("olga", "/runs", **PHONE)
    page.get_by_role("link", name="Start a run").click()
    page.get_by_role("link", name="Start a run of payer").click()
    page.get_by_label("Order").fill("x-1")
    page.get_by_role("button", name="Start the run").click()
    page.locator(".err", has_text="does not match").wait_for()
    page.get_by_label("Order").fill("o-1")
    page.get_by_role("button", name="Start the run").dblclick()
    page.wait_for_url("**/runs/r-*")
    run = Run.objects.get()
    assert read_entries(None, run.id)[0].body["input"] == {"order_id": "o-1", "amount_cents": 5}
    forget(site, 422)


def test_enter_starts_the_run_and_does_not_show_it_as_json(site: Site) -> None:
    release()
    page = site.open("olga", START)
    page.get_by_label("Order").fill("o-7")
    page.get_by_label("Order").press("Enter")
    page.wait_for_url("**/runs/r-*")
    assert Run.objects.count() == 1


def test_a_run_is_cancelled_in_the_dialog_by_its_typed_id(site: Site) -> None:
    story = Story()
    page = site.open("olga", f"{story.url}/acts")
    page.get_by_role("link", name="Cancel run").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("Reason").fill("a mistake")
    dialog.get_by_label("Type the run's id").fill("r-1")
    dialog.get_by_role("button", name="Cancel run").click()
    dialog.locator(".err", has_text="This is not r-").wait_for()
    assert dialog.get_by_label("Reason").input_value() == "a mistake"
    dialog.get_by_label("Type the run's id").fill(story.url.removeprefix("/runs/"))
    dialog.get_by_role("button", name="Cancel run").click()
    page.wait_for_url(f"**{story.url}")
    assert read_entries(None, story.run.id, kinds=[Kind.CONTROL])[-1].body["reason"] == "a mistake"
    forget(site, 422)
