"""Releases in a real browser: a canary by keyboard, promoted, rolled back, while somebody else watches the matrix."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from runs.models import Release, Stage, Status
from tests.pages.browser import Site
from tests.pages.journals import session
from tests.pages.test_browser_act import PHONE, forget, tab_to
from tests.pages.test_releases import release, runs

pytestmark = pytest.mark.slow


def row(page: Any, of: Release, said: str) -> None:
    page.locator(f"#rel-{of.id}", has_text=said).wait_for()


def test_a_canary_is_shared_promoted_and_rolled_back_while_the_matrix_follows(site: Site) -> None:
    current, other = release("7", Stage.CURRENT), release("8")
    worker = session("w1", serves=[current.id, other.id])
    watching = site.open("victor", "/releases")
    row(watching, other, "candidate")
    page = site.open("max", "/")
    page.keyboard.press("g")
    page.keyboard.press("v")
    page.wait_for_url("**/releases")

    tab_to(page, "Canary desk@8")  # 1. by keyboard alone
    page.keyboard.press("Enter")
    page.locator("#dialog[open]", has_text="Share new runs with desk@8?").wait_for()
    tab_to(page, "Share of new runs, in percent")
    page.keyboard.press("Control+a")
    page.keyboard.type("25")
    page.keyboard.press("Enter")
    page.locator("#dialog .err", has_text="Write a reason.").wait_for()
    forget(site, 422)
    tab_to(page, "Reason")
    page.keyboard.type("a quarter first")
    tab_to(page, "Set a share")
    page.keyboard.press("Enter")
    page.get_by_text("desk@8 takes 25 of 100 new runs.").wait_for()
    row(watching, other, "canary, 25%")
    row(watching, current, "current, 75%")
    watching.get_by_role("heading", name="Canary: desk 8").wait_for()

    page.get_by_label("Share of new runs, in percent").fill("50")  # 2. by the panel's own form
    page.get_by_role("button", name="Set the share").click()
    dialog = page.locator("#dialog")
    assert dialog.get_by_label("Share of new runs, in percent").input_value() == "50"
    confirm(page, "Set a share", "half")
    row(watching, other, "canary, 50%")

    page.get_by_role("link", name="Promote desk@8").click()  # 3. and back
    confirm(page, "Promote desk@8", "good")
    row(watching, other, "current, 100%")
    row(watching, current, "retiring")
    page.get_by_role("link", name="Roll back desk@8").click()
    confirm(page, "Roll back desk@8", "it is slow")
    row(watching, current, "current, 100%")
    row(watching, other, "candidate")

    worker.ended_at, worker.end_reason = timezone.now(), "process died"  # 4. a worker leaves, a run is stranded
    worker.save()
    runs(other, Status.WAITING_FOR_VERSION)
    watching.get_by_text("1 run is stranded on desk 8").wait_for()
    row(watching, other, "Stranded")
    session("w2", serves=[current.id, other.id])
    row(watching, other, "Served")
    watching.get_by_text("1 run is stranded on desk 8").wait_for(state="detached")


def confirm(page: Any, button: str, reason: str) -> None:
    dialog = page.locator("#dialog")
    dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=button).click()
    page.locator(".messages .callout").wait_for()


def test_what_still_needs_a_release_follows_live(site: Site) -> None:
    old = release("6", Stage.RETIRING)
    (run,) = runs(old, Status.HELD)
    page = site.open("max", f"/releases/{old.id}", **PHONE)
    page.locator("#release-needs", has_text="Not yet").wait_for()
    run.status, run.ended_at = Status.CANCELLED, timezone.now()
    run.save()
    page.locator("#release-needs", has_text="Nothing needs it").wait_for()
    page.get_by_role("link", name="Retire").click()
    page.locator("#dialog").get_by_label("Reason").fill("nothing runs on it")
    page.locator("#dialog").get_by_role("button", name="Retire desk@6").click()
    page.locator("#release-needs", has_text="It is. Nothing can be started under it.").wait_for()


def test_releases_are_staged_without_scripts(site: Site) -> None:
    current, other = release("7", Stage.CURRENT), release("8")
    session("w1", serves=[current.id, other.id])
    page = site.open("max", "/releases", java_script_enabled=False)
    page.get_by_role("link", name="Canary desk@8").click()
    page.get_by_label("Share of new runs, in percent").fill("5")
    page.get_by_label("Reason").fill("five")
    page.get_by_role("button", name="Set a share").click()
    page.get_by_text("desk@8 takes 5 of 100 new runs.").wait_for()
    page.get_by_label("Share of new runs, in percent").fill("15")
    page.get_by_role("button", name="Set the share").click()
    assert page.get_by_label("Share of new runs, in percent").input_value() == "15"
    page.get_by_role("link", name="Not now").click()
    page.get_by_role("link", name="8", exact=True).click()
    page.get_by_role("link", name="End the canary").click()
    page.get_by_label("Reason").fill("enough")
    page.get_by_role("button", name="End the canary desk@8").click()
    page.get_by_text("takes no new run any more").wait_for()
