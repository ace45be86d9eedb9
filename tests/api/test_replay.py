"""POST /runs/{id}/replay: the journal decided again by a worker, and nothing of the run changed."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from recovery import replay_api
from recovery.models import Replay
from recovery.replay_work import carry_out
from runs import registry
from runs.access import set_scope
from runs.models import Release, Run, WorkerSession
from runs.sdk import Call, RunView
from tests.api.agents import refund
from tests.api.conftest import Cast, Desk, problem

Moves = Generator[Any, Any, Any]


@pytest.fixture
def done(desk: Desk, cast: Cast) -> str:
    """A run that has refunded 700 cents."""
    run_id = cast("olga").post("/runs", {"agent": "desk", "input": {"amount_cents": 700}}).json()["id"]
    desk.work()
    assert Run.objects.get(id=run_id).status == "done"
    return str(run_id)


@contextmanager
def deciding(desk: Desk) -> Iterator[None]:
    """Its worker carries out what is ordered."""
    stop = threading.Event()

    def loop() -> None:
        try:
            while not stop.wait(0.01):
                for replay in Replay.objects.filter(ended_at=None):
                    carry_out(desk.worker, replay.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def test_a_run_is_decided_again_under_its_own_release(desk: Desk, cast: Cast, done: str) -> None:
    with deciding(desk):
        answer = cast("olga").post(f"/runs/{done}/replay", {})
    assert answer.status_code == 200
    found = answer.json()
    assert (found["verdict"], found["divergences"], found["compared"], found["of"]) == ("same", [], 2, 2)
    assert (found["release"], found["actor"], found["calls"], found["error"]) == ("desk@1", "olga", 1, None)
    assert cast("victor").get(f"/replays/{found['id']}").json() == found


def test_what_differs_is_told_with_both_moves(
    desk: Desk, cast: Cast, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(run: RunView) -> Moves:
        return (yield Call(refund, amount_cents=9_000))

    monkeypatch.setattr(registry.agents()[Run.objects.get(id=done).release_id], "flow", other)
    with deciding(desk):
        found = cast("olga").post(f"/runs/{done}/replay", {"release": "1"}).json()
    assert found["verdict"] == "diverged" and found["first"] == 3
    first, gate = found["divergences"]
    assert (first["seq"], first["kind"], first["effect"]) == (3, "arguments", True)
    assert first["recorded"] == [{"call": "refund", "args": {"amount_cents": 700}}]
    assert first["attempted"] == [{"call": "refund", "args": {"amount_cents": 9_000}}]
    assert gate["kind"] == "gate" and gate["says"].endswith("and would wait for approval by approver now.")


def test_an_order_that_no_worker_takes_in_time_is_202_and_can_be_looked_at(
    desk: Desk, cast: Cast, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_api, "WAIT", 0.05)
    answer = cast("olga").post(f"/runs/{done}/replay", {"at": 3})
    assert answer.status_code == 202 and answer.json()["ended_at"] is None
    carry_out(desk.worker, answer.json()["id"])
    found = cast("olga").get(f"/replays/{answer.json()['id']}").json()
    assert (found["verdict"], found["as_of_seq"], found["compared"]) == ("same", 3, 1)


def test_what_cannot_be_decided_is_refused_in_words(desk: Desk, cast: Cast, done: str) -> None:
    olga = cast("olga")
    assert "desk has 1, not 9" in problem(olga.post(f"/runs/{done}/replay", {"release": "9"}))["detail"]
    assert olga.post(f"/runs/{done}/replay", {"release": "a\0b"}).status_code == 422
    Release.objects.create(id="f" * 64, agent="desk", version="9", content={})
    assert "No live worker" in problem(olga.post(f"/runs/{done}/replay", {"release": "desk@9"}))["detail"]
    assert "asks no model" in problem(olga.post(f"/runs/{done}/replay", {"ask_model": True}))["detail"]
    assert olga.post(f"/runs/{done}/replay", {"at": 0}).status_code == 422
    assert "no entry 99" in problem(olga.post(f"/runs/{done}/replay", {"at": 99}))["detail"]
    assert olga.post("/runs/r-0000000/replay", {}).status_code == 404
    assert olga.get("/replays/77").status_code == 404
    WorkerSession.objects.update(draining_at="2026-01-01T00:00Z")
    assert olga.post(f"/runs/{done}/replay", {}).status_code == 409
    assert not Replay.objects.exists()


def test_too_many_at_once_are_429(desk: Desk, cast: Cast, done: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_api, "WAIT", 0.0)
    answers = [cast("olga").post(f"/runs/{done}/replay", {}) for _ in range(9)]
    assert [answer.status_code for answer in answers] == [202] * 8 + [429]
    assert "at most 8 at once" in problem(answers[-1])["detail"]


def test_a_run_outside_of_ones_agents_is_not_there(desk: Desk, cast: Cast, done: str) -> None:
    with deciding(desk):
        made = cast("olga").post(f"/runs/{done}/replay", {}).json()
    olga, victor = cast("olga"), cast("victor")
    for name in ("olga", "victor"):
        set_scope(name, ["another"], actor="max")
    assert olga.post(f"/runs/{done}/replay", {}).status_code == 404
    assert victor.get(f"/replays/{made['id']}").status_code == 404
