"""What a run's page tells of waits: for people, signals, time and other runs."""

import time

import pytest
from django.test import Client

from journal.entries import Kind
from runs.models import Permit, Run, Status
from runs.short_ids import short_id
from tests.pages.journals import Story, session

pytestmark = pytest.mark.django_db


def page_of(client: Client, story: Story, seq: int | None = None) -> str:
    return client.get(story.url + (f"?seq={seq}" if seq else "")).content.decode()


def row_of(page: str, seq: int) -> str:
    """One entry's line in the timeline, with what stands below it."""
    begin = page.index(f'id="row-{seq}"')
    return page[begin : page.index("</li>", begin)]


def test_an_open_question_stands_first_with_its_answer_button_for_who_may(olga: Client, victor: Client) -> None:
    story = Story()
    seq = story.ask("Skip it, or repair it?", options=["skip", "repair"], due=time.time() + 600)
    story.now_is(Status.WAITING, "asks: Skip it, or repair it?")
    page = page_of(olga, story)
    assert page.index("Skip it, or repair it?</h2>") < page.index('id="timeline"')
    assert f"{story.url}/asks/{seq}/answer" in page and "Expires" in row_of(page, seq)
    assert ">skip</span>" in row_of(page, seq) and "Goes on with an answer." in page
    assert f"/asks/{seq}/answer" not in page_of(victor, story)


def test_an_answer_tells_what_was_said_and_by_whom(victor: Client) -> None:
    story = Story()
    seq = story.ask("Skip it?")
    answer = story.write(Kind.ANSWER, {"value": "repair"}, step=1, settles=1, actor="olga")
    page = page_of(victor, story, seq)
    assert "repair, says olga" in row_of(page, answer) and 'data-b="ask"' in row_of(page, answer)
    assert f'succeeded at <a href="?seq={answer}">' in page and "by olga" in page
    assert "question</a>" not in page and "Skip it?</h2>" not in page


def test_a_question_that_expired_says_that_nobody_answered(victor: Client) -> None:
    story = Story()
    story.ask("Anybody?", due=1.0)
    seq = story.write(Kind.ANSWER, {"expired": True}, step=1, settles=1, actor="system")
    assert "nobody answered in time" in row_of(page_of(victor, story), seq)


def test_a_signal_stands_with_the_step_that_waited_for_it(victor: Client) -> None:
    story = Story()
    wait = story.opens(Kind.TIMER, verb="set", signal="confirmed")
    other = story.opens(Kind.TIMER, verb="set", seconds=60, due=time.time() + 60)
    came = story.write(Kind.SIGNAL, {"name": "confirmed", "payload": {"pages": 3}}, actor="traveller")
    page = page_of(victor, story, came)
    assert page.index(f'id="row-{wait}"') < page.index(f'id="row-{came}"') < page.index(f'id="row-{other}"')
    assert "confirmed: {pages: 3}, from traveller" in row_of(page, came) and 'data-b="timer"' in row_of(page, came)
    assert "by step 1" in page


def test_an_early_signal_is_kept_and_later_told_who_took_it(victor: Client) -> None:
    story = Story()
    early = story.write(Kind.SIGNAL, {"name": "go", "payload": 7}, actor="max")
    assert "Kept: no step has waited for it yet." in row_of(page_of(victor, story), early)
    wait = story.opens(Kind.TIMER, verb="set", signal="go")
    page = page_of(victor, story)
    assert "Came early. Taken by step 1." in row_of(page, early)
    assert "Taken from an earlier signal: 7" in row_of(page, wait)


def test_a_signal_that_nobody_took_before_the_end_says_so(victor: Client) -> None:
    story = Story()
    seq = story.write(Kind.SIGNAL, {"name": "go"})
    story.done(result=None)
    story.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    assert "No step ever took it." in row_of(page_of(victor, story), seq)


def test_a_first_tells_which_of_its_waits_came_first_and_that_the_others_are_withdrawn(victor: Client) -> None:
    story = Story()
    story.plan(join="first")
    story.opens(Kind.TIMER, verb="set", signal="go")
    story.opens(Kind.TIMER, verb="set", seconds=60, due=time.time() + 60)
    page = page_of(victor, story.now_is(Status.WAITING, "waits"))
    assert "1 of 2, the first ends it" in page and "Goes on with the signal go or its time." in page
    story.write(Kind.SIGNAL, {"name": "go"})
    story.result(outcome="cancelled", error="another came first")
    page = page_of(victor, story)
    assert "1 of 2, came first" in page and "2 of 2, withdrawn" in page


def test_children_are_linked_with_their_status_as_it_is_now(victor: Client) -> None:
    story = Story()
    one, two = story.spawn(), story.spawn()
    one.now_is(Status.RUNNING)
    deep = one.spawn().now_is(Status.HELD, "held by olga: a look")
    two.now_is(Status.DONE, ended_at="2026-11-17T14:02:11Z")
    ended = {"verb": "ended", "child": str(two.run.id), "outcome": "succeeded", "result": {"n": 2}}
    seq = story.write(Kind.CHILD, ended, step=2, settles=2)
    page = page_of(victor, story)
    assert one.url in row_of(page, 2) and "Running" in row_of(page, 2)
    assert "succeeded. {n: 2}" in row_of(page, seq) and 'data-b="child"' in row_of(page, seq)
    tree = page[page.index('id="tree"') : page.index('id="timeline"')]
    assert "2 children and 1 below" in tree and f"/runs?parent={short_id(story.run.id)}" in tree
    assert tree.index(one.url) < tree.index(deep.url) < tree.index(two.url)
    assert 'data-depth="2"' in tree and "held by olga: a look" in tree and "{n: 2}" in tree
    assert f"Below it, {deep.run.agent} {short_id(deep.run.id)} is held: held by olga: a look." in page


def test_a_child_leads_to_its_ancestors(victor: Client) -> None:
    root = Story()
    middle = root.spawn()
    leaf = middle.spawn()
    page = page_of(victor, leaf)
    head = page[page.index('class="crumb"') : page.index("<h1")]
    assert head.index(root.url) < head.index(middle.url)
    assert "Child of" in page and "step 1" in page


def test_a_tree_of_many_shows_the_first_and_counts_the_rest(victor: Client) -> None:
    story = Story()
    children = [story.spawn() for _ in range(43)]
    page = page_of(victor, story)
    tree = page[page.index('id="tree"') : page.index('id="timeline"')]
    assert "43 children" in tree and "and 3 more" in tree and tree.count("data-depth") == 40
    assert children[-1].url not in tree


def test_a_cancel_that_came_from_another_run_links_it(victor: Client) -> None:
    root = Story()
    child = root.spawn()
    cause = {"run": str(root.run.id), "seq": 3}
    seq = child.write(Kind.CONTROL, {"verb": "cancel", "reason": "a mistake", "cause": cause}, actor="olga")
    end = child.done(cancelled="a mistake", cause=cause)
    child.now_is(Status.CANCELLED, ended_at="2026-11-17T14:02:11Z")
    page = page_of(victor, child, seq)
    assert "seq 3 of" in row_of(page, seq) and root.url in row_of(page, seq) and root.url in row_of(page, end)
    assert "by the cancel of" in page


def test_a_brake_tells_its_limit_and_that_a_resume_gives_the_budget_anew(olga: Client) -> None:
    story = Story()
    body = {"verb": "brake", "reason": "its budget of 5 steps is spent", "limit": 5, "used": 6}
    seq = story.write(Kind.CONTROL, body, actor="system")
    page = page_of(olga, story.now_is(Status.HELD, "brake: its budget of 5 steps is spent"))
    assert "Limit 5, used 6." in row_of(page, seq) and "gives its budget once more" in page
    assert f"{story.url}/resume" in page


def test_a_run_held_by_a_gate_says_what_lifts_it_and_offers_no_resume(olga: Client) -> None:
    story = Story()
    seq = story.call(gate="gate")
    story.now_is(Status.HELD, "gate tool:refund: look first")
    page = page_of(olga, story)
    assert "Stopped by the gate tool:refund." in row_of(page, seq)
    assert "when the gate is lifted" in page and "/agents/refund-desk#gates" in page
    assert f"{story.url}/resume" not in page


def test_a_call_that_waits_for_a_permit_tells_its_place_in_line_now(victor: Client) -> None:
    first, second = Story(), Story()
    for story in (first, second):
        story.call(gate="limit", customer_id="c-1")
        Permit.objects.create(run=story.run, step=1, attempt=1, scope="tool:refund", key="c-1", at_once=3)
        story.now_is(Status.WAITING, "refund is limited to 3 at once; 7th in line")
    assert "1st in line: refund is limited to 3 at once" in row_of(page_of(victor, first), 2)
    page = page_of(victor, second)
    assert "2nd in line: refund is limited to 3 at once" in row_of(page, 2) and "Now 2nd in line" in page


def test_the_head_tells_deadline_priority_business_id_and_labels(victor: Client) -> None:
    story = Story().now_is(
        Status.QUEUED,
        deadline_at="2099-01-01T00:00:00Z",
        priority=7,
        business_id="order:o-1",
        labels={"order": "o-1", "tenant": "blå"},
    )
    page = page_of(victor, story)
    for said in ("Deadline", "then it is cancelled", "Priority", ">7 ", "order:o-1", "?label=tenant:bl%C3%A5"):
        assert said in page
    assert "Waits for a free worker." in page


def test_a_note_and_a_retry_stand_in_the_timeline(victor: Client) -> None:
    story = Story()
    story.call()
    note = story.write(Kind.NOTE, {"text": "called the bank"}, actor="ada")
    again = story.write(Kind.CONTROL, {"verb": "retry", "reason": "they are back"}, actor="olga")
    page = page_of(victor, story, note)
    assert "called the bank" in row_of(page, note) and "retry by olga. they are back" in row_of(page, again)


def test_a_long_wait_is_folded_and_the_wait_goes_on_to_now(victor: Client) -> None:
    story = Story().now_is(Status.WAITING, "sleeping", session=session(ended_at="2026-11-17T14:02:11Z"))
    seq = story.opens(Kind.TIMER, verb="set", seconds=600, due=time.time() + 600)
    assert 'data-b="timer"' in row_of(page_of(victor, story), seq)


def test_a_stateless_run_shows_input_and_result_and_that_it_has_no_journal(olga: Client) -> None:
    from journal.append import new_run_id
    from journal.encoding import encode
    from tests.pages.journals import release

    run = Run.objects.create(
        id=new_run_id(),
        agent="classify",
        release=release(),
        input=encode({"text": "<b>hello</b>"}),
        ending=encode({"result": {"kind": "greeting"}}),
        status=Status.DONE,
        ended_at="2026-11-17T14:02:11Z",
    )
    page = olga.get(f"/runs/{short_id(run.id)}").content.decode()
    for said in ("Stateless", "&lt;b&gt;hello", "greeting", "keeps no journal"):
        assert said in page
    assert 'id="timeline"' not in page and "/cancel" not in page and "/note" not in page
