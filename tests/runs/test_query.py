"""The query language: how it is read, what it means, that it stays quick."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from runs.errors import CursorUnknown, QueryInvalid
from runs.generate import generate
from runs.listing import ORDERS, list_runs, page_of
from runs.models import ENDED as ENDED_STATUSES
from runs.models import Release, Run, Status
from runs.query_language import ENDED, KEYS, OPEN, STATUS_WORDS, completing, ids_query, parse, quoted, written
from runs.query_meaning import Reader, runs_meant
from runs.short_ids import short_id

# -- reading ----------------------------------------------------------------------------------------------------------


def told(text: str) -> list[tuple[Any, ...]]:
    return [(t.key, t.name, t.op, t.value, t.negated) for t in parse(text)]


def test_the_words_of_statuses_are_those_that_runs_have() -> None:
    assert set(OPEN) == set(Status.values) - set(ENDED_STATUSES) and set(ENDED) == set(ENDED_STATUSES)
    assert {status for words in STATUS_WORDS.values() for status in words} == set(Status.values)


READ = {
    "": [],
    "  status:held   agent:x ": [("status", "", "=", "held", False), ("agent", "", "=", "x", False)],
    "-status:DONE": [("status", "", "=", "done", True)],
    "STATUS:open": [("status", "", "=", "open", False)],
    'agent:"a b"': [("agent", "", "=", "a b", False)],
    'agent:"a \\" \\\\ b"': [("agent", "", "=", 'a " \\ b', False)],
    'at:"wait for paid"': [("at", "", "=", "wait for paid", False)],
    "label:tier:gold": [("label", "tier", "=", "gold", False)],
    "label:tenant:a:b": [("label", "tenant", "=", "a:b", False)],
    '-label:"a b":"c d"': [("label", "a b", "=", "c d", True)],
    "label:flag:": [("label", "flag", "=", "", False)],
    "epoch:>1 epoch:3": [("epoch", "", ">", 1, False), ("epoch", "", "=", 3, False)],
    "cost:>=1.50": [("cost", "", ">=", 1.5, False)],
    "age:>1h30m": [("age", "", ">", timedelta(minutes=90), False)],
    "ended:<24h": [("ended", "", "<", timedelta(hours=24), False)],
    "started:today": [("started", "", "=", "today", False)],
    "started:>2031-01-31": [("started", "", ">", date(2031, 1, 31), False)],
    "started:<2031-01-31T12:00Z": [("started", "", "<", datetime(2031, 1, 31, 12, tzinfo=UTC), False)],
    "r-7f3k9q2m -order-7": [("", "", "=", "r-7f3k9q2m", False), ("", "", "=", "order-7", True)],
    "customer:c-7": [("", "", "=", "customer:c-7", False)],
    '"status:held"': [("", "", "=", "status:held", False)],
    "release:refund-desk@7": [("release", "", "=", "refund-desk@7", False)],
    'agent:">1"': [("agent", "", "=", ">1", False)],
}


@pytest.mark.parametrize("text", READ)
def test_terms_are_read(text: str) -> None:
    assert told(text) == READ[text]


WRONG = {
    "status:lost": (7, 4, "There is no status lost."),
    "held status:heldd": (12, 5, "Did you mean held?"),
    "statsu:held": (0, 6, "Did you mean status?"),
    "status:": (7, 1, "Write a value behind status"),
    "agent:>x": (6, 1, "agent: takes no >"),
    "epoch:>": (7, 1, "Write a whole number here"),
    "epoch:one": (6, 3, "Write a whole number here"),
    "cost:>nan": (6, 3, "Write a number here"),
    "age:1h": (4, 2, "Write > or < behind age:"),
    "age:>1x": (5, 2, "Write how long"),
    "age:>99999999d": (5, 9, "at most ten years"),
    "started:noon": (8, 4, "Write a day or a time"),
    "started:2031-13-01": (8, 10, "Write a day or a time"),
    "label:tier": (6, 4, "label:name:value"),
    "label::gold": (6, 5, "label:name:value"),
    'a agent:"x y': (8, 4, "not closed"),
    "a -": (2, 1, "behind the minus"),
    'a ""': (2, 1, "between the quotation marks"),
    "has:luck": (4, 4, "There is no has: luck."),
    "a\0b": (1, 1, "cannot be part"),
    "a \ud800": (2, 1, "cannot be part"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_is_said_with_its_place(text: str) -> None:
    with pytest.raises(QueryInvalid) as refused:
        parse(text)
    position, length, said = WRONG[text]
    assert said in str(refused.value)
    assert (refused.value.position, refused.value.length) == (position, length)


def test_a_query_has_an_end() -> None:
    with pytest.raises(QueryInvalid, match="4,000 characters"):
        parse("x" * 4_001)
    with pytest.raises(QueryInvalid, match="200 terms"):
        parse("x " * 201)


@given(st.text(max_size=60))
def test_anything_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    try:
        terms = parse(text)
    except QueryInvalid as wrong:
        assert 0 <= wrong.position <= len(text) and wrong.length >= 1
    else:
        assert all(0 <= t.start < t.end <= len(text) for t in terms)
    at = completing(text, len(text) // 2)
    assert 0 <= at.start <= at.end <= len(text)


whole_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(whole_text, st.sampled_from(["agent", "tool", "region", ""]))
def test_what_is_written_is_read_again(value: str, key: str) -> None:
    (term,) = parse(written(key, value))
    assert (term.key, term.value, term.negated, term.op) == (key, value, False, "=")


@given(whole_text.filter(lambda name: ":" not in name), whole_text)
def test_labels_that_are_written_are_read_again(name: str, value: str) -> None:
    (term,) = parse(written("label", f"{name}:{value}"))
    assert (term.name, term.value) == (name, value)


COMPLETED = {
    ("", 0): ("", "", ""),
    ("ag", 2): ("", "", "ag"),
    ("status:held ag", 14): ("", "", "ag"),
    ("-status:he", 10): ("status", "", "he"),
    ("status:held x", 9): ("status", "", "he"),
    ("label:ti", 8): ("label", "", "ti"),
    ("label:tier:go", 13): ("label", "tier", "go"),
    ('agent:"a b', 10): ("agent", "", "a b"),
    ("customer:c", 10): ("", "", "customer:c"),
}


@pytest.mark.parametrize("asked", COMPLETED)
def test_what_is_being_written_is_known(asked: tuple[str, int]) -> None:
    at = completing(*asked)
    assert (at.key, at.name, at.begun) == COMPLETED[asked]


# -- meaning ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(db: None) -> list[Run]:
    """Runs of every status, with all that can be asked for; the others of each key differ from it."""
    generate(300, 6)
    runs = list(Run.objects.order_by("id"))
    for number, run in enumerate(runs):
        Run.objects.filter(id=run.id).update(
            tools=["pay", "mail"] if number % 5 == 0 else ["look"],
            at="pay" if number % 5 == 0 else "wait for paid",
            region="eu" if number % 4 == 0 else "us" if number % 4 == 1 else "",
            tokens=number * 100,
            cost=number / 100,
            epoch=number % 4,
            taken_over_at=run.since if number % 3 == 0 else None,
        )
    return list(Run.objects.select_related("release").order_by("id"))


def matching(text: str, **reader: Any) -> set[UUID]:
    return set(runs_meant(parse(text), Reader(**reader)).values_list("id", flat=True))


def ids(runs: list[Run], holds: Any) -> set[UUID]:
    return {run.id for run in runs if holds(run)}


MEANT: dict[str, Any] = {
    "": lambda r: True,
    "status:held": lambda r: r.status == "held",
    "status:held status:done": lambda r: r.status in ("held", "done"),
    "-status:done -status:failed": lambda r: r.status not in ("done", "failed"),
    "status:open -status:waiting": lambda r: r.status in OPEN and r.status != "waiting",
    "agent:card-dispute": lambda r: r.agent == "card-dispute",
    "-agent:card-dispute": lambda r: r.agent != "card-dispute",
    "agent:card-dispute agent:stock-refill -status:done": lambda r: (
        r.agent in ("card-dispute", "stock-refill") and r.status != "done"
    ),
    "release:card-dispute@generated": lambda r: r.agent == "card-dispute",
    "release:generated": lambda r: True,
    "release:nothing": lambda r: False,
    "label:region:eu-west": lambda r: r.labels["region"] == "eu-west",
    "label:region:eu-west label:region:us-east": lambda r: r.labels["region"] in ("eu-west", "us-east"),
    "label:region:eu-west label:tier:gold": lambda r: (
        r.labels["region"] == "eu-west" and r.labels.get("tier") == "gold"
    ),
    "-label:tier:gold": lambda r: r.labels.get("tier") != "gold",
    "tool:pay": lambda r: "pay" in r.tools,
    "-tool:pay": lambda r: "pay" not in r.tools,
    "tool:pay tool:look": lambda r: True,
    "at:pay": lambda r: r.at == "pay" and r.ended_at is None,
    'at:"wait for paid"': lambda r: r.at == "wait for paid" and r.ended_at is None,
    "region:eu": lambda r: r.region == "eu",
    "-region:eu": lambda r: r.region != "eu",
    "epoch:>1": lambda r: r.epoch > 1,
    "epoch:2": lambda r: r.epoch == 2,
    "epoch:0 epoch:3": lambda r: r.epoch in (0, 3),
    "-epoch:>1": lambda r: r.epoch <= 1,
    "cost:>1 cost:<=2": lambda r: 1 < r.cost <= 2,
    "tokens:>=20000": lambda r: r.tokens >= 20_000,
    "has:acted": lambda r: r.person_acted or r.status == "cancelled",
    "-has:acted status:done": lambda r: not r.person_acted and r.status == "done",
    "has:takeover": lambda r: r.taken_over_at is not None,
    "has:stranded": lambda r: r.status == "waiting_for_version",
    "has:intent": lambda r: r.status == "needs_reconciliation",
    "has:person": lambda r: r.status in ("needs_reconciliation", "awaiting_approval", "quarantined", "held"),
    "-has:person status:open": lambda r: r.status in ("queued", "running", "waiting", "waiting_for_version"),
    "has:parent": lambda r: False,
    "has:fork": lambda r: False,
    "nobody-knows-this": lambda r: False,
    "card-dispute": lambda r: r.agent == "card-dispute",
}


def test_terms_mean_what_they_say(many: list[Run]) -> None:
    assert {text: matching(text) == ids(many, holds) for text, holds in MEANT.items()} == dict.fromkeys(MEANT, True)
    assert set(KEYS) >= {term.key for text in MEANT for term in parse(text) if term.key}


def test_words_name_runs_by_whatever_a_person_has_of_them(many: list[Run]) -> None:
    keyed = next(run for run in many if run.request_key)
    one, other = many[3], many[7]
    Run.objects.filter(id=one.id).update(business_id="customer:c-7")
    named = {
        str(one.id): one, one.id.hex: one, short_id(one.id): one, short_id(one.id).upper(): one,
        f"{one.id}:7": one, f"{short_id(one.id)}:12": one, str(keyed.request_key): keyed, "customer:c-7": one,
    }  # fmt: skip
    assert {text: matching(quoted(text)) == {run.id} for text, run in named.items()} == dict.fromkeys(named, True)
    assert matching(f"{short_id(one.id)} {other.id}") == {one.id, other.id}
    assert matching(f"-{short_id(one.id)}") == ids(many, lambda r: r.id != one.id)
    assert matching(ids_query([one.id, other.id])) == {one.id, other.id}


def test_ages_and_times_are_those_of_the_runs(many: list[Run]) -> None:
    now = timezone.now()
    day = timedelta(days=1)
    assert matching("age:>7d", now=now) == ids(many, lambda r: r.created_at < now - 7 * day)
    assert matching("age:<=7d", now=now) == ids(many, lambda r: r.created_at >= now - 7 * day)
    assert matching("-age:>7d", now=now) == matching("age:<=7d", now=now)
    assert matching("ended:<7d", now=now) == ids(many, lambda r: r.ended_at is not None and r.ended_at > now - 7 * day)
    at = many[100].created_at.replace(second=0, microsecond=0)
    text = at.strftime("%Y-%m-%dT%H:%MZ")
    assert matching(f"started:>={text}") == ids(many, lambda r: r.created_at >= at)
    assert matching(f"started:<{text}") == ids(many, lambda r: r.created_at < at)
    over = sorted(run.ended_at for run in many if run.ended_at is not None)
    first, last = over[len(over) // 4], over[len(over) // 2]
    told = f"ended:>={first:%Y-%m-%dT%H:%M:%S.%fZ} ended:<{last:%Y-%m-%dT%H:%M:%S.%fZ}"
    assert matching(told) == ids(many, lambda r: r.ended_at is not None and first <= r.ended_at < last)
    assert matching("ended:today ended:yesterday", now=now) == matching(
        f"ended:>={(now - day).date()} ended:<={now.date()}", now=now
    )


def test_a_day_is_the_readers(many: list[Run]) -> None:
    zone = ZoneInfo("Asia/Shanghai")
    day = many[100].created_at.astimezone(zone).date()
    on = ids(many, lambda r: r.created_at.astimezone(zone).date() == day)
    assert matching(f"started:{day}", zone=zone) == on and on
    assert matching(f"started:>{day}", zone=zone) == ids(many, lambda r: r.created_at.astimezone(zone).date() > day)
    assert matching(f"started:<={day}", zone=zone) == ids(many, lambda r: r.created_at.astimezone(zone).date() <= day)
    today = timezone.now().astimezone(zone).date()
    assert matching("started:today", zone=zone) == matching(f"started:{today}", zone=zone)


def test_forks_are_asked_for_by_what_they_were_forked_from(many: list[Run]) -> None:
    source, fork = many[0], many[1]
    Run.objects.filter(id=fork.id).update(forked_from=source, forked_at=1)
    assert matching(f"fork:{short_id(source.id)}") == {fork.id} == matching("has:fork")


def test_children_are_asked_for_by_their_parent(many: list[Run]) -> None:
    parent, child = many[0], many[1]
    Run.objects.filter(id=child.id).update(parent=parent, parent_step=1)
    assert matching(f"parent:{short_id(parent.id)}") == {child.id} == matching("has:parent")
    with pytest.raises(QueryInvalid, match="no such run") as refused:
        matching("status:held parent:r-zzzzzzzz")
    assert (refused.value.position, refused.value.length) == (12, 17)


def test_the_filters_of_the_api_hold_beside_the_query(many: list[Run]) -> None:
    found, _ = list_runs(query="status:done", agent="card-dispute", limit=1000)
    assert {run.id for run in found} == ids(many, lambda r: r.status == "done" and r.agent == "card-dispute")


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_pages_through_all_of_them_once(many: list[Run], order: str) -> None:
    found: list[UUID] = []
    after: str | None = None
    while True:
        page, after = page_of(parse(""), Reader(), order, after, limit=7)
        found += [run.id for run in page]
        if after is None:
            break
    wanted = ids(many, lambda r: order != "longest" or r.ended_at is None)
    assert len(found) == len(set(found)) and set(found) == wanted


@pytest.mark.parametrize("cursor", ["x", "1.x", "9.1.x", "-1.", "0.5", "0.99999999999999999999." + "0" * 32, "\0"])
def test_a_cursor_that_no_list_gave_is_refused(many: list[Run], cursor: str) -> None:
    for order in ORDERS:
        with pytest.raises(CursorUnknown):
            page_of(parse(""), Reader(), order, cursor)


# -- plans ------------------------------------------------------------------------------------------------------------

QUICK = [
    *(text for text in MEANT if text), "ended:>2001-01-31", "ended:today",
    "age:>7d", "age:<1h", "ended:<24h", "started:today", "tokens:>100000000",
    "cost:>100000", "epoch:>50", "r-7f3k9q2m", "has:question", "has:overbudget", "has:gate", "tool:nothing",
    "at:nothing", "region:nowhere", "label:no:thing", "agent:nobody", "status:failed ended:<24h",
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
def test_no_query_reads_the_whole_table(many: list[Run], order: str) -> None:
    """Where the table is small a planner rightly reads it whole; told not to, it must find another way for each."""
    plans = {}
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for text in QUICK:
            for part in ORDERS[order][1](runs_meant(parse(text), Reader())):
                with suppress(EmptyResultSet):  # nothing can match, and the database is not asked
                    sql, params = part.runs.order_by(*part.by).values("id")[:51].query.sql_with_params()
                    cursor.execute(f"EXPLAIN {sql}", params)
                    plans[text] = "\n".join(row[0] for row in cursor.fetchall())
    assert [text for text, plan in plans.items() if "Seq Scan on runs_run" in plan] == []


def test_a_release_that_nobody_knows_asks_for_nothing(db: None) -> None:
    assert Release.objects.count() == 0 and matching("release:x@1") == set()
