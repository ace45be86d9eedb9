"""A drain from the keyboard, under arrivals, on real processes; its clock, and what moves on the page by itself."""

from __future__ import annotations

from typing import Any

import pytest

from journal.read import read_head
from recovery.drains import advance_drains, order_drain
from recovery.models import Drain, Phase
from runs.models import AuditRecord, Run, Status
from tests.pages.axe import faults
from tests.pages.browser import Site
from tests.pages.journals import Story, session
from tests.pages.test_browser_act import tab_to
from tests.pages.test_browser_inbox import PHONE, open_dialog
from tests.rig.crew import start
from tests.rig.fleet import Fleet

pytestmark = pytest.mark.slow


def ordered_by_keys(page: Any) -> None:
    """From the first key to the order: nothing but Tab, arrows, letters and Enter."""
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/drains")
    tab_to(page, "One worker")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.locator("#blast", has_text="agent:").wait_for()
    tab_to(page, "Agent", exact=True)
    page.keyboard.type("slow")
    page.locator("#blast", has_text="agent:slow").wait_for()
    tab_to(page, "Reason, kept in the audit list")
    page.keyboard.type("deploy 8")
    tab_to(page, "Drain 3 runs on 1 worker")
    page.keyboard.press("Enter")
    assert "Drain 3 runs on 1 worker?" in open_dialog(page).inner_text()
    tab_to(page, "Drain 3 runs on 1 worker")
    page.keyboard.press("Enter")
    page.locator(".drain-live").wait_for()


def test_a_drain_is_ordered_by_keys_under_arrivals_and_watched_until_it_is_empty(fleet: Fleet, site: Site) -> None:
    fleet.worker()
    fleet.sweeper()
    flying = [start("slow", {"seconds": 20}) for _ in range(3)]
    fleet.until(lambda: Run.objects.filter(id__in=flying, session__isnull=False).count() == 3, "three are in flight")
    page = site.open("olga", "/")
    ordered_by_keys(page)
    panel = page.locator(".drain-live")
    assert "0 of 3 runs at a checkpoint" in panel.inner_text() and page.locator(".drain-runs tbody tr").count() == 3
    assert "slow, step 1" in panel.inner_text() and "to the deadline" in panel.inner_text()

    fleet.until(lambda: advance_drains() is not None and Drain.objects.get().phase != Phase.STOPPING, "all have heard")
    came = [start("slow", {"seconds": 0}) for _ in range(5)]
    page.locator(".drain-live", has_text="3 of 3 runs at a checkpoint").wait_for()
    page.locator(".drain-live", has_text="Empty in time").wait_for()
    page.locator("#drain-history", has_text="3 of 3").wait_for()
    page.locator("#conditions", has_text="no run is left in flight").wait_for()
    assert Drain.objects.get().phase == Phase.DONE
    assert [read_head(None, run_id).last_seq for run_id in came] == [1] * 5  # none of them was begun
    assert not Run.objects.filter(id__in=came, session__isnull=False).exists()

    page.get_by_role("link", name="Lift the gate").click()
    dialog = open_dialog(page)
    dialog.get_by_label("Reason").fill("8 is out")
    dialog.get_by_role("button", name="Lift the gate").click()
    page.locator("#drain-report", has_text="Lifted by olga").wait_for()
    ids = [*flying, *came]  # those at the gate rest there until a sweep has seen that it is lifted
    fleet.until(lambda: Run.objects.filter(id__in=ids, status=Status.DONE).count() == len(ids), "all go on and end")


def busy() -> Drain:
    worker = session("w1")
    story = Story()
    story.call(order_id="o-1")
    story.now_is(Status.RUNNING, session=worker, epoch=1)
    return order_drain(scope="worker:w1", timeout=600, reason="kernel patch", actor="max")


def test_the_clock_runs_a_deadline_is_extended_and_the_drain_called_off(site: Site) -> None:
    drain = busy()
    page = site.open("olga", "/drains")
    clock = page.locator(f"#drain-{drain.pk}-clock .big")
    told = clock.inner_text()
    page.wait_for_function("([id, told]) => document.querySelector(id).innerText !== told", arg=[
        f"#drain-{drain.pk}-clock .big", told,
    ])  # fmt: skip
    page.get_by_role("link", name="Extend").click()
    dialog = open_dialog(page)
    dialog.get_by_label("More time").select_option("600")
    dialog.get_by_label("Reason").fill("one is slow")
    dialog.get_by_role("button", name="Extend the deadline").click()
    page.locator("#drain-report", has_text="moved by 10 m 00 s by olga").wait_for()
    assert clock.inner_text().startswith(("19:", "20:"))
    page.get_by_role("link", name="Call off drain").click()
    dialog = open_dialog(page)
    dialog.get_by_label("Reason").fill("not today")
    dialog.get_by_role("button", name="Call off the drain").click()
    page.locator("#drain-report", has_text="Called off").wait_for()
    page.locator("#conditions").wait_for(state="hidden")
    acts = AuditRecord.objects.filter(act__startswith="drain.").order_by("id").values_list("act", "actor")
    assert list(acts) == [("drain.order", "max"), ("drain.extend", "olga"), ("drain.lift", "olga")]


def test_what_somebody_else_orders_comes_onto_the_page_by_itself(site: Site) -> None:
    session("w1")
    page = site.open("victor", "/drains", **PHONE)
    page.locator("#live[data-live=on]").wait_for(state="attached")
    drain = busy()
    page.locator(f"#drain-{drain.pk}", has_text="0 of 1 run at a checkpoint").wait_for()
    page.locator("#drain-history", has_text="kernel patch").wait_for()
    page.locator("#conditions", has_text="Draining worker:w1").wait_for()
    assert faults(page) == []


def test_a_missing_reason_is_said_in_the_form_and_nothing_is_ordered(site: Site) -> None:
    session("w1")
    page = site.open("olga", "/drains")
    page.locator("#drain-button").click()
    page.locator("#start .err", has_text="Write a reason").wait_for()
    assert not page.locator("#dialog[open]").count() and not Drain.objects.exists()
    site.complaints[:] = [said for said in site.complaints if "422" not in said]


def test_without_scripts_it_is_previewed_confirmed_and_ordered(site: Site) -> None:
    session("w1")
    page = site.open("olga", "/drains?scope=worker:w1", java_script_enabled=False)
    page.get_by_label("Deadline").select_option("30")
    page.get_by_role("button", name="Preview").click()
    assert "The deadline is below the longest timeout" in page.locator("#blast").inner_text()
    page.get_by_label("Reason, kept in the audit list").fill("kernel patch")
    page.get_by_role("button", name="Drain 0 runs on 1 worker").click()
    page.get_by_role("button", name="Drain 0 runs on 1 worker").click()
    page.locator(".drain-live", has_text="worker:w1").wait_for()
    assert Drain.objects.get().owner == "olga"
