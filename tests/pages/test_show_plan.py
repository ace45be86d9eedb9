"""What a run's page says of the plan: the agent's own, else the steps; and what steps are called."""

import pytest
from django.test import Client

from runs.pages.plan import item_of
from tests.pages.incidents import incident, url_of
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db


def plan_in(client: Client, address: str) -> str:
    page = client.get(address).content.decode()
    return page[page.index('id="plan"') : page.index('id="ruler"')]


@pytest.mark.parametrize(
    ("item", "state", "text"),
    [
        ({"done": "search"}, "done", "search"),
        ({"next": "hold"}, "next", "hold"),
        ({"decided": "book"}, "decided", "book"),
        ({"text": "mail", "status": "in_progress"}, "next", "mail"),
        ({"title": "mail", "state": "completed", "n": 1}, "done", "mail"),
        ("write", "later", "write"),
        ({"a": 1, "b": 2}, "later", "{a: 1, b: 2}"),
        (7, "later", "7"),
    ],
)
def test_a_plan_is_read_in_the_shapes_that_agents_write(item: object, state: str, text: str) -> None:
    assert (item_of(item).state, item_of(item).text) == (state, text)


def test_the_agents_plan_stands_above_the_journal_with_what_was_decided_last(victor: Client) -> None:
    plan = plan_in(victor, url_of(incident()))
    assert plan.count('data-p="done"') == 4 and plan.count('data-p="later"') == 3
    assert 'data-p="next" aria-current="step"' in plan and "Refund €240.00 to original card" in plan
    assert '<a class="id" href="?seq=16">seq 16</a>' in plan


def test_without_a_plan_the_steps_are_told_the_open_one_as_what_is_done_now(victor: Client) -> None:
    story = Story()
    for n in range(6):
        story.call("mail", to=str(n))
        story.result({})
    seq = story.call("refund")
    plan = plan_in(victor, story.url)
    assert "2 before" in plan and plan.count('data-p="done"') == 5
    assert f'href="?seq={seq}" dir="auto">refund</a>' in plan and plan.count("aria-current") == 1


def test_a_step_is_called_what_the_plan_had_next_when_it_was_decided(victor: Client) -> None:
    page = victor.get(url_of(incident())).content.decode()
    names = page[page.index('id="timeline"') :]
    for name in ("Find the order", "Find the charge", "Read the ticket", "Ask two people"):
        assert f"<span>{name}</span>" in names


def test_a_step_without_a_plan_is_called_what_its_call_says_of_itself_or_its_tool(victor: Client) -> None:
    story = Story()
    story.write("TOOL_CALL", {"tool": "refund", "args": {}, "key": "k", "effect": "keyed", "digest": "d", "gate": None,
                              "summary": "Refund 240.00 EUR"}, step=1)  # fmt: skip
    story.step = 1
    story.call("mail")
    page = victor.get(story.url).content.decode()
    assert "<span>Refund 240.00 EUR</span>" in page and "<span>mail</span>" in page


def test_what_was_decided_has_a_mark_of_its_own(victor: Client) -> None:
    story = Story()
    story.plan(plan=[{"done": "ask"}, {"next": "write"}, {"decided": "half is enough"}])
    plan = plan_in(victor, story.url)
    assert plan.count("i-s-running") == 2 and "i-k-PLAN" in plan and "i-s-queued" not in plan
    assert '<span class="plan-word">decided</span>' in plan


def test_nothing_is_under_way_or_to_come_in_a_run_that_has_ended(victor: Client) -> None:
    story = Story()
    story.plan(plan=[{"done": "ask"}, {"next": "write"}, {"later": "file"}])
    story.done(result=None)
    plan = plan_in(victor, story.url)
    assert "aria-current" not in plan and "i-s-running" not in plan and "i-s-queued" not in plan
    assert plan.count('<span class="plan-word">planned</span>') == 2
