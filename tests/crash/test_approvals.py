"""Workers killed while they ask for approval anew, let it expire or remind of it; and many people at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from runs.errors import AlreadyDecided
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.runs.policing import approvals, edit, listed, result, say, sent, the_slot, verdicts


@pytest.fixture
def desk(fleet: Fleet, settings: Any) -> Iterator[Fleet]:
    """On the agents of tests.runs.policed."""
    settings.HOLDFAST_AGENTS = ("tests.runs.policed",)
    agents.cache_clear()
    announce()
    fleet.environment |= {"HOLDFAST_AGENTS": "tests.runs.policed"}
    fleet.sweeper()
    yield fleet
    agents.cache_clear()


def asks(desk: Fleet, **policy: Any) -> UUID:
    run_id = start("pays", {"amount_cents": 400, "policy": policy or None})
    waiting(desk, run_id)
    return run_id


def waiting(desk: Fleet, run_id: UUID) -> None:
    desk.until(lambda: Run.objects.get(id=run_id).status == "awaiting_approval", "it waits for approval")


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-approval:2", "after-approval:2"])
def test_killed_while_asking_anew_after_an_edit(desk: Fleet, ledger: Ledger, point: str) -> None:
    victim = desk.worker(crash=point)
    run_id = asks(desk)
    edit(run_id, amount_cents=200)
    desk.bury(victim)
    desk.worker()
    desk.until(lambda: verdicts(run_id)[-1] == "requested" and listed_as_waiting(run_id), "it is asked for anew")
    assert verdicts(run_id) == ["requested", "edited", "requested"] and sent(ledger, run_id) == []
    say(run_id, actor="max")
    assert_done_once(ledger, desk.rests(run_id))
    assert sent(ledger, run_id) == [200]


def listed_as_waiting(run_id: UUID) -> bool:
    run = Run.objects.get(id=run_id)
    return run.status == "awaiting_approval" and run.session_id is None and bool(run.intents)


@pytest.mark.slow
@pytest.mark.parametrize("on_expiry", ["deny", "park"])
@pytest.mark.parametrize("point", ["before-approval:2", "after-approval:2"])
def test_killed_while_writing_that_it_expired(desk: Fleet, ledger: Ledger, point: str, on_expiry: str) -> None:
    victim = desk.worker(crash=point)
    run_id = asks(desk, ttl=2, on_expiry=on_expiry)
    desk.bury(victim)
    desk.worker()
    if on_expiry == "deny":
        desk.until(lambda: Run.objects.get(id=run_id).status == "done", "the agent hears of it")
        assert result(run_id)["outcome"] == "expired"
    else:
        desk.until(lambda: "expired at" in Run.objects.get(id=run_id).reason, "it says that it expired")
        assert listed(run_id)["expired"]
    assert verdicts(run_id) == ["requested", "expired"] and sent(ledger, run_id) == []
    assert_whole(run_id)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-note", "after-note"])
def test_killed_while_reminding(desk: Fleet, ledger: Ledger, point: str) -> None:
    victim = desk.worker(crash=point)
    run_id = asks(desk, remind_every=1)
    desk.bury(victim)
    desk.worker()
    desk.until(lambda: len(reminders(run_id)) >= 2, "it is reminded of")
    desk.until(lambda: listed_as_waiting(run_id), "it waits")
    assert reminders(run_id) == sorted(set(reminders(run_id)))
    say(run_id)
    assert_done_once(ledger, desk.rests(run_id))


def reminders(run_id: UUID) -> list[int]:
    return [entry.body["reminder"] for entry in entries_of(run_id) if "reminder" in entry.body]


@pytest.mark.slow
def test_twenty_approvals_and_a_rejection_at_once_are_one_decision(desk: Fleet, ledger: Ledger) -> None:
    for _ in range(2):
        desk.worker()
    run_id = asks(desk)
    digest, barrier = the_slot(run_id).digest, threading.Barrier(21)

    def one(n: int) -> bool:
        barrier.wait(60)
        try:
            verdict, actor = ("deny", "mia") if n == 20 else ("approve", ("ada", "max")[n % 2])
            say(run_id, verdict, actor, digest=digest)
        except AlreadyDecided as late:
            assert (late.actor, late.verdict) == (approvals(run_id)[1].actor, verdicts(run_id)[1])
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(21) as pool:
        assert sum(pool.map(one, range(21))) == 1
    run = desk.rests(run_id)
    assert run.status == "done" and len(verdicts(run_id)) == 2
    assert len(sent(ledger, run_id)) == (verdicts(run_id)[1] == "granted")
    assert ledger.calls(f"{run_id}:1") == len(sent(ledger, run_id))
