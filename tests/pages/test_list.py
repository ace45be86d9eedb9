"""The list of runs: rows, facets, tabs, query, order, pages."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Release, Run, Status
from runs.short_ids import short_id
from tests.pages.journals import Story, in_doubt, session

pytestmark = pytest.mark.django_db
ALL = "/runs?q="


def shown(client: Client, address: str) -> list[str]:
    """The short ids on the page, in their order."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return re.findall(r'data-row href="/runs/(r-\w+)"', answer.content.decode())


def names(*stories: Story) -> list[str]:
    return [short_id(story.run.id) for story in stories]


def doubt(story: Story, **more: Any) -> Story:
    """As a park leaves the row of a run that is in doubt."""
    record = {"seq": 3, "step": 1, "tool": "refund", "state": "in_doubt", "since": timezone.now().isoformat()}
    return story.now_is(Status.NEEDS_RECONCILIATION, "refund (step 1) may have happened", intents=[record], **more)


def asks(story: Story, question: str) -> Story:
    record = {"seq": 2, "step": 1, "tool": "ask", "kind": "ask", "state": "asked", "summary": question}
    record |= {"since": timezone.now().isoformat()}
    return story.now_is(Status.WAITING, f"asks: {question}", intents=[record])


def test_the_list_tells_status_agent_release_reason_and_epoch(victor: Client) -> None:
    story, _ = in_doubt()
    page = victor.get("/runs").content.decode()
    for said in ("Needs reconciliation", short_id(story.run.id), "refund-desk", "may have happened", ">e0<"):
        assert said in page


def test_the_plain_address_shows_the_open_runs(victor: Client) -> None:
    going, over = Story(), Story().now_is(Status.DONE, ended_at=timezone.now())
    assert shown(victor, "/runs") == names(going)
    assert set(shown(victor, ALL)) == set(names(going, over))


def test_facets_narrow_by_status_and_count(victor: Client) -> None:
    held, queued = Story().now_is(Status.HELD, "held by olga: why not"), Story()
    page = victor.get("/runs?status=held").content.decode()
    assert shown(victor, "/runs?status=held") == names(held)
    assert 'value="held" checked' in page and "by olga" in page
    assert set(shown(victor, "/runs?status=held&status=queued")) == set(names(held, queued))
    assert re.search(r'value="queued">.*?<span class="n">1</span>', page, re.S)


def test_releases_with_runs_are_offered_however_many_newer_ones_have_none(victor: Client) -> None:
    Story()
    for n in range(40):
        content = {"agent": "uni", "version": str(n), "tools": []}
        Release.objects.create(id=f"{n:064}", agent="uni", version=str(n), content=content)
    page = victor.get("/runs").content.decode()
    assert re.findall(r'name="release" value="([^"]+)"', page) == [str(Release.objects.get(agent="refund-desk"))]


def test_choices_that_do_not_fit_fold_away_and_unfold_where_one_is_chosen(victor: Client) -> None:
    made = Story().run
    for n in range(14):
        content = {"agent": "uni", "version": str(n), "tools": []}
        release = Release.objects.create(id=f"{n:064}", agent="uni", version=str(n), content=content)
        Run.objects.filter(pk=Story().run.pk).update(release=release)
    page = victor.get("/runs").content.decode()
    assert '<details class="facets-more">' in page and "3 more</summary>" in page
    page = victor.get(f"/runs?release={made.release}").content.decode()
    assert '<details class="facets-more" open>' in page


def test_facets_and_the_query_are_one_query(victor: Client) -> None:
    held, queued, other = Story().now_is(Status.HELD), Story(), Story().now_is(Status.WAITING)
    assert set(shown(victor, "/runs?status=held&q=status:queued")) == set(names(held, queued))
    assert shown(victor, f"/runs?status=held&status=waiting&q=-{short_id(held.run.id)}") == names(other)


def test_what_only_a_person_moves_comes_first_and_the_longest_waiting_of_it(victor: Client) -> None:
    now = timezone.now()
    queued = Story()
    old, young = doubt(Story()), doubt(Story())
    Run.objects.filter(id=old.run.id).update(since=now - timedelta(hours=2))
    Run.objects.filter(id=young.run.id).update(since=now - timedelta(hours=1))
    question = asks(Story(), "which account?")
    gated = Story().now_is(Status.HELD, "gate all: a deploy")
    braked = Story().now_is(Status.HELD, "brake: 200 steps")
    assert shown(victor, "/runs") == names(old, young, question, braked, gated, queued)
    assert shown(victor, "/runs?has=person") == names(old, young, question, braked)


@pytest.mark.parametrize("order", ["person", "newest", "oldest", "longest"])
def test_pages_of_every_order_neither_repeat_nor_skip_while_runs_arrive(victor: Client, order: str) -> None:
    stories = [Story() for _ in range(115)]
    for number, story in enumerate(stories):
        if number % 3 == 0:
            doubt(story)
        elif number % 3 == 1:
            asks(story, "yes?")
    wanted = set(names(*stories))
    address, found = f"/runs?sort={order}", []
    while address:
        page = victor.get(address).content.decode()
        found += re.findall(r'data-row href="/runs/(r-\w+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following[1].replace("&amp;", "&") if following else ""
        Story()
    assert len(found) == len(set(found))
    assert wanted <= set(found)


def test_a_row_shows_what_a_run_waits_for(victor: Client) -> None:
    doubt(Story())
    asks(Story(), "Which of the two accounts?")
    deadline = (timezone.now() + timedelta(minutes=9)).isoformat()
    record = {"seq": 3, "step": 1, "tool": "mail", "state": "awaiting_approval", "since": timezone.now().isoformat()}
    record |= {"deadline": deadline, "policy": {"quorum": 2}, "granted": ["ada"]}
    Story().now_is(Status.AWAITING_APPROVAL, "mail waits", intents=[record])
    page = victor.get("/runs").content.decode()
    for said in ("no result for", "for an answer", "Which of the two accounts?", "1 of 2 granted, due in 8 m"):
        assert said in page, said


def test_a_row_draws_the_journal_and_says_it_in_a_sentence(victor: Client) -> None:
    story, _ = in_doubt()
    story.now_is(Status.NEEDS_RECONCILIATION, intents=[{"seq": 3, "step": 1, "tool": "refund", "state": "in_doubt"}])
    page = victor.get("/runs").content.decode()
    assert 'aria-label="4 entries, an intent without a result, the last is OBS"' in page
    assert 'class="PENDING" x="8" y="0"' in page and 'class="START" x="0" y="8"' in page


def test_a_new_epoch_is_a_dashed_line_in_the_strip(victor: Client) -> None:
    story = Story()
    for name in ("w1", "w2"):
        story.taken_over(session(name))
    page = victor.get("/runs").content.decode()
    assert "1 new epoch" in page and 'class="gap"' in page


def test_a_long_journal_shows_its_last_forty_entries(victor: Client) -> None:
    story = Story()
    for _ in range(50):
        story.plan()
    page = victor.get("/runs").content.decode()
    assert "51 entries, the last 40 shown" in page and page.count('class="PLAN"') == 40


NOTHING = ["status=nonsense", "agent=nobody", "q=r-zzzzzzzz", "agent=a%00", "region=nowhere", "sort=nonsense"]


@pytest.mark.parametrize("query", NOTHING)
def test_filters_that_match_nothing_or_make_no_sense_do_no_harm(victor: Client, query: str) -> None:
    assert victor.get(f"/runs?{query}").status_code == 200


WRONG = {
    "q=status:lost": ("There is no status lost.", "lost", "       ^^^^"),
    "q=agnt:x": ("Did you mean agent?", "agnt", "^^^^"),
    "q=epoch:%3Ex": ("Write a whole number here", "x", "       ^"),
    'q=agent:"a b': ("This quotation mark is not closed.", "&quot;a b", "      ^^^^"),
    "q=parent:r-zzzzzzzz": ("There is no such run.", "parent:r-zzzzzzzz", "^" * 17),
    "label=tenant": ("A label is written label:name:value", "tenant", "      ^^^^^^"),
}


@pytest.mark.parametrize("address", WRONG)
def test_a_query_that_cannot_be_read_is_pointed_at_and_kept(victor: Client, address: str) -> None:
    said, mark, caret = WRONG[address]
    answer = victor.get(f"/runs?{address}")
    page = answer.content.decode()
    assert answer.status_code == 422
    assert said in page and f"<mark>{mark}</mark>" in page and f"\n{caret}</pre>" in page
    assert 'aria-invalid="true"' in page and 'aria-describedby="q-fault' in page
    assert "No run matches" not in page


def test_a_wrong_cursor_is_said_to_be_wrong(victor: Client) -> None:
    for order in ("person", "newest", "longest"):
        answer = victor.get(f"/runs?after=nonsense&sort={order}")
        assert answer.status_code == 422 and "cursor" in answer.content.decode()


def test_the_number_of_queries_does_not_grow_with_the_list(
    victor: Client, django_assert_max_num_queries: object
) -> None:
    for _ in range(20):
        Story()
    with django_assert_max_num_queries(24):  # type: ignore[operator]
        victor.get("/runs")


def test_the_list_is_narrowed_by_label_from_the_address_or_the_field(victor: Client) -> None:
    blue, red = Story().now_is(Status.QUEUED, labels={"tenant": "a:b"}), Story()
    for query in ("label=tenant:a:b", "q=label:tenant:a:b"):
        page = victor.get(f"/runs?{query}").content.decode()
        assert short_id(blue.run.id) in page and short_id(red.run.id) not in page
        assert 'value="label:tenant:a:b"' in page


def test_the_list_is_narrowed_to_the_children_of_a_run(victor: Client) -> None:
    parent = Story()
    child = parent.spawn()
    assert shown(victor, f"/runs?parent={short_id(parent.run.id)}") == names(child)
    assert f"child of {short_id(parent.run.id)}" in victor.get("/runs").content.decode()


def test_a_queued_run_says_that_it_waits_for_a_worker(victor: Client) -> None:
    Story()
    assert "waits for a free worker" in victor.get("/runs").content.decode()


def test_a_request_of_the_filter_gets_the_results_and_the_tabs_alone(victor: Client) -> None:
    story = Story()
    answer = victor.get("/runs?q=", headers={"HX-Request": "true", "HX-Target": "section#results"})
    part = answer.content.decode()
    assert part.lstrip().startswith('<section id="results"') and short_id(story.run.id) in part
    assert 'hx-target="#views"' in part and "<html" not in part and "HX-Target" in answer.headers["Vary"]


def test_tabs_count_and_tell_which_one_is_shown(victor: Client) -> None:
    doubt(Story())
    Story().now_is(Status.FAILED, ended_at=timezone.now() - timedelta(hours=2))
    Story().now_is(Status.FAILED, ended_at=timezone.now() - timedelta(hours=40))
    page = victor.get("/runs?has=person").content.decode()
    tabs = dict(re.findall(r">([^<>]+)<span class=\"n\">([\d,+]+)</span></a>", page))
    assert tabs == {"Open": "1", "Needs a person": "1", "Stranded": "0", "Failed, last 24 h": "1", "All": "3"}
    assert re.search(r'href="/runs\?has=person" aria-current="page"', page)
    assert page.count('aria-current="page"') >= 1


def test_suggestions_are_keys_then_values(victor: Client) -> None:
    Story().now_is(Status.QUEUED, labels={"tier": "gold"})
    options = {
        "ag": ["agent:", "age:"], "agent:": ["refund-desk "], "status:re": ["reconcile "], "label:": ["tier:"],
        "label:tier:g": ["gold "], "tool:": ["mail ", "refund "], "-has:str": ["stranded "],
    }  # fmt: skip
    for text, wanted in options.items():
        page = victor.get("/suggest/runs", {"q": text, "at": len(text)}).content.decode()
        found = re.findall(r"<code>([^<]*)</code>", page)
        assert [one for one in found if one in wanted] == wanted, (text, found)
    page = victor.get("/suggest/runs", {"q": "-agent:ref status:held", "at": 10}).content.decode()
    assert 'data-whole="-agent:refund-desk status:held"' in page
    assert victor.get("/suggest/runs", {"q": "\0", "at": "x"}).status_code == 200
