"""The state at any seq, folded from the journal up to there, and what differs from another."""

import pytest
from django.test import Client

from journal.entries import Kind
from runs.models import Status
from runs.pages.run_page import Reading
from runs.pages.told_state import told_state
from runs.state import fold
from tests.pages.incidents import incident, url_of
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


def state_at(client: Client, story: Story, at: int, **more: int) -> str:
    query = "".join(f"&{name}={value}" for name, value in more.items())
    return client.get(f"{story.url}/state?at={at}{query}").content.decode()


def test_the_state_at_a_seq_knows_nothing_of_what_came_after(victor: Client) -> None:
    story = Story()
    story.plan(plan=[{"next": "refund"}])
    seq = story.call(order_id="o-1")
    story.result({"id": "refund-1"})
    story.done(result={"refunded": True})
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    then = state_at(victor, story, seq)
    assert f"Fold of entries 1 to {seq} of 5" in then and "sent, no result" in then and "refund-1" not in then
    assert "was sent and not answered yet" in then and ">Running<" in then
    assert "refund-1" in state_at(victor, story, seq + 1)
    assert ">Done<" in state_at(victor, story, 5)


def test_a_seq_beyond_the_journal_is_taken_for_its_nearest(victor: Client) -> None:
    story = Story()
    assert "Fold of entries 1 to 1 of 1" in state_at(victor, story, 99)
    assert "Fold of entries 1 to 1 of 1" in state_at(victor, story, 0)
    assert "Fold of entries 1 to 1" in victor.get(f"{story.url}?at=nonsense&tab=state").content.decode()


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        (Kind.CONTROL, {"verb": "hold", "reason": "a look"}, Status.HELD),
        (Kind.CONTROL, {"verb": "quarantine", "reason": "crashed"}, Status.QUARANTINED),
        (Kind.DONE, {"error": {"reason": "no"}}, Status.FAILED),
        (Kind.DONE, {"cancelled": "no"}, Status.CANCELLED),
        (Kind.NOTE, {"text": "nothing"}, Status.RUNNING),
    ],
)
def test_the_status_of_then_is_what_its_entries_say(kind: str, body: dict[str, object], status: str) -> None:
    story = Story()
    story.write(kind, body)
    assert told_state(Reading(story.run.id).refresh().state).status == status


def test_what_waits_then_is_told_by_kind(victor: Client) -> None:
    story = Story()
    story.plan()
    story.call(gate="approval")
    assert "Waiting approval" in state_at(victor, story, story.last)
    other = Story()
    other.ask("Skip it?")
    other.write(Kind.ANSWER, {"value": "no"}, step=1, settles=1, actor="olga")
    other.write(Kind.SIGNAL, {"name": "go", "payload": 7}, actor="max")
    assert ">Waiting<" in state_at(victor, other, 2)
    then = state_at(victor, other, other.last)
    assert "Skip it?" in then and "taken by no step yet" in then


def test_two_states_differ_by_path_with_what_was_added_changed_and_removed(victor: Client) -> None:
    story = Story()
    story.plan(plan=[{"next": "refund"}, {"later": "mail"}])
    story.call(order_id="o-1", amount_cents=24_000)
    story.plan(plan=[{"done": "refund"}])
    story.result({"id": "refund-1"})
    then = state_at(victor, story, 5, **{"with": 2})
    assert "From seq 2 to seq 5" in then
    for what, path in (("added", "steps.1.result.id"), ("removed", "plan[1].later"), ("changed", "frontier")):
        begin = then.index(f'<span class="path">{path}</span>')
        assert f'data-d="{what}"' in then[then.rindex("<li", 0, begin) : begin], path
    assert state_at(victor, story, 2, **{"with": 5}).count("data-d=") == then.count("data-d=")
    assert "Nothing differs." in state_at(victor, story, 5, **{"with": 5})


def test_values_that_only_look_alike_differ() -> None:
    story = Story()
    story.call(n=1)
    story.result(1)
    entries = Reading(story.run.id).refresh().entries
    before = fold(story.run.id, entries[:2])
    after = fold(story.run.id, entries)
    after.input = {"order_id": True}
    before.input = {"order_id": 1}
    found = {d.path: (d.what, d.before, d.after) for d in told_state(before, after).compared.differences}  # type: ignore[union-attr]
    assert found["input.order_id"] == ("changed", "1", "true")
    assert found["steps.1.result"] == ("added", "", "1")


def test_the_address_of_a_state_shows_it_and_greys_what_came_after(victor: Client) -> None:
    run = incident()
    page = victor.get(f"{url_of(run)}?at=9&with=12").content.decode()
    assert "Fold of entries 1 to 9 of 24" in page and "From seq 9 to seq 12" in page
    assert page.count("data-after") == 24 - 9 and 'value="9" aria-valuetext="State at seq 9"' in page
    assert 'href="?seq=17&amp;at=10&amp;with=12"' in page and 'href="?seq=17&amp;at=8&amp;with=12"' in page


def test_a_stateless_run_has_no_state_to_fold(victor: Client) -> None:
    from journal.append import new_run_id
    from journal.encoding import encode
    from runs.models import Run
    from runs.short_ids import short_id
    from tests.pages.journals import release

    run = Run.objects.create(id=new_run_id(), agent="classify", release=release(), input=encode({}))
    assert victor.get(f"/runs/{short_id(run.id)}/state?at=1").status_code == 404
    assert victor.get(f"/runs/{short_id(run.id)}/entries/1").status_code == 404
    assert b"keeps no journal" in victor.get(f"/runs/{short_id(run.id)}/journal").content
