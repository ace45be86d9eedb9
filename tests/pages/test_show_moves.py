"""What moves between releases and forks left in a journal, as the page of a run tells it: no raw body anywhere."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from journal.entries import Kind
from recovery.forking import fork_run
from runs.models import Status
from runs.short_ids import short_id
from tests.pages.journals import DIGEST, Story, release
from tests.pages.replays import newer

pytestmark = pytest.mark.django_db


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def moved(**told: Any) -> tuple[Story, int]:
    story = Story()
    body = {"release": newer().id, "from": release().id, "reason": "the old one is going", **told}
    seq = story.write(Kind.PIN, body, actor="olga")
    return story.now_is(Status.QUEUED, "pinned to refund-desk@8 by olga"), seq


def test_a_pin_names_both_releases_who_moved_it_why_and_what_was_judged(victor: Client) -> None:
    reason = {"seq": 1, "code": "schema", "says": "refund takes more than it did.", "verdict": "compatible"}
    story, seq = moved(verdict="compatible", as_of=1, code="cd" * 32, reasons=[reason])
    page = shown(victor, f"{story.url}?seq={seq}")
    row, inspector = page.split('id="inspector"')
    assert "moved by olga. the old one is going" in row and "Judged compatible at seq 1." in row
    assert "Seq 1: refund takes more than it did." in row and "&quot;release&quot;" not in row
    for part in (row, inspector):
        assert f'<a href="/releases/{release().id}">refund-desk 7</a>' in part
        assert f'<a href="/releases/{newer().id}">refund-desk 8</a>' in part
    assert "compatible, judged at" in inspector and "<dd>the old one is going</dd>" in inspector
    assert 'code <span class="hash">cdcdcdcd</span>' in inspector


def test_a_pin_to_a_release_that_is_not_known_here_and_one_that_nobody_judged_are_told(victor: Client) -> None:
    story, seq = moved(release="ef" * 32)
    page = shown(victor, f"{story.url}?seq={seq}")
    assert "to efefefef" in page and "<dt>Verdict</dt>" not in page and "Judged compatible" not in page


def test_a_fork_and_its_source_name_each_other_in_their_rows_and_once_in_the_entry(victor: Client) -> None:
    story = Story()
    story.call("lookup", order_id="o-1")
    story.result({"total_cents": 1})
    made = fork_run(run_id=story.run.id, at=1, reason="once more", actor="olga")
    name, source = short_id(made.id), short_id(story.run.id)
    page = shown(victor, story.url)
    assert "forked at seq 1 by olga. once more" in page and f'The fork is <a class="id" href="/runs/{name}">' in page
    row, inspector = shown(victor, f"/runs/{name}?seq=1").split('id="inspector"')
    assert f'Forked from <a href="/runs/{source}?seq=1">' in row and "by olga. once more" in row
    assert inspector.count("<dt>Forked from</dt>") == 1


def test_what_a_relative_has_done_is_led_to_from_the_request_and_from_the_hold(victor: Client) -> None:
    other = UUID(int=7)
    repeats = [{"run": str(other), "seq": 3, "step": 1, "outcome": "succeeded"}]
    story = Story()
    call = story.call("refund", gate="family", order_id="o-1")
    asked = {"verdict": "requested", "digest": DIGEST, "repeats": repeats}
    request = story.write(Kind.APPROVAL, asked, step=1, actor="system")
    hold = story.write(Kind.CONTROL, {"verb": "hold", "reason": "a child", "repeats": repeats}, actor="system")
    story.now_is(Status.AWAITING_APPROVAL)
    link = f'<a href="/runs/{short_id(other)}?seq=3">'
    page = shown(victor, story.url)
    assert page.count(f"Look at {link}") == 2 and "which succeeded. a child" in page
    for seq in (request, hold):
        assert f"step 1, {link}" in shown(victor, f"{story.url}?seq={seq}").split('id="inspector"')[1]
    assert "family: it is sent only after" in shown(victor, f"{story.url}?seq={call}")
