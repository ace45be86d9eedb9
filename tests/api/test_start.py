"""POST /runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import kombu.pools
import pytest

from config.celery import app
from runs import registry
from runs.models import Run
from tests.api import agents
from tests.api.conftest import Cast, Desk, all_at_once, problem

ORDER = {"agent": "desk", "input": {"amount_cents": 100}}


def test_a_run_is_made_and_told_whole(cast: Cast, desk: Desk) -> None:
    answer = cast("olga").post("/runs", ORDER | {"labels": {"team": "a"}})
    assert answer.status_code == 201
    made = answer.json()
    assert made["status"] == "queued" and made["last_seq"] == 1 and made["labels"] == {"team": "a"}
    assert made["pin"]["agent"] == "desk" and made["pin"]["version"] == "1" and len(made["pin"]["release"]) == 64
    assert made["since"].endswith("Z")
    assert cast("victor").get(f"/runs/{made['id']}").json() == made
    assert cast("victor").get(f"/runs/{made['name']}").json() == made
    start = cast("victor").get(f"/runs/{made['id']}/journal").json()["items"][0]
    assert start["kind"] == "START" and start["actor"] == "olga" and start["body"]["input"] == {"amount_cents": 100}


def test_waiting_answers_with_the_result(cast: Cast, desk: Desk) -> None:
    with desk.at_work():
        made = cast("olga").post("/runs", ORDER | {"wait": 20}).json()
    assert made["status"] == "done" and made["result"] == {"refunded": 100}
    assert made["ended_at"] and made["error"] is None


def test_waiting_ends_when_the_run_parks(cast: Cast, desk: Desk) -> None:
    with desk.at_work():
        made = cast("olga").post("/runs", ORDER | {"input": {"amount_cents": 9_000}, "wait": 20}).json()
    assert made["status"] == "awaiting_approval"


def test_waiting_ends_with_the_time_that_was_given(cast: Cast, desk: Desk) -> None:
    assert cast("olga").post("/runs", ORDER | {"wait": 0.05}).json()["status"] == "queued"


def test_a_result_that_json_does_not_know_is_tagged(cast: Cast, desk: Desk) -> None:
    with desk.at_work():
        answer = cast("olga").post("/runs", {"agent": "looker", "wait": 20})
    assert b"NaN" not in answer.content.replace(b'"NaN"', b"").replace(b'"nan"', b"")
    result = answer.json()["result"]
    assert result["nan"]["$"] and result["bytes"]["$"] and result["text"] == "<b>\0</b>"


def test_the_same_key_and_content_give_the_same_run(cast: Cast, desk: Desk) -> None:
    first = cast("olga").post("/runs", ORDER | {"request_key": "ticket-9"})
    again = cast("max").post("/runs", ORDER | {"request_key": "ticket-9"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]


def test_the_same_key_with_other_content_is_409_and_names_the_run(cast: Cast, desk: Desk) -> None:
    first = cast("olga").post("/runs", ORDER | {"request_key": "ticket-9"}).json()
    for other in ({"input": {"amount_cents": 101}}, {"labels": {"team": "b"}}, {"release": "1"}):
        refusal = problem(cast("olga").post("/runs", ORDER | {"request_key": "ticket-9"} | other))
        assert refusal["status"] == 409 and refusal["run_id"] == first["id"]
    assert Run.objects.count() == 1


def test_twenty_starts_at_once_with_one_key_make_one_run(cast: Cast, desk: Desk) -> None:
    body = ORDER | {"request_key": "ticket-9"}
    callers = [cast("olga"), cast("max")]
    answers = all_at_once([lambda n=n: callers[n % 2].post("/runs", body) for n in range(20)])  # type: ignore[misc]
    assert {answer.status_code for answer in answers} <= {200, 201}
    assert [answer.status_code for answer in answers].count(201) == 1
    assert len({answer.json()["id"] for answer in answers}) == Run.objects.count() == 1
    desk.work()
    assert len(agents.CALLS) == 1


def test_what_is_not_known_is_422_and_makes_nothing(cast: Cast, desk: Desk) -> None:
    wrong: list[dict[str, Any]] = [{"agent": "nobody"}, {"release": "99"}, {"labels": {"a:b": "c"}}]
    for body in wrong:
        assert problem(cast("olga").post("/runs", ORDER | body))["status"] == 422
    assert not Run.objects.exists()


def test_a_module_of_agents_that_cannot_be_imported_is_named(cast: Cast, desk: Desk, settings: Any) -> None:
    settings.HOLDFAST_AGENTS = ("no.such.module",)
    registry.agents.cache_clear()
    said = problem(cast("olga").post("/runs", ORDER))
    assert said["status"] == 503 and "no.such.module, which cannot be imported" in said["detail"]


def test_text_with_nul_and_half_a_surrogate_comes_back_as_it_was(cast: Cast, desk: Desk) -> None:
    sent = b'{"agent": "desk", "input": {"amount_cents": 1, "a": "\\u0000", "b": "\\\\u0000", "c": "\\ud800"}}'
    made = cast("olga").post("/runs", sent).json()
    entry = cast("victor").get(f"/runs/{made['id']}/journal").json()["items"][0]
    assert entry["body"]["input"]["a"] == "\0" and entry["body"]["input"]["b"] == "\\u0000"


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(app.conf, "broker_url", "redis+socket:///nowhere/broker.sock")
    forget_broker()
    yield
    forget_broker()


def forget_broker() -> None:
    kombu.pools.reset()
    app._pool = None
    app.amqp._producer_pool = None


def test_with_the_broker_away_the_run_is_made_all_the_same(cast: Cast, desk: Desk, no_broker: None) -> None:
    cast("olga").post("/runs", ORDER)  # imports what publishing needs
    began = time.monotonic()
    answer = cast("olga").post("/runs", ORDER)
    assert answer.status_code == 201 and answer.json()["status"] == "queued"
    assert time.monotonic() - began < 20


def test_an_input_that_the_agent_does_not_take_is_refused_field_by_field(cast: Cast, desk: Desk) -> None:
    said = problem(cast("olga").post("/runs", {"agent": "typed", "input": [1, "two"]}))
    assert said["status"] == 422 and said["type"].endswith(":input-refused")
    assert said["errors"] == [{"field": "input.1", "message": 'It is not of type "integer"'}]
    assert "two" not in said["detail"] and not Run.objects.exists()
    assert cast("olga").post("/runs", {"agent": "typed", "input": [1, 2]}).status_code == 201
