"""The inbox in a real browser: on a desk and on a phone, by pointer, by keys alone, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from journal.entries import Kind
from journal.read import read_entries
from runs.models import Status
from tests.pages.browser import Site, told
from tests.pages.journals import DIGEST, Story
from tests.pages.waiting_items import TWO, asked, doubtful, item, listed, typed

pytestmark = pytest.mark.slow
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def verdicts(story: Story, kind: str = Kind.APPROVAL) -> list[tuple[str, str]]:
    found = read_entries(None, story.run.id, kinds=[kind])
    return [(e.actor, e.body["verdict"]) for e in found if e.body["verdict"] != "requested"]


def open_dialog(page: Any) -> Any:
    dialog = page.locator("#dialog[open]")
    dialog.wait_for()
    return dialog


@contextmanager
def refused(site: Site, status: str) -> Iterator[None]:
    """The browser complains of an answer that is meant."""
    yield
    site.complaints[:] = [said for said in site.complaints if f"status of {status}" not in said]


def test_an_approval_is_signed_on_a_phone(site: Site) -> None:
    story, seq = asked(TWO | {"quorum": 1}, expires=4_000_000_000.0)
    page = site.open("ada", "/inbox", **PHONE)
    page.locator(f'a.item[href="{item(story, seq)}"]').tap()
    page.wait_for_url(f"**{item(story, seq)}")
    assert not page.locator(".inbox-list").is_visible() and DIGEST in page.locator("#item").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("link", name="Approve refund once").tap()
    dialog = open_dialog(page)
    dialog.get_by_role("button", name="Approve refund once").tap()
    assert page.locator("#dialog").is_visible(), "the browser asks for the tick"
    dialog.get_by_label("I have read all 2 arguments above").tap()
    dialog.get_by_role("button", name="Approve refund once").tap()
    page.get_by_text("You approved it").wait_for()
    assert verdicts(story) == [("ada", "granted")]
    page.go_back()
    page.go_forward()
    assert verdicts(story) == [("ada", "granted")]


def test_an_approval_is_signed_by_keys_alone(site: Site) -> None:
    story, seq = asked()
    page = site.open("ada", "/inbox")
    page.locator("#item[data-item]").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{item(story, seq)}")
    page.locator("#item:focus").wait_for()
    for key in "ax":
        page.keyboard.press(key)
    assert verdicts(story) == [], "no shortcut writes"
    press_until(page, "Approve refund once", "Tab")
    page.keyboard.press("Enter")
    open_dialog(page)
    press_until(page, "", "Tab", "input[name=read]")
    page.keyboard.press("Space")
    press_until(page, "Approve refund once", "Tab", "#dialog button")
    page.keyboard.press("Enter")
    page.get_by_text("You approved it").wait_for()
    assert verdicts(story) == [("ada", "granted")]


def test_an_intent_is_reconciled_by_keys_alone(site: Site) -> None:
    story, seq = doubtful()
    typed()
    page = site.open("olga", item(story, seq))
    press_until(page, "Say what happened", "Tab")
    page.keyboard.press("Enter")
    open_dialog(page)
    press_until(page, "", "Tab", "#how-probe")
    page.keyboard.press("ArrowDown")
    for selector, text in (
        ('[name="result/id"]', "re-1"), ('[name="result/amount_cents"]', "24000"), ("[name=external_id]", "re_1Pq"),
        ("[name=evidence_happened]", "the ledger, row 7"),
    ):  # fmt: skip
        press_until(page, "", "Tab", selector)
        page.keyboard.type(text)
    press_until(page, "Record that it happened", "Tab", "#dialog button")
    page.keyboard.press("Enter")
    page.get_by_text("It happened: written to the journal").wait_for()
    assert verdicts(story, Kind.RECONCILE) == [("olga", "happened")]


FOCUSED = "([s]) => [document.activeElement.textContent.trim(), !s || document.activeElement.matches(s)]"


def press_until(page: Any, name: str, key: str, selector: str = "", most: int = 60) -> None:
    """Move the focus with one key until it is on the element of this text or selector."""
    for _ in range(most):
        text, matches = page.evaluate(FOCUSED, [selector])
        if matches and name in ("", text):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{name or selector} is not reached by {key}")


def test_a_flow_of_reconciling_keeps_what_was_typed_and_shows_the_answer_of_the_tool(site: Site) -> None:
    story, seq = doubtful()
    typed()
    page = site.open("olga", "/inbox")
    page.locator(f'a.item[href="{item(story, seq)}"]').click()
    page.wait_for_url(f"**{item(story, seq)}")
    page.locator("#live", has_text="Live").wait_for()
    page.get_by_role("link", name="Say what happened").click()
    dialog = open_dialog(page)
    dialog.get_by_label("It happened. Record the result").check()
    dialog.locator('[name="result/amount_cents"]').fill("a lot")
    dialog.get_by_label("How you know").first.fill("row 7")
    with refused(site, "422"):
        dialog.get_by_role("button", name="Record that it happened").click()
        dialog.locator(".err", has_text="not a whole number").wait_for()
    assert dialog.get_by_label("How you know").first.input_value() == "row 7"
    dialog.get_by_label("Ask the tool").check()
    dialog.get_by_role("button", name="Ask refund by key").click()
    page.locator(".messages", has_text="A worker asks the tool").wait_for()
    page.locator("#live", has_text="Live").wait_for()
    page.locator("#item", has_text="its answer appears here").wait_for()
    story.write(Kind.RECONCILE, {"verdict": "happened", "evidence": "asked by key, the tool found it"}, step=1)
    story.write(Kind.OBS, {"outcome": "succeeded", "result": {"id": "re-9"}, "source": "probe"}, step=1, settles=1)
    story.now_is(Status.QUEUED, "waits for a worker")
    told(story.run.id)
    page.locator("#item .raw", has_text="re-9").wait_for()
    page.locator("#item", has_text="It happened").wait_for()


def test_two_tabs_and_a_double_click_write_one_decision(site: Site) -> None:
    """E15 in a browser."""
    story, seq = asked()
    first, second = site.open("ada", item(story, seq)), site.open("max", item(story, seq))
    for page in (first, second):
        page.get_by_role("link", name="Approve refund once").click()
        open_dialog(page).get_by_label("I have read").check()
    first.get_by_role("button", name="Approve refund once").dblclick()
    first.get_by_text("You approved it").wait_for()
    with refused(site, "409"):
        second.get_by_role("button", name="Approve refund once").click()
        second.locator("#dialog .callout", has_text="ada granted it, at").wait_for()
    assert not second.get_by_role("button", name="Approve refund once").count()
    assert verdicts(story) == [("ada", "granted")]


def test_the_list_changes_in_place_and_announces_what_is_new(site: Site) -> None:
    one, two = asked(), asked()
    page = site.open("victor", "/inbox")
    page.locator("#live", has_text="Live").wait_for()
    page.locator("#item[data-item]").wait_for()
    row = page.locator(f"#i-{two[0].run.id.hex}-{two[1]}")
    before = row.bounding_box()
    one[0].write(Kind.APPROVAL, {"verdict": "granted", "digest": DIGEST}, step=1, actor="ada")
    one[0].now_is(Status.QUEUED, "granted by ada", intents=[])
    told(one[0].run.id)
    page.locator(f"#i-{one[0].run.id.hex}-{one[1]}[data-gone]").wait_for()
    page.locator("#item", has_text="Decided, not sent yet").wait_for()
    three = doubtful()
    told(three[0].run.id)
    page.locator("#inbox-newer", has_text="1 more waits").wait_for()
    page.locator("#inbox-tabs", has_text="All2").wait_for()
    assert row.bounding_box()["x"] == before["x"]
    page.get_by_text("Show them").click()
    page.locator(f"#i-{three[0].run.id.hex}-{three[1]}").wait_for()


def test_changed_arguments_stop_a_signature_in_the_dialog(site: Site) -> None:
    """E16 in a browser."""
    story, seq = asked()
    page = site.open("ada", item(story, seq))
    page.get_by_role("link", name="Approve refund once").click()
    dialog = open_dialog(page)
    dialog.get_by_label("I have read").check()
    changed = {"verdict": "edited", "args": {"order_id": "o-1", "amount_cents": 99_000}}
    story.write(Kind.APPROVAL, changed, step=1, actor="max")
    story.write(Kind.APPROVAL, {"verdict": "requested", "digest": "0a1b2c3d" * 8}, step=1)
    listed(story)
    with refused(site, "409"):
        dialog.get_by_role("button", name="Approve refund once").click()
        dialog.locator(".callout", has_text="amount_cents changed from 24000 to 99000").wait_for()
    assert not dialog.get_by_label("I have read").is_checked() and verdicts(story)[-1] == ("max", "edited")
    dialog.get_by_label("I have read").check()
    dialog.get_by_role("button", name="Approve refund once").click()
    page.get_by_text("You approved it").wait_for()
    assert verdicts(story)[-1] == ("ada", "granted")


def test_a_person_decides_without_any_script(site: Site) -> None:
    story, seq = asked()
    page = site.open("ada", item(story, seq), java_script_enabled=False)
    page.get_by_role("link", name="Approve refund once").click()
    assert DIGEST in page.content()
    page.get_by_label("I have read all 2 arguments above").check()
    page.get_by_role("button", name="Approve refund once").click()
    assert "You approved it" in page.content() and verdicts(story) == [("ada", "granted")]


def test_a_person_reconciles_without_any_script(site: Site) -> None:
    story, seq = doubtful()
    typed()
    page = site.open("ada", item(story, seq), java_script_enabled=False)
    page.get_by_role("link", name="Say what happened").click()
    page.get_by_label("It happened. Record the result").check()
    page.get_by_label("The result is not known").check()
    page.get_by_label("How you know").first.fill("the ledger, row 7")
    page.get_by_role("button", name="Record that it happened").click()
    assert "Nothing was sent." in page.content() and verdicts(story, Kind.RECONCILE) == [("ada", "happened")]
