"""What models used is written with the answers, once, and added up by day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from journal.append import append_person
from journal.committer import Append, Committer
from journal.entries import Draft, Kind
from runs.engine.projections import RunsProjection, Then
from runs.registry import agents, announce
from runs.spending import FOLDS_AFTER, Spending, Sum, fold_spending, spending_of, spent_in
from tests.pages.conversations import MODEL, Conversation
from tests.rig.crew import Crew, start

TODAY = datetime.now(UTC).date()


def told(since: date = TODAY - timedelta(days=1), only: list[str] | None = None) -> list[Spending]:
    with connection.cursor() as cursor:
        return spending_of(cursor, since, TODAY + timedelta(days=1), only)


def total() -> Sum:
    return sum((one.sum for one in told()), Sum())


def answer(cost: str | None = "0.0123", **more: Any) -> Draft:
    usage: dict[str, Any] = {"requests": 1, "input_tokens": 1_000, "output_tokens": 200, "cache_read_tokens": 900}
    usage |= {"cost": float(cost)} if cost is not None else {}
    body = {"seen": 1, "usage": usage, "model": "claude-haiku-4-5", "provider": "anthropic", "cost": cost} | more
    return Draft(Kind.PLAN, body, actor="model")


@pytest.fixture
def committer(dsn: str) -> Iterator[Committer]:
    found = Committer(dsn, RunsProjection())
    yield found
    found.close()


def append(run: UUID, number: int, seen: int, *batch: Draft) -> Append:
    return Append(run, 1, number, seen, list(batch), Then(spent=spent_in(batch, "support", "51f3" * 16)))


def held() -> Conversation:
    story = Conversation()
    story.claimed()
    return story


def test_an_answer_is_counted_with_its_append(committer: Committer) -> None:
    story = held()
    assert committer.append(append(story.run.id, 1, 1, answer())).verdict == "written"
    (one,) = told()
    assert (one.agent, one.model, one.release) == ("support", "anthropic:claude-haiku-4-5", "51f3" * 16)
    assert one.sum == Sum(1, 0, 1_000, 200, 900, Decimal("0.0123"))


def test_an_append_that_is_sent_again_is_not_counted_again(committer: Committer) -> None:
    story = held()
    same = append(story.run.id, 1, 1, answer())
    assert [committer.append(same).verdict for _ in range(3)] == ["written", "already", "already"]
    assert total().requests == 1


def test_an_answer_is_counted_though_what_it_decided_is_refused(committer: Committer) -> None:
    story = held()
    append_person(
        story.run.id, [Draft(Kind.SIGNAL, {"name": "message", "payload": "wait"})], request_id=None, actor="olga"
    )
    note = Draft(Kind.NOTE, {"text": "x"}, decision=True)
    batch = append(story.run.id, 1, 1, note, answer(), Draft(Kind.NOTE, {"text": "y"}, decision=True))
    assert committer.append(batch).verdict == "refused"
    assert committer.append(batch).verdict == "refused"
    assert total().requests == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT s.seq, e.kind FROM runs_request_spent s JOIN journal_entry e USING (run_id, seq)")
        assert cursor.fetchall() == [(3, "PLAN")]


def test_a_worker_that_lost_its_run_counts_nothing(committer: Committer) -> None:
    story = held()
    story.claimed()
    assert committer.append(append(story.run.id, 1, 1, answer())).verdict == "lost"
    assert told() == []


def test_a_price_that_nobody_knows_is_counted_as_unknown(committer: Committer) -> None:
    story = held()
    committer.append(append(story.run.id, 1, 1, answer(cost=None)))
    committer.append(append(story.run.id, 2, 2, answer()))
    found = total()
    assert (found.requests, found.unpriced, found.cost) == (2, 1, Decimal("0.0123"))


def test_a_lost_request_is_told_apart(committer: Committer) -> None:
    story = held()
    lost = {"seq": 2, "input_tokens": 4_000, "output_tokens": 2_048, "cost": "0.0421"}
    attempt = Draft(Kind.ATTEMPT, {"attempt": 1, "source": "model", "model": MODEL, "lost": lost}, decision=True)
    committer.append(append(story.run.id, 1, 1, attempt))
    attempt = Draft(Kind.ATTEMPT, {"attempt": 1, "source": "model", "model": MODEL, "lost": lost | {"cost": None}})
    committer.append(append(story.run.id, 2, 2, attempt))
    assert total() == Sum(lost=2, lost_unpriced=1, lost_cost=Decimal("0.0421"))


@pytest.mark.parametrize(
    "usage",
    [{"input_tokens": 1e300, "output_tokens": -5}, {"tokens": float("nan")}, {"input_tokens": "x"}, {"cost": "\0"}, 7],
)  # fmt: skip
def test_no_number_costs_an_answer_its_append(committer: Committer, usage: Any) -> None:
    story = held()
    told = answer(model="m\0" * 300, usage=usage) if isinstance(usage, dict) else answer(usage=usage)
    assert committer.append(append(story.run.id, 1, 1, told)).verdict == "written"


def test_days_that_are_over_are_added_up_once_and_read_as_before(committer: Committer) -> None:
    story = held()
    for number in range(1, 6):
        committer.append(append(story.run.id, number, number, answer(cost=None if number == 5 else "0.5")))
    old = TODAY - timedelta(days=FOLDS_AFTER + 1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_request_spent SET day = %s WHERE seq < 4", [old])
    before = told(old)
    for _ in range(3):
        with connection.cursor() as cursor:
            fold_spending(cursor)
    assert told(old) == before and [one.sum.requests for one in before] == [2, 3]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM runs_request_spent")
        assert cursor.fetchone() == (3,)
    assert told(old, ["support"]) == before and told(old, ["another"]) == []


def test_a_function_that_uses_nothing_is_not_there() -> None:
    plan = Draft(Kind.PLAN, {"seen": 1, "moves": [], "usage": {}}, actor="model")
    assert spent_in([plan, Draft(Kind.PLAN, {"seen": 1})], "a", "r") == []


def test_a_worker_counts_what_its_runs_use(crew: Crew, settings: Any) -> None:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited",)
    agents.cache_clear()
    announce()
    assert crew.drive(start("tokens", {"calls": 1})).status == "done"
    found = [one for one in told() if one.agent == "tokens"]
    assert sum(one.sum.tokens for one in found) > 0 and all(one.sum.unpriced == 0 for one in found)
