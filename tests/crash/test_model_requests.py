"""What happens to a run while its model thinks: people act, time runs out, the database and the store go away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from journal.entries import Entry, Kind
from journal.errors import PayloadStoreDown
from journal.payloads import Pointer
from runs.commands import cancel_run, hold_run, resume_run, signal_run
from runs.engine.worker import Worker
from runs.models import Run
from runs.queries import entries_of
from tests.crash.asked import assert_asked_once, rounds_of
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import Crew, start, state, told
from tests.rig.ledger import Ledger, wait_until
from tests.rig.providers import Providers
from tests.rig.robot import Robot

LEASE = 3.0  # seconds; a slice hears of people at each third of it


@contextmanager
def asking(desk: Crew, providers: Providers, agent: str) -> Iterator[tuple[UUID, Worker]]:
    """A run whose first request is under way in the block; a slice of it is over behind it."""
    providers.fault("hold", turn=0)
    worker = desk.hire(LEASE)
    run_id = start(agent, "Look after it.")
    slice_of_it = threading.Thread(target=worker.advance, args=(run_id, Run.objects.get(id=run_id).release_id))
    slice_of_it.start()
    try:
        wait_until(lambda: len(providers.requests) == 1, "the request is under way")
        yield run_id, worker
    finally:
        wait_until(lambda: goes_on(providers, slice_of_it), "the slice is over")


def goes_on(providers: Providers, slice_of_it: threading.Thread) -> bool:
    providers.release()  # again and again: the request that is there is not held yet, perhaps
    slice_of_it.join(0.05)
    return not slice_of_it.is_alive()


def model_entries(run_id: UUID, kind: Kind) -> list[Entry]:
    return [entry for entry in entries_of(run_id) if entry.kind == kind and entry.step is None]


def turns_asked(providers: Providers) -> list[int | None]:
    return [seen.turn for seen in providers.requests]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["one-messages-whole", "one-chat-streamed"])
def test_cancelled_while_it_asks_it_hangs_up_and_ends(desk: Crew, providers: Providers, agent: str) -> None:
    with asking(desk, providers, agent) as (run_id, _):
        cancel_run(run_id=run_id, reason="not needed", actor="olga")
        wait_until(lambda: Run.objects.get(id=run_id).status == "cancelled", "it is cancelled, and nobody waits longer")
        wait_until(lambda: providers.requests[0].gone, "the request is given up")
    assert_whole(run_id)
    assert turns_asked(providers) == [0] and state(run_id).slots == {}


@pytest.mark.slow
def test_held_while_it_asks_the_answer_is_kept_and_not_asked_for_again(
    desk: Crew, ledger: Ledger, providers: Providers
) -> None:
    with asking(desk, providers, "one-messages-whole") as (run_id, _):
        hold_run(run_id=run_id, reason="wait", actor="olga")
    run = Run.objects.get(id=run_id)
    assert run.status == "held" and len(rounds_of(entries_of(run_id))) == 1, told(run)
    assert state(run_id).slots == {}, "nothing is sent while it is held"
    resume_run(run_id=run_id, reason="go on", actor="olga")
    desk.drive_out(Robot(ledger.acted), run_id)
    assert_done_once(ledger, Run.objects.get(id=run_id))
    assert [slot.tool for slot in state(run_id).slots.values()] == ["letter"], "and what it decided is done"
    assert_asked_once(run_id, providers.requests)
    assert turns_asked(providers) == [0, 1]


@pytest.mark.slow
def test_a_message_that_comes_while_it_answers_is_read_before_it_ends(desk: Crew, providers: Providers) -> None:
    with asking(desk, providers, "listens") as (run_id, _):
        signal_run(run_id=run_id, name="message", payload="and hurry", signal_id="1", actor="ada")
    desk.drive_out(Robot(lambda key: 0), run_id)
    done = state(run_id).done
    assert done is not None and done["result"] == "I was told: Look after it.; and hurry", told(
        Run.objects.get(id=run_id)
    )
    assert_whole(run_id)
    assert_asked_once(run_id, providers.requests)
    assert turns_asked(providers) == [0, 1]
    first, _ = (plan for _, plan in rounds_of(entries_of(run_id)))
    assert first is not None and first.body["moves"] == [{"finish": "I was told: Look after it."}]


@pytest.mark.slow
def test_a_message_beside_calls_is_told_with_their_results(desk: Crew, ledger: Ledger, providers: Providers) -> None:
    """The calls were paid for and are made; nobody asks for them again because somebody spoke."""
    with asking(desk, providers, "hears-beside") as (run_id, _):
        signal_run(run_id=run_id, name="message", payload="and hurry", signal_id="1", actor="ada")
    desk.drive_out(Robot(ledger.acted), run_id)
    assert_done_once(ledger, Run.objects.get(id=run_id))
    done = state(run_id).done
    assert done is not None and done["result"] == "I was told: Look after it.; and hurry"
    assert_asked_once(run_id, providers.requests)
    assert turns_asked(providers) == [0, 1]


@pytest.mark.slow
def test_an_answer_that_does_not_come_in_time_is_asked_for_again_later(
    desk: Crew, ledger: Ledger, providers: Providers
) -> None:
    with asking(desk, providers, "hurried") as (run_id, _):
        wait_until(lambda: Run.objects.get(id=run_id).status == "waiting", "it waits for the next try")
        run = Run.objects.get(id=run_id)
        assert run.session_id is None and run.wake_at is not None, "it holds no worker"
        wait_until(lambda: providers.requests[0].gone, "the request is given up")
    (error,) = model_entries(run_id, Kind.ERROR)
    assert error.body["code"] == "timeout" and error.body["model"] == "openai-chat:hurried", error.body
    desk.drive_out(Robot(ledger.acted), run_id)
    assert_done_once(ledger, Run.objects.get(id=run_id))
    assert_asked_once(run_id, providers.requests)
    assert turns_asked(providers) == [0, 0, 1]


@pytest.mark.slow
def test_an_answer_outlives_a_payload_store_that_is_down(
    desk: Crew, ledger: Ledger, providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[float] = []
    with asking(desk, providers, "large") as (run_id, worker):
        down = breaks(monkeypatch, worker, tried)
        wait_until(lambda: providers.release() or len(tried) > 3, "it is tried again and again")
        assert rounds_of(entries_of(run_id))[0][1] is None
        down.clear()
    wait_until(lambda: rounds_of(entries_of(run_id))[0][1], "the answer is in the journal")
    desk.drive_out(Robot(ledger.acted), run_id)
    assert_done_once(ledger, Run.objects.get(id=run_id))
    assert_asked_once(run_id, providers.requests)
    assert turns_asked(providers) == [0, 1], "what was paid for is not asked for again"
    plan = model_entries(run_id, Kind.PLAN)[0]
    assert isinstance(plan.body["response"], Pointer)


def breaks(monkeypatch: pytest.MonkeyPatch, worker: Worker, tried: list[float]) -> threading.Event:
    """This worker's store is down while the event is set."""
    down, works = threading.Event(), worker.store.put
    down.set()

    def put(run_id: UUID, value: object) -> Pointer:
        tried.append(time.monotonic())
        if down.is_set():
            raise PayloadStoreDown("nobody answers")
        return works(run_id, value)

    monkeypatch.setattr(worker.store, "put", put)
    return down


@pytest.mark.slow
def test_with_every_provider_down_the_run_waits_without_a_worker_and_asks_in_order(
    desk: Crew, ledger: Ledger, providers: Providers
) -> None:
    run_id = start("either", "Look after it.")
    with providers.away():
        run = desk.advance(run_id)
        assert (run.status, run.session_id) == ("waiting", None) and run.wake_at is not None, told(run)
        asked = [entry.body["model"] for entry in model_entries(run_id, Kind.ATTEMPT)]
        assert asked == ["anthropic:one", "openai-chat:one"]
        assert {entry.body["code"] for entry in model_entries(run_id, Kind.ERROR)} == {"connection_lost"}
    desk.drive_out(Robot(ledger.acted), run_id)
    assert_done_once(ledger, Run.objects.get(id=run_id))
    assert_asked_once(run_id, providers.requests)
    assert turns_asked(providers) == [0, 1]
    assert providers.requests[-1].dialect == "messages", "whoever had rested enough answers; then the order begins anew"


@pytest.mark.slow
def test_a_model_that_is_down_is_passed_over_and_asked_first_again_in_the_next_turn(
    desk: Crew, ledger: Ledger, providers: Providers
) -> None:
    """Without a word of waiting: the other one answers at once."""
    providers.service.faults.clear()
    providers.script("one", lambda asked: ["The letter is sent."][asked.turn])
    providers.fault("overloaded", turn=0, retry_after=3600)
    run_id = start("either", "Look after it.")
    run = desk.drive(run_id)
    assert run.status == "done", told(run)
    assert [seen.dialect for seen in providers.requests] == ["messages", "chat"]
    assert_asked_once(run_id, providers.requests)
