"""Acts in a real browser: hold a tool, answer by keyboard alone, start by a form on a phone; for whoever cannot see."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from journal.entries import Kind
from journal.read import read_entries
from runs.models import Gate, Run, Status
from tests.pages.axe import faults
from tests.pages.browser import Site
from tests.pages.journals import Story, in_doubt, session
from tests.pages.test_agents import agent, contract
from tests.pages.test_schema_form import SCHEMA
from tests.pages.test_start_page import START, release
from tests.pages.test_tool_page import TOOL

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
WIDTHS = (320, 390, 768, 992, 1440, 1920)
PLACE = {"city": {"type": "string"}, "floor": {"type": "integer"}}
ADDRESS = {"type": "object", "properties": PLACE, "required": ["city"]}
SIZES = ((1440, 900), (390, 844))


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


def tab_to(page: Any, name: str) -> None:
    """As often as it takes; whatever has the focus says what it is called."""
    for _ in range(60):
        page.keyboard.press("Tab")
        called = page.evaluate(
            "(e => e.labels?.[0]?.textContent ?? e.getAttribute('aria-label') ?? e.textContent)(document.activeElement)"
        )
        if called.strip().startswith(name):
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


def places() -> dict[str, str]:
    """Every page of acting, by a name for its picture."""
    release(takes=SCHEMA)
    agent("other", [contract("payout", limit={"at_once": 3, "key": "customer_id"})], input=SCHEMA)
    story, _ = in_doubt()
    story.call("mail", to="a@example.org")
    asks = story.ask("Where to?", SCHEMA)
    choice = story.ask("Skip it?", {"type": "string"}, options=["skip", "repair"])
    story.now_is(Status.RUNNING, session=session("w1"), awaits_signals=["go"])
    Gate.objects.create(scope="tool:payout", reason="the bank asks", actor="max")
    return {
        "acts": f"{story.url}/acts", "cancel": f"{story.url}/cancel", "hold": f"{story.url}/hold",
        "signal": f"{story.url}/signal", "note": f"{story.url}/note", "resume": f"{story.url}/resume",
        "answer": f"{story.url}/asks/{asks}/answer", "choice": f"{story.url}/asks/{choice}/answer",
        "start": START, "choose": "/start", "tool": "/agents/other/tools/payout", "agent": "/agents/other",
        "gates": "/gates", "place": "/gates/place?scope=tool:refund", "agents": "/agents",
    }  # fmt: skip


def test_axe_finds_nothing_on_any_page_in_both_themes_and_sizes_and_none_scrolls_sideways(site: Site) -> None:
    pages = places()
    page = site.open("olga", "/agents")
    pictures = os.environ.get("HOLDFAST_PICTURES")
    found: list[str] = []
    for name, address in pages.items():
        for (width, height), scheme in product(SIZES, ("light", "dark")):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            page.goto(address)
            found += [f"{name} {width} {scheme}: {fault}" for fault in faults(page)]
            if pictures:
                page.screenshot(path=str(Path(pictures) / f"{name}-{width}-{scheme}.png"), full_page=True)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{name} scrolls sideways at {width}")
    assert found == []
