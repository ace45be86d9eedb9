"""The overview: every number measured, found by index, and leading to its list."""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from journal.models import BrokenChain
from recovery.chains import Verifying
from recovery.drains import lift_drain, order_drain
from runs.generate import generate
from runs.listing import list_runs
from runs.models import Evidence, Release, Run, Status, Tally
from runs.pages import hours, overview, overview_numbers
from runs.pages.sharing import shared
from runs.short_ids import short_id
from tests.pages.journals import Story, session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    shared.clear()
    hours.kept.clear()


def page(client: Client) -> str:
    return client.get("/").content.decode()


def part(html: str, name: str) -> str:
    return re.sub(r"\s+", " ", html.partition(f'id="part-{name}"')[2].partition("</section>")[0])


def intent(state: str, age: timedelta, due: timedelta | None = None, **more: Any) -> dict[str, Any]:
    now = timezone.now()
    deadline = (now + due).isoformat() if due else None
    since = (now - age).isoformat()
    return {"seq": 2, "step": 1, "tool": "refund", "state": state, "since": since, "deadline": deadline} | more


def test_nothing_to_do_is_said(victor: Client) -> None:
    html = page(victor)
    assert "Nothing needs a person." in html and "Nothing waits for a person" in html
    assert "No run is in flight" in html and "No worker was lost in 30 days" in html


def test_what_needs_a_person_is_told_the_oldest_first_with_the_next_deadline(victor: Client) -> None:
    hour = timedelta(hours=1)
    doubt = Story().now_is(Status.NEEDS_RECONCILIATION, intents=[intent("in_doubt", hour)])
    Story().now_is(Status.AWAITING_APPROVAL, intents=[intent("awaiting_approval", 3 * hour, due=2 * hour)])
    next_due = Story().now_is(Status.AWAITING_APPROVAL, intents=[intent("awaiting_approval", hour, due=hour / 2)])
    Story().now_is(Status.WAITING, intents=[intent("asked", 2 * hour)])
    Story().now_is(Status.HELD, "held by olga: a look")
    html = part(page(victor), "needs")
    order = re.findall(r'<li id="need-(\w+)"', html)
    assert order == ["awaiting_approval", "asked", "in_doubt", "held"]
    approvals = html.partition('id="need-awaiting_approval"')[2]
    assert ">2</a>" in approvals and "next deadline in" in approvals and "29 m" in approvals.partition("Review")[0]
    assert next_due.url in approvals.partition("</li>")[0] and doubt.url in html
    for address in ("/inbox?tab=intents", "/inbox?tab=approvals", "/inbox?tab=questions", "/runs?q=status%3Aheld"):
        assert address in html
    assert "held by olga: a look" in html


def test_runs_that_still_drain_are_told_with_a_way_there(olga: Client, victor: Client) -> None:
    worker = session("w1")
    for _ in range(2):
        Story().now_is(Status.RUNNING, session=worker, epoch=1)
    assert "Runs still draining" not in page(victor)
    drain = order_drain(scope="agent:refund-desk", timeout=600, reason="deploy 8", actor="olga")
    shared.clear()
    needs = part(page(victor), "needs")
    assert 'aria-label="2 Runs still draining"' in needs and "agent:refund-desk, deadline in" in needs
    assert f'href="/drains/{drain.pk}"' in needs and ">Watch<" in needs
    assert "Start a drain" in page(olga) and "Start a drain" not in page(victor)
    lift_drain(drain_id=drain.pk, reason="not now", actor="olga")
    shared.clear()
    assert "Runs still draining" not in page(victor)


def test_an_approval_that_expired_is_no_deadline_to_come(victor: Client) -> None:
    hour = timedelta(hours=1)
    Story().now_is(
        Status.AWAITING_APPROVAL, intents=[intent("awaiting_approval", 3 * hour, due=-hour / 2, expired=True)]
    )
    html = part(page(victor), "needs")
    assert "expired <time" in html and "next deadline" not in html
    later = Story().now_is(Status.AWAITING_APPROVAL, intents=[intent("awaiting_approval", hour, due=2 * hour)])
    shared.clear()
    html = part(page(victor), "needs")
    assert "next deadline in" in html and later.url in html and "; 1 expired" in html and ">2</a>" in html


def test_a_deadline_that_came_a_moment_ago_is_not_told_as_zero(victor: Client) -> None:
    due = -timedelta(seconds=2)
    Story().now_is(Status.AWAITING_APPROVAL, intents=[intent("awaiting_approval", timedelta(hours=1), due=due)])
    html = part(page(victor), "needs")
    assert ">a moment</span>" in html and "0 ms" not in html


def test_names_with_markup_are_told_as_they_are_wherever_several_stand_in_a_line(victor: Client) -> None:
    session("w<b>1")
    Story().now_is(Status.RUNNING)
    Release.objects.filter(agent="refund-desk").update(version="1<b>")
    html = part(page(victor), "agents")
    assert "1&lt;b&gt;" in html and "&amp;lt;" not in html
    for path in Path(settings.BASE_DIR, "templates").rglob("*.html"):
        joined = re.findall(r"\|join:[^|}]*\|readable", path.read_text())
        assert not joined, f"{path}: join escapes, and the page then once more; see all_readable"


def test_an_intent_that_a_worker_still_asks_about_needs_nobody(victor: Client) -> None:
    Story().now_is(Status.QUEUED, intents=[intent("in_doubt", timedelta(hours=1))])
    assert "Nothing waits for a person" in page(victor)


def test_each_number_leads_to_its_list(victor: Client) -> None:
    session("w1")
    for status in (Status.RUNNING, Status.RUNNING, Status.QUEUED):
        Story().now_is(status)
    html = part(page(victor), "agents")
    for status in ("running", "open"):
        assert f"/runs?q=agent%3Arefund-desk+status%3A{status}" in html
    links = set(re.findall(r'<a [^>]*href="(/[^"#]*)"', page(victor)))
    for link in sorted(links):
        assert victor.get(link.replace("&amp;", "&")).status_code in (200, 302), link


def test_an_agents_row_tells_what_a_run_costs_on_average(victor: Client) -> None:
    Story().now_is(Status.RUNNING)
    for cost in (0.2, 0.4):
        Story().now_is(Status.DONE, cost=cost, ended_at=timezone.now())
    assert "0.30" in part(page(victor), "agents")


def lost_with_a_run(seconds: float) -> tuple[Any, Story]:
    lost = session("w-lost", ended_at=timezone.now() - timedelta(seconds=seconds), end_reason="process died")
    story = Story().now_is(Status.RUNNING, session=session("w-taker"), epoch=2)
    story.claimed()
    taker = str(uuid.uuid4()) if story.run.session is None else str(story.run.session.id)
    story.write("NOTE", {"text": "taken over", "epoch": 2, "from": str(lost.id), "session": taker}, actor="system")
    return lost, story


def test_a_lost_worker_is_told_with_who_took_over_and_how_fast(victor: Client) -> None:
    lost_with_a_run(seconds=4)
    html = page(victor)
    told = part(html, "recoveries")
    assert "w-lost" in told and re.search(r"1 run taken over by w-taker in 4\.\d s", told)
    assert "of 1 run, p95 4." in part(html, "holding")
    assert "lost w-lost" in part(html, "hours")


def test_what_a_fork_copied_is_no_loss_of_its_own(victor: Client) -> None:
    lost, _ = lost_with_a_run(seconds=4)
    fork = Story().now_is(Status.RUNNING, epoch=1)  # its copied entries are of epoch 0
    body = {"text": "taken over", "epoch": 2, "from": str(lost.id), "session": str(uuid.uuid4())}
    fork.write("NOTE", body, actor="system")
    html = page(victor)
    assert "1 run taken over" in part(html, "recoveries") and "of 1 run, p95" in part(html, "holding")


def test_a_run_that_nobody_took_over_yet_counts_as_lost(victor: Client) -> None:
    lost, _ = lost_with_a_run(seconds=1)
    Story().now_is(Status.RUNNING, session=lost)
    assert "of 2 runs" in part(page(victor), "holding")


def test_effects_are_those_that_workers_counted_within_thirty_days(victor: Client) -> None:
    today = datetime.now(UTC).date()
    for days, count in ((0, 40), (29, 2), (31, 1_000)):
        Tally.objects.create(name=f"effects:{today - timedelta(days=days)}:refund-desk", total=count)
    assert '0</dd> <dd class="of">of 42 effects' in part(page(victor), "holding").replace("</dd><dd", "</dd> <dd")


def test_a_late_success_without_a_key_beside_another_is_a_repeated_effect(victor: Client) -> None:
    story = Story()
    story.step += 1
    seq = story.write("TOOL_CALL", {"tool": "mail", "args": {}, "key": "k", "effect": "unkeyed", "digest": "d"}, step=1)
    story.write("ATTEMPT", {"attempt": 2, "source": "operator"}, step=1)
    story.result({"id": 1})
    Evidence.objects.create(run=story.run, step=1, epoch=1, body=b"{}", outcome="succeeded")
    keyed = Story()
    keyed.call(order_id="o-1")
    keyed.result({"id": 1})
    Evidence.objects.create(run=keyed.run, step=1, epoch=1, body=b"{}", outcome="succeeded")
    assert overview_numbers.repeated_effects(None) == {"refund-desk": 1}
    for address in (story.url, f"/inbox/{short_id(story.run.id)}/{seq}"):
        said = victor.get(address).content.decode()
        assert "mail happened twice" in said and "Attempts 1 and 2 of step 1 both succeeded" in said
    assert "happened twice" not in victor.get(keyed.url).content.decode()
    assert "/runs?q=has%3Arepeated" in part(page(victor), "holding")
    assert [run.id for run in list_runs(query="has:repeated")[0]] == [story.run.id]


def test_a_broken_chain_is_loud(victor: Client) -> None:
    story = Story()
    BrokenChain.objects.create(run_id=story.run.id, seq=1, what="the entry was changed")
    html = page(victor)
    assert "The chain of a journal is broken" in html and "seq 1: the entry was changed" in html
    assert "1 broken" in part(html, "holding") and "Nothing needs a person." not in html


def test_chains_count_as_verified_once_they_were(victor: Client) -> None:
    Story(), Story()
    assert "0% " in part(page(victor), "holding").replace("0%</dd>", "0% ")
    connection.ensure_connection()
    Verifying().once(_Autocommitting())  # type: ignore[arg-type]
    shared.clear()
    assert "100%" in part(page(victor), "holding") and "of 2 journals, last" in part(page(victor), "holding")


class _Autocommitting:
    """Django's connection as the sweep's: this test is one transaction."""

    def execute(self, sql: str, given: Any = None) -> Any:
        cursor = connection.cursor()
        cursor.execute(sql, given)
        return cursor

    def cursor(self) -> Any:
        return connection.cursor()


def test_whoever_is_kept_to_some_agents_sees_theirs_alone(victor: Client) -> None:
    from django.contrib.auth.models import User

    from runs.models import AgentScope

    AgentScope.objects.create(user=User.objects.get(username="victor"), agent="another")
    Story().now_is(Status.HELD, "a look")
    lost_with_a_run(seconds=1)
    html = page(victor)
    assert "refund-desk" not in html and "Nothing waits for a person" in html and "of 0 runs" in part(html, "holding")


# -- hours -------------------------------------------------------------------------------------------------------------


def test_each_hour_leads_to_the_list_of_what_ended_in_it(victor: Client) -> None:
    ended = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    there = Story().now_is(Status.DONE, ended_at=ended)
    failed = Story().now_is(Status.FAILED, ended_at=ended + timedelta(minutes=59))
    other = Story().now_is(Status.DONE, ended_at=ended + timedelta(hours=1))
    chart = part(page(victor), "hours")
    said = f"{ended:%H:%M}: 1 finished alone, 0 after a person, 1 failed"
    (link,) = set(re.findall(f'<a href="([^"]+)" aria-label="{said}"', chart))
    listed = victor.get(unescape(link)).content.decode()
    assert there.url in listed and failed.url in listed and other.url not in listed


def test_the_key_of_the_chart_leads_to_what_a_person_ended_and_what_ended_alone(victor: Client) -> None:
    alone, helped = (
        Story().now_is(Status.DONE, ended_at=timezone.now(), person_acted=acted) for acted in (False, True)
    )
    stopped = Story().now_is(Status.CANCELLED, ended_at=timezone.now())
    chart = part(page(victor), "hours")
    lists = [
        victor.get(unescape(found[1])).content.decode()
        for word in ("finished alone", "ended after a person")
        if (found := re.search(f'href="([^"]+)">{word}', chart)) is not None
    ]
    seen = [[story.url in listed for story in (alone, helped, stopped)] for listed in lists]
    assert seen == [[True, False, False], [False, True, True]]


def test_a_zone_that_a_browser_told_names_the_hours_and_nonsense_is_utc(victor: Client) -> None:
    assert "Hours in UTC" in page(victor)
    victor.cookies["tz"] = "Asia%2FShanghai"
    assert "Hours in Asia/Shanghai" in page(victor) and "days and hours as in Asia/Shanghai" in page(victor)
    for nonsense in ("../../etc/passwd", "Mars/Olympus", "%00", "x" * 300):
        victor.cookies["tz"] = nonsense
        assert "Hours in UTC" in page(victor)


def test_quarters_that_are_over_are_counted_once() -> None:
    now = timezone.now()
    first = hours.first_hour(UTC, now)
    Story().now_is(Status.DONE, ended_at=first + timedelta(minutes=5))
    before = hours.kept.since(first, None, now)
    assert before[first]["alone"] == 1
    with asked() as queries:
        again = hours.kept.since(first, None, now)
    assert again[first]["alone"] == 1
    (query,) = queries
    assert query[1]["since"] > now - timedelta(hours=1)


# -- cheap at any number of runs ---------------------------------------------------------------------------------------


class asked:
    """The queries that were made within."""

    def __enter__(self) -> list[tuple[str, Any]]:
        self.made: list[tuple[str, Any]] = []
        self.wrapper = connection.execute_wrapper(self.note)
        self.wrapper.__enter__()
        return self.made

    def __exit__(self, *error: Any) -> None:
        self.wrapper.__exit__(*error)

    def note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.made.append((sql, params))
        return execute(sql, params, many, context)


LARGE = ("runs_run", "journal_head", "journal_entry", "runs_workersession", "runs_evidence")


def scanned(plan: Any) -> set[str]:
    """Large tables that a plan reads whole."""
    found = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return found.union(*(scanned(child) for child in plan.get("Plans", [])))


def test_no_query_of_the_overview_reads_a_large_table_whole(victor: Client) -> None:
    generate(400, 5)
    session("w1")
    lost_with_a_run(seconds=1)
    with asked() as queries:
        assert victor.get("/").status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # a table this small would be read whole for being small
        for sql, params in queries:
            if not sql.lstrip().upper().startswith(("SELECT", "WITH")):
                continue
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
            told = cursor.fetchone()[0]
            plan = (json.loads(told) if isinstance(told, str) else told)[0]["Plan"]
            whole = {name for name in scanned(plan) if name.startswith(LARGE)}
            assert not whole, f"{whole}: {sql}"


def test_a_second_viewer_costs_no_second_count(victor: Client, olga: Client) -> None:
    page(victor)
    with asked() as queries:
        page(olga)
    assert not [sql for sql, _ in queries if "unnest" in sql or "date_bin" in sql]


def test_the_stream_sends_only_what_changed(victor: Client) -> None:
    from django.contrib.auth.models import User
    from django.test import RequestFactory

    request = RequestFactory().get("/live/overview")
    request.user = User.objects.get(username="victor")
    picture = overview.OverviewPicture(request)
    assert picture.draw().count("hx-partial hx-target") == len(overview.PARTS)
    assert picture.draw() == ""
    Story().now_is(Status.HELD, "a look")
    shared.clear()
    drawn = picture.draw()
    assert "#part-needs" in drawn and "#part-agents" in drawn and "#part-recoveries" not in drawn
    assert Run.objects.filter(status=Status.HELD).count() == 1
