"""Promote, canary, end of a canary, rollback, retire: dialogs that say what will be written, and write it."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from runs.access import set_scope
from runs.models import AuditRecord, Release, Stage, Status
from tests.pages.conftest import signed_in
from tests.pages.journals import session
from tests.pages.test_releases import release, runs

pytestmark = pytest.mark.django_db

WHY = {"reason": "the tests are green"}


def staged(of: Release) -> tuple[str, int]:
    of.refresh_from_db()
    return of.stage, of.share


def act(client: Client, of: Release, verb: str, **given: object) -> str:
    """Opens the dialog, fills it in and sends it; where it leads to, or the page that refuses."""
    page = client.get(f"/releases/{of.id}/{verb}").content.decode()
    seen = re.search(r'name="seen" value="([^"]*)"', page)
    assert seen is not None
    answer = client.post(f"/releases/{of.id}/{verb}", {"seen": seen[1]} | WHY | given, follow=True)
    return re.sub(r"\s+", " ", answer.content.decode())


def pair() -> tuple[Release, Release]:
    """A current release and a candidate, both served."""
    current, other = release("7", Stage.CURRENT), release("8")
    session("w1", serves=[current.id, other.id])
    return current, other


def test_a_candidate_becomes_the_canary_with_its_share_and_then_current(max: Client) -> None:
    current, other = pair()
    assert "desk@8 takes 10 of 100 new runs." in act(max, other, "canary", share=10)
    assert staged(other) == (Stage.CANARY, 10)
    assert "New runs start under desk@8." in act(max, other, "promote")
    assert staged(other) == (Stage.CURRENT, 0) and staged(current) == (Stage.RETIRING, 0)
    records = AuditRecord.objects.filter(act__startswith="release.").order_by("id")
    assert [(row.act, row.actor, row.subject, row.reason) for row in records] == [
        ("release.canary", "max", "desk@8", "the tests are green"),
        ("release.promote", "max", "desk@8", "the tests are green"),
    ]


def test_a_rollback_gives_new_runs_to_the_release_before(olga: Client) -> None:
    current, other = pair()
    act(signed_in("max"), other, "promote")
    runs(other, count=2)
    page = olga.get(f"/releases/{other.id}/rollback").content.decode()
    assert "Roll back desk@8 to 7?" in page and "The 2 open runs under it keep it until they end" in page
    assert "New runs start under desk@7 again." in act(olga, other, "rollback")
    assert staged(current) == (Stage.CURRENT, 0) and staged(other) == (Stage.CANDIDATE, 0)


def test_an_operator_ends_a_canary_and_sets_no_share(olga: Client) -> None:
    _, other = pair()
    act(signed_in("max"), other, "canary", share=30)
    assert olga.get(f"/releases/{other.id}/canary").status_code == 403
    assert "takes no new run any more" in act(olga, other, "end-canary")
    assert staged(other) == (Stage.CANDIDATE, 0)


def test_what_nobody_serves_takes_new_runs_only_if_one_says_so(max: Client) -> None:
    release("7", Stage.CURRENT)
    other = release("8")
    page = act(max, other, "promote")
    assert "No live worker serves it" in page and "Nothing was written" in page
    assert staged(other) == (Stage.CANDIDATE, 0)
    act(max, other, "promote", anyway="on")
    assert staged(other) == (Stage.CURRENT, 0)


def test_what_is_needed_does_not_retire_and_says_by_what(max: Client) -> None:
    old = release("6", Stage.RETIRING)
    runs(old, Status.HELD, 2)
    page = max.get(f"/releases/{old.id}/retire").content.decode()
    assert (
        "It is still needed by this." in page and "2 runs" in page and re.search(r"<button[^>]*disabled>Retire", page)
    )
    assert "It is still needed by this." in act(max, old, "retire") and staged(old) == (Stage.RETIRING, 0)
    old.run_set.update(status=Status.DONE, ended_at=timezone.now())
    assert "is retired" in act(max, old, "retire") and staged(old) == (Stage.RETIRED, 0)


def test_what_has_changed_since_it_was_on_screen_is_not_acted_on(max: Client) -> None:
    _, other = pair()
    answer = max.post(f"/releases/{other.id}/promote", {"seen": "canary:10:::"} | WHY)
    assert answer.status_code == 409 and "It has changed meanwhile" in answer.content.decode()
    assert staged(other) == (Stage.CANDIDATE, 0)


@pytest.mark.parametrize("share", ["", "0", "101", "ten", "10.5"])
def test_a_share_is_a_whole_number_from_1_to_100(max: Client, share: str) -> None:
    _, other = pair()
    answer = max.post(f"/releases/{other.id}/canary", {"share": share} | WHY)
    assert answer.status_code == 422 and staged(other) == (Stage.CANDIDATE, 0)


def test_a_reason_is_asked_for(max: Client) -> None:
    _, other = pair()
    answer = max.post(f"/releases/{other.id}/promote", {"reason": " "})
    assert answer.status_code == 422 and "Write a reason." in answer.content.decode()


def test_a_second_canary_is_refused_by_name(max: Client) -> None:
    _, other = pair()
    act(max, other, "canary", share=10)
    third = release("9")
    assert "desk@8 is the canary, with 10%" in max.get(f"/releases/{third.id}/canary").content.decode()


def test_acts_that_are_not_possible_say_why_on_the_release_s_page(victor: Client, max: Client) -> None:
    current, other = pair()
    assert victor.get(f"/releases/{other.id}").content.decode().count("Your role does not allow this.") == 3
    page = max.get(f"/releases/{current.id}").content.decode()
    assert "No release was current before it." in page and "It is still needed: new runs of desk" in page


def test_a_release_outside_of_the_scope_does_not_exist(max: Client) -> None:
    _, other = pair()
    set_scope("max", ["another"], actor="test")
    assert "desk" not in max.get("/releases").content.decode()
    assert "desk" not in max.get("/releases/diff").content.decode()
    for path in ("", "/promote", "/canary", "/end-canary", "/rollback", "/retire"):
        assert max.get(f"/releases/{other.id}{path}").status_code == 404, path
    assert max.post(f"/releases/{other.id}/promote", WHY).status_code == 404
    assert staged(other) == (Stage.CANDIDATE, 0)
