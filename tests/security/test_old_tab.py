"""In a browser: a dialog that was opened before somebody signed out and in again in another tab."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User

from journal.read import read_head
from runs.models import Status
from tests.pages.browser import Site
from tests.pages.browser import chromium as chromium
from tests.pages.browser import site as site
from tests.pages.conftest import PASSWORD
from tests.pages.journals import Story


def test_an_old_dialog_says_that_nothing_was_written_and_its_page_opens_again(site: Site) -> None:
    # As the server's process reads it: this one's hasher is a quick one.
    hashed = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1000)
    User.objects.filter(username="max").update(password=hashed)
    story = Story().now_is(Status.RUNNING)
    old = site.open("olga", story.url)
    open_hold(old)
    old.locator("dialog[open] textarea[name=reason]").fill("nobody wants to write this twice")

    new = old.context.new_page()
    new.goto("/runs")
    new.locator("[popovertarget=menu-user]").click()
    new.get_by_role("button", name="Sign out").click()
    new.locator("#username").fill("max")
    new.locator("#password").fill(PASSWORD)
    new.get_by_role("button", name="Sign in").click()
    new.wait_for_url("**/")

    old.locator("dialog[open] footer").get_by_role("button", name="Hold").click()
    told = old.locator("dialog[open] [role=alert]")
    told.wait_for()
    said = told.inner_text()
    assert "You signed in again in another tab, as max" in said and "Nothing was written." in said
    assert "nobody wants to write this twice" in said
    assert read_head(None, story.run.id).last_seq == story.last == 1

    told.get_by_role("link", name="Open the page again").click()
    old.wait_for_url(f"**{story.url}*")
    open_hold(old)
    old.locator("dialog[open] textarea[name=reason]").fill("once more")
    old.locator("dialog[open] footer").get_by_role("button", name="Hold").click()
    old.get_by_text("once more").first.wait_for()
    assert read_head(None, story.run.id).last_seq == 2
    site.complaints[:] = [said for said in site.complaints if "403" not in said]


def open_hold(page: Any) -> None:
    page.get_by_role("button", name="More about this run").click()
    page.get_by_role("link", name="Hold", exact=True).click()
