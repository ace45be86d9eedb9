import pytest
from django.test import Client
from django.utils import timezone

from runs.models import Status
from runs.short_ids import short_id
from tests.pages.journals import Story, in_doubt, session

pytestmark = pytest.mark.django_db


def test_the_list_tells_status_agent_release_reason_and_epoch(victor: Client) -> None:
    story, _ = in_doubt()
    page = victor.get("/runs").content.decode()
    for said in ("Needs reconciliation", short_id(story.run.id), "refund-desk", "may have happened", "epoch 0"):
        assert said in page


def test_facets_filter_by_status_and_count_what_is_open(victor: Client) -> None:
    held, queued = Story().now_is(Status.HELD, "held by olga"), Story()
    page = victor.get("/runs?status=held").content.decode()
    assert short_id(held.run.id) in page and short_id(queued.run.id) not in page
    assert 'value="held" checked' in page


def test_the_list_is_paged_by_keyset(victor: Client) -> None:
    stories = [Story() for _ in range(51)]
    first = victor.get("/runs").content.decode()
    assert short_id(stories[0].run.id) not in first and "Older runs" in first
    second = victor.get(f"/runs?after={stories[1].run.id}").content.decode()
    assert short_id(stories[0].run.id) in second and "Older runs" not in second


NOTHING = ["status=nonsense", "q=%00", "agent=nobody", "q=r-zzzzzzzz", "label=%00:%00", "label=a:%00", "label=:"]


@pytest.mark.parametrize("query", NOTHING)
def test_filters_that_match_nothing_or_make_no_sense_do_no_harm(victor: Client, query: str) -> None:
    assert victor.get(f"/runs?{query}").status_code == 200


def test_a_wrong_cursor_is_said_to_be_wrong(victor: Client) -> None:
    answer = victor.get("/runs?after=nonsense")
    assert answer.status_code == 422 and "cursor" in answer.content.decode()


def test_the_number_of_queries_does_not_grow_with_the_list(
    victor: Client, django_assert_max_num_queries: object
) -> None:
    for _ in range(20):
        Story()
    with django_assert_max_num_queries(10):  # type: ignore[operator]
        victor.get("/runs")


def test_workers_tell_their_lease_and_the_runs_they_hold(victor: Client) -> None:
    Story().now_is(Status.RUNNING, session=session("w1"))
    page = victor.get("/workers").content.decode()
    assert "w1" in page and "Live" in page and "threads, 50 at once" in page


def test_the_list_is_narrowed_by_label_from_the_form_or_the_search(victor: Client) -> None:
    blue, red = Story().now_is(Status.QUEUED, labels={"tenant": "a:b"}), Story()
    for query in ("label=tenant:a:b", "q=label:tenant:a:b"):
        page = victor.get(f"/runs?{query}").content.decode()
        assert short_id(blue.run.id) in page and short_id(red.run.id) not in page
        assert 'value="tenant:a:b"' in page
    assert "A label is written name:value." in victor.get("/runs?label=tenant").content.decode()


def test_the_list_is_narrowed_to_the_children_of_a_run(victor: Client) -> None:
    parent, other = Story(), Story()
    child = parent.spawn()
    page = victor.get(f"/runs?parent={short_id(parent.run.id)}").content.decode()
    assert f'id="run-{child.run.id}"' in page and f'id="run-{other.run.id}"' not in page
    assert "Children of" in page and f'name="parent" value="{short_id(parent.run.id)}"' in page
    assert f"child of {short_id(parent.run.id)}" in victor.get("/runs").content.decode()
    assert victor.get("/runs?parent=r-zzzzzzzz").status_code == 404


def test_a_queued_run_says_that_it_waits_for_a_worker(victor: Client) -> None:
    Story()
    assert "waits for a free worker" in victor.get("/runs").content.decode()


def test_live_workers_stand_before_those_that_ended(victor: Client) -> None:
    session("gone", ended_at=timezone.now())
    session("here")
    page = victor.get("/workers").content.decode()
    assert page.index(">here<") < page.index(">gone<") and "/agents" in page
