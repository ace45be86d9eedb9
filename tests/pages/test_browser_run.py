"""A run's page in a real browser: the ruler, the tabs, what the stream sends, print, and who cannot see or point."""

from __future__ import annotations

import pytest

from runs.models import Status
from tests.pages.browser import Site, told
from tests.pages.incidents import incident, url_of
from tests.pages.journals import Story, session

pytestmark = pytest.mark.slow


def test_the_ruler_moves_by_key_and_the_state_follows_in_the_inspector_and_the_address(site: Site) -> None:
    run = incident()
    page = site.open("victor", url_of(run))
    page.keyboard.press("[")
    page.locator("#p-state", has_text="Fold of entries 1 to 23").wait_for()
    page.wait_for_url("**?seq=17&at=23")
    assert page.locator("#ruler-at").text_content() == "23"
    assert page.locator("#row-24").get_attribute("data-after") == ""
    page.locator("#seq").fill("9")
    page.locator("#p-state", has_text="Fold of entries 1 to 9").wait_for()
    page.keyboard.press("]")
    page.locator("#p-state", has_text="Fold of entries 1 to 10").wait_for()
    page.get_by_label("Compare with seq").fill("12")
    page.get_by_role("button", name="Compare").click()
    page.locator(".changes", has_text="steps.3.outcome").wait_for()
    page.wait_for_url("**?seq=17&at=10&with=12")
    page.reload()
    assert page.locator(".changes", has_text="steps.3.outcome").count() == 1


def test_the_page_reads_without_any_script(site: Site) -> None:
    run = incident()
    page = site.open("victor", url_of(run), java_script_enabled=False)
    page.get_by_role("link", name="One entry back").click()
    assert "Fold of entries 1 to 23" in page.locator("#p-state").inner_text()
    page.get_by_role("link", name="Pointers").click()
    assert "keeps nothing outside" in page.locator("#inspector").inner_text()
    page.get_by_role("link", name="Seq", exact=True).click()
    page.locator("#row-5").click()
    assert "seq 5" in page.locator("#inspector h2").inner_text() and "axis=seq" in page.url
    page.get_by_role("link", name="Next entry, seq 6").click()
    assert "seq 6" in page.locator("#inspector h2").inner_text()


def test_the_stream_appends_what_is_new_and_leaves_the_rows_before_it_alone(site: Site) -> None:
    story = Story().now_is(Status.RUNNING, session=session("w1"))
    for n in range(30):
        story.call(order_id=f"o-{n}")
        story.result({"n": n})
    page = site.open("victor", story.url)
    page.locator("#live", has_text="Live").wait_for()
    page.evaluate("document.querySelectorAll('#timeline li, #timeline').forEach((e) => { e.kept = true })")
    for n in range(3):
        seq = story.call(order_id=f"new-{n}")
        told(story.run.id)
        page.locator(f"#row-{seq}").wait_for()
        seq = story.result({"n": n})
        told(story.run.id)
        page.locator(f"#row-{seq}").wait_for()
    assert page.evaluate("document.getElementById('timeline').kept") is True
    assert page.evaluate("[...document.querySelectorAll('[id^=line-]')].filter((e) => !e.kept).length") == 6
    assert page.evaluate("[...document.querySelectorAll('[id^=line-]')].map((e) => +e.id.slice(5))") == [
        *range(1, story.last + 1)
    ]
    assert page.locator("#seq").get_attribute("max") == str(story.last)


def test_the_exact_json_is_copied(site: Site) -> None:
    run = incident()
    page = site.open("victor", f"{url_of(run)}?seq=17", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as JSON").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert '"amount": 24000' in copied and '"kind": "TOOL_CALL"' in copied
    page.get_by_text("As curl").click()
    page.get_by_role("button", name="Copy the call for state at 24").click()
    page.wait_for_function("navigator.clipboard.readText().then((t) => t.includes('/state?at=24'))")


def test_printed_it_is_an_incident_record(site: Site) -> None:
    run = incident()
    page = site.open("victor", url_of(run), color_scheme="dark")
    page.emulate_media(media="print")
    for gone in (".mast", "#ruler", ".foot", ".run-head .actions", "#inspector .tabs"):
        assert not page.locator(gone).first.is_visible(), gone
    for there in (".print-head", "#questions .callout", "#timeline .wf-lane >> nth=3", "#inspector"):
        assert page.locator(there).first.is_visible(), there
    assert "Journal head seq 24, sha256" in page.locator(".print-head").inner_text()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")
