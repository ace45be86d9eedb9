"""The five flows of whoever runs Holdfast, and one of them on real processes from end to end.

Find the stuck run and say why; reconcile a refund of which nobody knows; approve on a phone; hold a tool; answer a
question: each by pointer or finger, and by the keyboard alone. Others of them are in test_browser_inbox.py (approve,
reconcile: both ways) and test_browser_act.py (hold a tool by pointer, answer by keys).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from journal.entries import Kind
from journal.read import read_entries
from runs.models import AuditRecord, Gate, Run, Status
from runs.short_ids import short_id
from tests.crash.proof import assert_done_once
from tests.pages.browser import Site
from tests.pages.incidents import incident
from tests.pages.journals import Story, session
from tests.pages.test_browser_act import tab_to
from tests.pages.test_browser_inbox import PHONE, open_dialog
from tests.pages.waiting_items import item, listed
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.slow


def among_others() -> Run:
    """The incident, and runs that are well."""
    for status in (Status.RUNNING, Status.QUEUED, Status.DONE):
        Story().now_is(status, session=session() if status == Status.RUNNING else None)
    return incident()


def says_why(page: Any, run: Run) -> None:
    """What a person on the phone with the customer reads out: where it stands, since when, why, what was tried."""
    page.wait_for_url(f"**/runs/{short_id(run.id)}**")
    page.locator(".run-st", has_text="Needs reconciliation").wait_for()
    assert "may have happened: the lookup timed out" in page.locator(".why").inner_text()
    question = page.locator("#questions").inner_text()
    assert "Did it happen? payments.refund" in question and "its worker was lost before an answer came" in question
    assert "Asked by key 1 time, undecided" in question and "24000" in question and f"{run.id}:5" in question
    assert page.locator(".wf-row[data-pending]").count() == 1
    assert "w-eu1-9a lost" in page.locator(".wf-gap").last.inner_text()


def test_the_stuck_run_is_found_from_the_overview_and_says_why(site: Site) -> None:
    run = among_others()
    page = site.open("victor", "/")
    need = page.locator("#need-in_doubt", has_text="payments.refund")
    need.locator("a.btn").click()
    page.locator(f'a.item[href^="/inbox/{short_id(run.id)}/17"]').click()
    page.get_by_role("link", name="Open run", exact=True).click()
    says_why(page, run)


def test_the_stuck_run_is_found_by_keys_alone(site: Site) -> None:
    run = among_others()
    page = site.open("victor", "/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/inbox**")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/inbox/{short_id(run.id)}/17**")
    tab_to(page, "Open run")
    page.keyboard.press("Enter")
    says_why(page, run)
    page.keyboard.press("/")
    page.keyboard.type("desk:berlin")
    page.locator("#jump-results a", has_text=short_id(run.id)).wait_for()
    page.keyboard.press("Enter")
    says_why(page, run)


def test_a_tool_is_held_by_keys_alone(site: Site) -> None:
    Story()
    session("w1")
    page = site.open("olga", "/agents")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/refund-desk")
    tab_to(page, "refund", exact=True)
    page.keyboard.press("Enter")
    page.wait_for_url("**/tools/refund")
    tab_to(page, "Hold every refund now")
    page.keyboard.press("Enter")
    open_dialog(page)
    tab_to(page, "Reason")
    page.keyboard.type("the bank asks")
    tab_to(page, "Hold every refund", exact=True)
    page.keyboard.press("Enter")
    page.locator("#gate", has_text="Every call of it is held: the bank asks").wait_for()
    assert [(gate.scope, gate.actor) for gate in Gate.objects.filter(lifted_at=None)] == [("tool:refund", "olga")]


def test_a_question_is_answered_on_a_phone(site: Site) -> None:
    story = Story()
    seq = story.ask("Skip it, or repair it?", options=["skip", "repair"])
    listed(story.now_is(Status.WAITING, "asks: Skip it, or repair it?"))
    page = site.open("olga", "/inbox", **PHONE)
    page.locator(f'a.item[href="{item(story, seq)}"]').tap()
    page.get_by_role("link", name="Answer", exact=True).tap()
    dialog = open_dialog(page)
    dialog.get_by_text("repair", exact=True).tap()
    dialog.get_by_role("button", name="Answer once").tap()
    page.wait_for_url(f"**{story.url}")
    answers = read_entries(None, story.run.id, kinds=[Kind.ANSWER])
    assert [(one.body["value"], one.actor) for one in answers] == [("repair", "olga")]


def test_workers_die_in_the_middle_of_effects_and_an_operator_settles_both_from_the_inbox(
    fleet: Fleet, ledger: Ledger, site: Site
) -> None:
    """Real workers, a sweeper, a console: one effect that its tool can be asked about, one that nobody can."""
    first = fleet.worker(crash="after-effect")
    transfer = start("probed", {})
    fleet.bury(first)
    second = fleet.worker()
    letter = start("slow-unkeyed", {"seconds": 100})
    fleet.until(lambda: ledger.acted(f"{letter}:1") == 1, "the letter is on its way")
    fleet.kill_holder(letter)
    fleet.bury(second)
    ledger.fault("status", "fail")
    fleet.worker()
    fleet.sweeper()
    for run_id in (transfer, letter):
        assert fleet.rests(run_id).status == "needs_reconciliation"
    ledger.clear_faults()

    page = site.open("olga", "/inbox")
    in_doubt(page, transfer)
    open_dialog(page).get_by_label("Ask the tool").check()
    page.get_by_role("button", name="Ask transfer by key").click()
    page.locator("#item", has_text="Settled at").wait_for()
    asked = fleet.rests(transfer)
    assert_done_once(ledger, asked)

    page.goto("/inbox")
    in_doubt(page, letter)
    dialog = open_dialog(page)
    dialog.get_by_label("It happened. Record the result").check()
    dialog.get_by_label("Result as the tool returned it").fill(json.dumps({"id": "mail-1"}))
    dialog.get_by_label("How you know").first.fill("it is in the outbox")
    dialog.get_by_role("button", name="Record that it happened").click()
    page.get_by_text("It happened: written to the journal").wait_for()
    told = fleet.rests(letter)
    assert_done_once(ledger, told)
    assert read_entries(None, letter)[-1].body == {"result": {"id": "mail-1"}}

    acts = AuditRecord.objects.filter(act="intent.reconcile").order_by("at")
    assert [(one.run, one.actor, one.door) for one in acts] == [(transfer, "olga", "page"), (letter, "olga", "page")]
    page.goto("/audit?q=who:olga")
    for run_id in (transfer, letter):
        row = page.locator("tbody tr", has_text=short_id(run_id))
        assert "Reconciled" in row.inner_text()


def in_doubt(page: Any, run_id: Any) -> None:
    """From the list of the inbox to the question what happened."""
    page.locator(f'a.item[href^="/inbox/{short_id(run_id)}/"]').click()
    page.locator("#item", has_text="Did it happen?").get_by_text(short_id(run_id)).first.wait_for()
    page.locator("#live", has_text="Live").wait_for()
    page.get_by_role("link", name="Say what happened").click()
