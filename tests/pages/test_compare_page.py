"""A fork beside its source: steps that are copied, the same, other, only here; how both ended."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from journal.append import append_person
from journal.entries import Draft, Kind
from recovery.forking import fork_run
from runs.models import Run
from runs.short_ids import short_id
from tests.pages.journals import DIGEST, Story
from tests.pages.test_fork_page import refunded

pytestmark = pytest.mark.django_db


def on_its_own(run: Run, tool: str, step: int, result: Any = None, **args: Any) -> None:
    """A step of the fork's own."""
    key = f"{run.id}:{step}"
    body = {"tool": tool, "args": args, "key": key, "effect": "keyed", "digest": DIGEST, "gate": None}
    obs = {"outcome": "succeeded", "result": result, "source": "worker"}
    append_person(
        run.id,
        [
            Draft(Kind.PLAN, {"seen": 1}),
            Draft(Kind.TOOL_CALL, body, step=step),
            Draft(Kind.OBS, obs, step=step, settles=step),
        ],
        request_id=None,
        actor="worker",
    )


def forked() -> tuple[Story, Run]:
    """The fork refunds less, and writes no letter."""
    story = refunded()
    made = fork_run(run_id=story.run.id, at=4, reason="the amount was wrong", actor="olga")
    on_its_own(made, "refund", 2, {"id": "re-2"}, order_id="o-1", amount_cents=22_800)
    append_person(made.id, [Draft(Kind.DONE, {"result": False})], request_id=None, actor="worker")
    return story, made


def shown(client: Client, address: str, status: int = 200, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == status
    return answer.content.decode()


def test_steps_are_told_apart_and_the_first_that_differs_is_shown(victor: Client) -> None:
    story, made = forked()
    page = shown(victor, f"/runs/{short_id(made.id)}/compare")
    assert "1 copied, 1 differs, 1 only in the source" in page and "entries 1 to 4" in page
    assert "Step 2: differs" in page and "<b>24000</b>" in page and "<b>22800</b>" in page
    assert f"Only in {short_id(story.run.id)}" in page and "move differs" in page


def test_how_both_ended_stands_side_by_side(victor: Client) -> None:
    _, made = forked()
    page = shown(victor, f"/runs/{short_id(made.id)}/compare").partition("How they ended")[2]
    assert "result: <b>true</b>" in page and "result: <b>false</b>" in page


def test_from_the_source_the_same_two_are_compared(victor: Client) -> None:
    story, made = forked()
    page = shown(victor, f"{story.url}/compare?step=3")
    assert f"{short_id(made.id)} beside {short_id(story.run.id)}" in page
    assert f"Step 3: only in {short_id(story.run.id)}" in page and "It has no step 3." in page


def test_what_is_alike_can_be_left_out_and_a_row_is_asked_for_by_itself(victor: Client) -> None:
    story, _ = forked()
    part = shown(victor, f"{story.url}/compare?show=changes", **{"HX-Request": "true", "HX-Target": "div#compared"})
    assert "<html" not in part and "pair-1" not in part and "pair-2" in part


def test_two_forks_of_one_run_are_compared_too(victor: Client) -> None:
    story, made = forked()
    other = fork_run(run_id=story.run.id, at=7, reason="again", actor="olga")
    page = shown(victor, f"/runs/{short_id(other.id)}/compare?with={short_id(made.id)}")
    assert "Two runs of one family of forks" in page and "Not both yet" in page
    assert 'name="with"' in page and "entries 1 to 4" in page


def test_who_is_no_relative_is_not_compared(victor: Client) -> None:
    story, _ = forked()
    assert "this is none" in shown(victor, f"{story.url}/compare?with={Story().run.id}", 404)
    assert "has none" in shown(victor, f"{Story().url}/compare", 404)
