"""The inbox: what waits, in groups, for whom, and by when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from journal.entries import Kind
from recovery.inbox import PAGE, Query, count_items, list_items
from runs.models import AgentScope, Run, Status
from tests.pages.conftest import signed_in
from tests.pages.journals import DIGEST, Story
from tests.pages.waiting_items import TWO, asked, doubtful, item, listed

pytestmark = pytest.mark.django_db
EVIL = "</span><img src=x onerror=alert(1)>"


def question(text: str = "How much?", **more: object) -> tuple[Story, int]:
    story = Story()
    seq = story.ask(text, **more)  # type: ignore[arg-type]
    return listed(story.now_is(Status.WAITING, f"asks: {text}")), seq


def order(page: str, *addresses: str) -> list[int]:
    return [page.index(f'href="{address}"') for address in addresses]


def test_what_waits_stands_in_groups_the_most_pressing_first(ada: Client) -> None:
    soon, later = (timezone.now().timestamp() + seconds for seconds in (300, 90_000))
    far, near, never = asked(TWO, expires=later), asked(TWO, expires=soon), asked(TWO)
    old, new, ask = doubtful(), doubtful(), question()
    page = ada.get("/inbox").content.decode()
    places = order(page, *(item(*one) for one in (old, new, near, far, never, ask)))
    assert places == sorted(places)
    for said in ("Did it happen?", "Waiting for approval, nearest deadline first", "Questions", "due 4 m", "0 of 2"):
        assert said in page
    assert "2 intents to reconcile, 3 approvals, 1 question." in page


def test_each_tab_has_its_own_and_counts_all(ada: Client) -> None:
    doubt, approval, ask = doubtful(), asked(), question()
    for tab, wanted in (("intents", doubt), ("approvals", approval), ("questions", ask)):
        page = ada.get(f"/inbox?tab={tab}").content.decode()
        for one in (doubt, approval, ask):
            assert (f'href="{item(*one)}?tab={tab}"' in page) is (one is wanted)
        assert 'All<span class="n">3</span>' in page


def test_what_cannot_be_understood_filters_nothing(ada: Client) -> None:
    one = doubtful()
    assert item(*one) in ada.get("/inbox?tab=nonsense&agent=").content.decode()
    assert ada.get("/inbox?after=nonsense").status_code == 422
    assert ada.get("/inbox?after=1~nan~0.0~x~1").status_code == 422


def test_mine_is_what_i_may_decide(cast: None) -> None:
    both = asked(TWO)
    mine = asked(TWO | {"group": "finance"})
    granted = asked(TWO)
    granted[0].write(Kind.APPROVAL, {"verdict": "granted", "digest": DIGEST}, step=1)
    Run.objects.filter(pk=granted[0].run.pk).update(intents=[granted[0].run.intents[0] | {"granted": ["ada"]}])
    own = asked(TWO)
    Run.objects.filter(pk=own[0].run.pk).update(intents=[own[0].run.intents[0] | {"asked_by": "ada"}])
    doubt = doubtful()

    def of(who: str) -> set[str]:
        items, _ = list_items(Query(tab="mine"), User.objects.get(username=who))
        return {str(one.run_id) for one in items}

    def ids(*stories: tuple[Story, int]) -> set[str]:
        return {str(story.run.id) for story, _ in stories}

    assert of("ada") == ids(both, doubt)
    User.objects.get(username="ada").groups.add(Group.objects.create(name="finance"))
    assert of("ada") == ids(both, mine, doubt)
    assert of("max") == ids(both, mine, granted, own, doubt)
    assert of("olga") == ids(doubt)
    assert of("victor") == set()


def test_a_question_back_is_listed_for_those_who_may_answer(ada: Client) -> None:
    story, seq = asked(TWO)
    story.write(Kind.APPROVAL, {"verdict": "asked", "digest": DIGEST, "note": "Which order is it?"}, step=1)
    listed(story)
    page = ada.get("/inbox?tab=questions").content.decode()
    assert "worker asks: Which order is it?" in page
    assert item(story, seq) not in ada.get("/inbox?tab=approvals").content.decode()


def test_the_list_is_filtered_by_agent_tool_and_text(ada: Client) -> None:
    refund, mail = doubtful(), doubtful("mail", "unkeyed")
    for query, found, left in (
        ("tool=mail", mail, refund), ("tool=refund", refund, mail), (f"q={mail[0].run.id}", mail, refund),
        (f"q={refund[0].url.rpartition('/')[2]}", refund, mail),
    ):  # fmt: skip
        page = ada.get(f"/inbox?{query}").content.decode()
        assert f'href="{item(*found)}?' in page and f'href="{item(*left)}?' not in page, query
    nothing = ada.get("/inbox?agent=nobody").content.decode()
    assert "Nothing that waits matches" in nothing and "2 wait without the filter." in nothing
    assert "Refund 240.00" in ada.get("/inbox?q=REFUND+240").content.decode()


def test_an_empty_inbox_says_so(ada: Client) -> None:
    assert "Nothing waits here" in ada.get("/inbox").content.decode()
    assert "Nothing waits for you" in ada.get("/inbox?tab=mine").content.decode()


def test_a_doubt_that_a_worker_still_settles_by_itself_is_not_listed(ada: Client) -> None:
    story, seq = doubtful()
    story.now_is(Status.WAITING, "refund (step 1) is asked again at 12:00:00 UTC")
    assert item(story, seq) not in ada.get("/inbox").content.decode()


def test_a_run_outside_of_the_scope_is_not_there(cast: None) -> None:
    story, seq = doubtful()
    AgentScope.objects.create(user=User.objects.get(username="ada"), agent="another")
    ada = signed_in("ada")
    assert item(story, seq) not in ada.get("/inbox").content.decode()
    for below in ("", "/reconcile", "/approve", "/evidence/" + "0" * 64):
        assert ada.get(item(story, seq) + below).status_code == 404
    assert ada.post(f"{item(story, seq)}/reconcile", {"verdict": "probe"}).status_code == 404


def many(count: int) -> None:
    """Rows alone: the list reads nothing else."""
    story, _ = asked(TWO)
    made = [
        Run(
            id=f"01a229a1-6f91-7289-ac86-{n:012x}", agent="refund-desk", release=story.run.release,
            status=Status.AWAITING_APPROVAL, intents=[story.run.intents[0] | {"seq": 3}],
        )
        for n in range(count)
    ]  # fmt: skip
    Run.objects.bulk_create(made, batch_size=2_000)


def test_pages_follow_one_another_without_a_gap(cast: None) -> None:
    many(2 * PAGE)
    user, seen, after = User.objects.get(username="ada"), [], ""
    while True:
        items, cursor = list_items(Query(), user, after)
        seen += [one.id for one in items]
        if cursor is None:
            break
        after = cursor
    assert len(seen) == len(set(seen)) == 2 * PAGE + 1


def test_ten_thousand_items_are_counted_and_paged_by_three_queries(
    ada: Client, django_assert_max_num_queries: object
) -> None:
    many(10_000)
    started = timezone.now()
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        page = ada.get("/inbox").content.decode()
    assert page.count('class="item-row"') == PAGE and "10001 approvals" in page
    assert timezone.now() - started < timedelta(seconds=10)
    assert count_items(Query(tool="refund"), User.objects.get(username="ada")).tabs["mine"] == 10_001


def test_markup_in_what_waits_stays_text(ada: Client) -> None:
    story, seq = question(EVIL)
    doubt, at = doubtful(EVIL)
    for address in ("/inbox", item(story, seq), item(doubt, at), f"{item(doubt, at)}/reconcile", f"/inbox?q={EVIL}"):
        answer = ada.get(address)
        assert answer.status_code == 200 and b"<img" not in answer.content, address


def test_a_stateless_run_and_a_step_that_is_no_intent_have_no_item(ada: Client) -> None:
    story, _ = doubtful()
    for seq in (1, 2, 99):
        assert ada.get(item(story, seq)).status_code == 404


def test_an_item_is_a_fragment_for_the_list_and_a_page_for_everybody_else(ada: Client) -> None:
    story, seq = doubtful()
    whole = ada.get(item(story, seq)).content.decode()
    part = ada.get(item(story, seq), headers={"HX-Request": "true"}).content.decode()
    assert "<html" in whole and 'id="inbox-rows"' in whole
    assert "<html" not in part and 'id="item"' in part
