"""A conversation in a real browser: what the stream sends, keys, both themes and every width."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from runs.loops.under_way import tell
from runs.models import Status
from tests.pages.axe import faults
from tests.pages.browser import Site, told
from tests.pages.conversations import Conversation, called, support, text, thinking
from tests.pages.journals import session
from tests.pages.test_everywhere import WIDER, keep_picture

pytestmark = pytest.mark.slow


def arrives(story: Conversation, attempt: int, said: str, thought: str = "") -> None:
    with connection.cursor() as cursor:
        tell(cursor, story.run.id, 1, attempt, said, thought)
    told(story.run.id)


def test_new_turns_come_at_the_end_and_a_call_changes_in_place(site: Site) -> None:
    story = Conversation().now_is(Status.RUNNING, session=session("w1"))
    story.answers(text("Let me look."), called("lookup_order", order="o-1"))
    call = story.call("lookup_order", order="o-1")
    page = site.open("victor", f"{story.url}?view=chat")
    page.locator("#live", has_text="Live").wait_for()
    page.evaluate("document.querySelectorAll('.turn').forEach((e) => { e.kept = true })")
    page.locator(f"#turn-{call}", has_text="Under way").wait_for()
    story.result({"state": "lost"})
    told(story.run.id)
    page.locator(f"#turn-{call} .turn-result", has_text="lost").wait_for()
    seq = story.answers(text("It is lost."))
    told(story.run.id)
    page.locator(f"#turn-{seq}", has_text="It is lost.").wait_for()
    assert page.evaluate("[...document.querySelectorAll('#turns > .turn')].map((e) => [+e.id.slice(5), !!e.kept])") == [
        [1, True], [3, True], [call, True], [seq, False],
    ]  # fmt: skip


def test_an_answer_is_read_while_it_arrives_and_what_was_unfolded_stays_so(site: Site) -> None:
    story = Conversation().now_is(Status.RUNNING, session=session("w1"))
    attempt = story.asks()
    arrives(story, attempt, "", "Hm")
    page = site.open("victor", f"{story.url}?view=chat")
    page.locator("#under-way", has_text="Hm").wait_for()
    page.locator("#live", has_text="Live").wait_for()
    arrives(story, attempt, "Let", "Hm, the order")
    page.locator("#under-way", has_text="Let").wait_for()
    fold = page.locator("#under-way details")
    if fold.get_attribute("open") is None:
        page.locator("#under-way summary").click()
    arrives(story, attempt, "Let me look.", "Hm, the order is lost")
    page.locator("#under-way", has_text="Let me look.").wait_for()
    assert fold.get_attribute("open") is not None and "is lost" in fold.inner_text()
    seq = story.answers(thinking("Hm, the order is lost"), text("Let me look."))
    told(story.run.id)
    page.locator(f"#turn-{seq}").wait_for()
    page.locator("#under-way").wait_for(state="hidden")
    assert page.locator("#chat").inner_text().count("Let me look.") == 1


def test_keys_move_from_turn_to_turn_and_the_inspector_shows_the_entry(site: Site) -> None:
    story = support()
    page = site.open("victor", f"{story.url}?view=chat&seq=1")
    page.locator("#live", has_text="Live").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "row-3"
    page.keyboard.press("Enter")
    page.locator("#inspector h2", has_text="seq 3").wait_for()
    page.wait_for_url("**?view=chat&seq=3")
    page.locator("#row-3[aria-current]").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_read_it_at_every_width(site: Site, theme: str) -> None:
    story = support().now_is(Status.RUNNING, session=session("w1"))
    arrives(story, story.last, "Half of it is **on its way**:\n\n- 120.00\n", "They accept half.")
    page: Any = site.open("max", f"{story.url}?view=chat", color_scheme=theme)
    for width in (1440, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(WIDER) == [], width
        assert faults(page) == [], width
        keep_picture(page, f"chat-{width}-{theme}")
