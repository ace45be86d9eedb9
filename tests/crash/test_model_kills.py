"""Real workers killed around a model's request, in the middle of its answer, and frozen while it comes."""

import signal
import time
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from config.embedded.postgres import Postgres
from demo.providers.seen import Seen
from journal.entries import Entry, Kind
from runs.models import Evidence, Run
from runs.queries import entries_of
from tests.crash.asked import assert_asked_once, bodies, rounds_of
from tests.crash.proof import assert_done_once
from tests.crash.test_outages import server as server
from tests.rig import talks
from tests.rig.crew import start, state
from tests.rig.fleet import Fleet, Hand
from tests.rig.ledger import Ledger, wait_until
from tests.rig.providers import Providers

# Of the first answer (three calls side by side), or of the second and third.
POINTS = (
    "after-attempt", "before-model", "after-model", "before-plan", "after-plan", "before-intent", "before-effect:2",
    "after-effect:2", "after-attempt:2", "after-model:2", "before-plan:3", "before-done",
)  # fmt: skip
# Where the answer has come and is not committed: it is with its calls, or with the end, in one append.
LOSES_AN_ANSWER = ("after-model", "before-plan", "before-intent", "after-model:2", "before-plan:3", "before-done")
AGENTS = ("three-messages-streamed", "three-chat-whole", "three-responses-streamed")


def asked_by(providers: Providers, run_id: UUID) -> list[Seen]:
    """What this run asked, of all that was asked: no other has the same body, for each was started with other words."""
    digests = {entry.body.get("digest") for entry in entries_of(run_id) if entry.kind == Kind.ATTEMPT}
    return [seen for seen in providers.requests if seen.digest in digests]


@pytest.mark.slow
def test_killed_around_a_request_it_is_asked_again_only_without_an_answer(
    talking: Fleet, ledger: Ledger, providers: Providers
) -> None:
    talking.environment["HOLDFAST_LEASE_SECONDS"] = "60"
    runs: dict[str, UUID] = {}
    victims = []
    for number, point in enumerate(POINTS):
        victims.append(talking.worker(crash=point))
        runs[point] = start(AGENTS[number % len(AGENTS)], f"Look after order {point}.")
        assert victims[-1].dies() == -signal.SIGKILL, victims[-1].said()
    undisturbed = [start(agent, "Look after order none.") for agent in AGENTS]
    for victim in victims:
        talking.end(victim)
    talking.worker()
    talking.sweeper()
    wanted = {}
    for agent, run_id in zip(AGENTS, undisturbed, strict=True):
        assert_done_once(ledger, talking.rests(run_id))
        seen = asked_by(providers, run_id)
        assert [one.turn for one in seen] == [0, 1, 2]
        wanted[agent] = bodies(seen, "order none")
    for number, (point, run_id) in enumerate(runs.items()):
        assert_done_once(ledger, talking.rests(run_id))
        seen = asked_by(providers, run_id)
        assert_asked_once(run_id, seen)
        assert bodies(seen, f"order {point}") == wanted[AGENTS[number % len(AGENTS)]], point
        assert len(seen) == 3 + (point in LOSES_AN_ANSWER), (point, [one.turn for one in seen])
        assert state(run_id).done == state(undisturbed[0]).done


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["one-messages-streamed", "one-chat-streamed", "one-responses-streamed"])
def test_killed_in_the_middle_of_an_answer_its_half_is_no_answer(
    talking: Fleet, ledger: Ledger, providers: Providers, agent: str
) -> None:
    providers.fault("hold", turn=0, after=3)
    victim = talking.worker()
    run_id = start(agent, "Write.")
    talking.until(lambda: [seen.pieces for seen in providers.requests] == [3], "half of it has come")
    victim.send(signal.SIGKILL)
    talking.bury(victim)
    talking.worker()
    talking.sweeper()
    assert_done_once(ledger, talking.rests(run_id))
    seen = providers.requests
    assert_asked_once(run_id, seen)
    assert [one.turn for one in seen] == [0, 0, 1] and seen[0].body == seen[1].body
    (lost, asked), plan = rounds_of(entries_of(run_id))[0]
    assert plan is not None and asked.body["lost"]["seq"] == lost.seq
    assert asked.body["lost"]["output_tokens"] == 500 and 0 < asked.body["lost"]["input_tokens"] < 2_000
    assert not [e for e in entries_of(run_id) if e.kind == Kind.ERROR]
    talking.until(lambda: not talking.ask("SELECT 1 FROM runs_answer_under_way"), "the half is shown no longer")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while another asks", "when all is over"])
def test_the_late_answer_of_a_frozen_worker_changes_nothing(
    talking: Fleet, ledger: Ledger, providers: Providers, when: str
) -> None:
    """Its answer lies in its socket when it wakes; what its successor was told is what stands."""
    providers.fault("hold", turn=0)
    zombie = talking.worker()
    run_id = start("one-messages-whole", "Write.")
    talking.until(lambda: len(providers.requests) == 1, "the request is under way")
    zombie.send(signal.SIGSTOP)
    talking.until(lambda: providers.release() or providers.requests[0].answered, "it is answered")
    if when == "while another asks":
        providers.fault("hold", turn=0)
    talking.worker()
    talking.sweeper()
    if when == "while another asks":
        talking.until(lambda: len(providers.requests) == 2, "the other asks")
        before = entries_of(run_id)
        wakes(zombie)
        assert entries_of(run_id) == before
        talking.until(lambda: providers.release() or providers.requests[1].answered, "it is answered")
        assert_done_once(ledger, talking.rests(run_id))
    else:
        assert_done_once(ledger, talking.rests(run_id))
        rows = whole(run_id)
        wakes(zombie)
        assert whole(run_id) == rows
    assert_asked_once(run_id, providers.requests)
    assert [seen.turn for seen in providers.requests] == [0, 0, 1]
    (lost, asked), plan = rounds_of(entries_of(run_id))[0]
    assert plan is not None and (lost.epoch, plan.epoch) == (1, 2)
    assert plan.body["asked"] == asked.seq and plan.body["request_id"] == providers.requests[1].request_id
    assert not Evidence.objects.filter(run_id=run_id).exists()


def wakes(zombie: Hand) -> None:
    zombie.send(signal.SIGCONT)
    zombie.dies()


def whole(run_id: UUID) -> tuple[list[Entry], Any]:
    """The journal and the run row, every column."""
    return entries_of(run_id), Run.objects.filter(id=run_id).values().get()


@pytest.mark.slow
def test_a_drain_waits_for_an_answer_that_is_paid_for(talking: Fleet, ledger: Ledger, providers: Providers) -> None:
    providers.fault("hold", turn=0)
    first = talking.worker()
    run_id = start("one-chat-streamed", "Write.")
    talking.until(lambda: len(providers.requests) == 1, "the request is under way")
    first.send(signal.SIGTERM)
    drains = "SELECT 1 FROM runs_workersession WHERE id = %s AND draining_at IS NOT NULL"
    talking.until(lambda: talking.ask(drains, first.session), "it drains")
    talking.until(lambda: providers.release() or providers.requests[0].answered, "it is answered")
    assert first.dies() == 0, first.said()
    attempts, plan = rounds_of(entries_of(run_id))[0]
    assert plan is not None and (len(attempts), plan.epoch) == (1, 1)
    assert Run.objects.get(id=run_id).status == "queued"
    talking.worker()
    talking.sweeper()
    assert_done_once(ledger, talking.rests(run_id))
    assert_asked_once(run_id, providers.requests)
    assert [seen.turn for seen in providers.requests] == [0, 1]
    assert [slot.tool for slot in state(run_id).slots.values()] == ["letter"]


AWAY = 3.0  # seconds


@pytest.mark.slow
def test_an_answer_that_comes_while_the_database_is_away_is_kept_for_it(
    talking: Fleet, ledger: Ledger, providers: Providers, server: Postgres, settings: Any
) -> None:
    talking.environment["HOLDFAST_LEASE_SECONDS"] = str(AWAY * 2)
    talks.use(settings, providers)
    providers.fault("hold", turn=0)
    worker = talking.worker()
    talking.await_session(worker)
    talking.sweeper()
    run_id = start("three-messages-streamed", "Look after it.")
    talking.until(lambda: len(providers.requests) == 1, "the request is under way")
    connection.close()
    server.stop(signal.SIGQUIT)
    gone = time.monotonic()
    wait_until(lambda: providers.release() or providers.requests[0].answered, "it is answered")
    wait_until(lambda: time.monotonic() > gone + AWAY, "the answer waits for the database")
    process = server.start()
    process.returncode = 0  # the fixture stops it
    run = talking.rests(run_id)
    assert_done_once(ledger, run)
    assert_asked_once(run_id, providers.requests)
    assert (run.epoch, [seen.turn for seen in providers.requests]) == (1, [0, 1, 2])
