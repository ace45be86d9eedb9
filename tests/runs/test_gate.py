"""Gates: nothing in the scope is sent any more, the rest goes on, and what waited goes on when it is lifted."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from recovery.sweep import Sweep
from runs.commands import cancel_run
from runs.errors import GateExists, GateNotFound, GateScopeUnknown, ReasonMissing
from runs.gates import lift_gate, place_gate, sessions_behind
from runs.models import Gate, Run
from runs.open_gates import OpenGates
from runs.queries import entries_of
from runs.registry import agents, announce
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger, wait_until


@pytest.fixture
def crew(crew: Crew, settings: Any) -> Crew:
    settings.HOLDFAST_AGENTS = ("tests.runs.limited", "tests.rig.agents")
    agents.cache_clear()
    announce()
    return crew


@pytest.fixture
def sweep(crew: Crew) -> Iterator[Sweep]:
    sweep = Sweep(crew.dsn, lease=0.0, every=0.05, dispatch=crew.take)
    yield sweep
    sweep.close()


def gate(scope: str, reason: str = "look first") -> Gate:
    return place_gate(scope=scope, reason=reason, actor="olga")


def lift(scope: str) -> Gate:
    return lift_gate(scope=scope, reason="looked", actor="max")


SCOPES = ["all", "agent:keyed", "release:keyed@1"]


@pytest.mark.parametrize("scope", SCOPES)
def test_each_scope_takes_no_new_run_and_lets_it_go_on_when_it_is_lifted(
    crew: Crew, ledger: Ledger, sweep: Sweep, scope: str
) -> None:
    gate(scope)
    run_id = start("keyed")
    run = crew.advance(run_id)
    assert (run.status, run.reason, run.epoch) == ("queued", f"gate {scope}: look first", 0)
    crew.messages.clear()
    sweep.once()
    assert not crew.messages, "it is not sent while the gate is there"
    lift(scope)
    sweep.once()
    assert {message[0] for message in crew.messages} == {run_id}
    assert Run.objects.get(id=run_id).reason == "waits for a worker"
    assert crew.drive(run_id).status == "done"


@pytest.mark.parametrize("scope", SCOPES)
def test_each_scope_holds_what_is_on_its_way_at_the_next_step(
    crew: Crew, ledger: Ledger, sweep: Sweep, scope: str
) -> None:
    worker = crew.hire(lease=1.0)
    ledger.fault("charge", "delay", seconds=1.5)
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    scope = scope.replace("keyed", "chain")
    thread = threading.Thread(target=worker.advance, args=(run_id, Run.objects.get(id=run_id).release_id))
    thread.start()
    wait_until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    gate(scope)
    thread.join()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("held", f"gate {scope}: look first")
    assert journal(run_id).count("OBS:1") == 1, "what was under way has ended"
    lift(scope)
    ledger.clear_faults()
    sweep.once()
    assert crew.drive(run_id).status == "done"


@pytest.mark.parametrize("scope", ["worker:w1", "region:local"])
def test_a_gate_over_a_place_sends_runs_on_to_other_workers(
    crew: Crew, ledger: Ledger, sweep: Sweep, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.engine.at_gates.PASSED_ON_AFTER", 0.0)
    first = crew.hire(lease=1.0)
    ledger.fault("charge", "delay", seconds=1.5)
    run_id = start("chain", {"steps": 2, "effect": "keyed"})
    release = Run.objects.get(id=run_id).release_id
    thread = threading.Thread(target=first.advance, args=(run_id, release))
    thread.start()
    wait_until(lambda: ledger.calls(f"{run_id}:1"), "the call is under way")
    gate(scope)
    thread.join()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("queued", f"left its worker at a gate {scope}: look first")
    crew.messages.clear()
    first.advance(run_id, release)
    assert list(crew.messages) == [(run_id, release)], "it is passed on"
    assert Run.objects.get(id=run_id).epoch == run.epoch, "and not taken"
    ledger.clear_faults()
    Run.objects.filter(id=run_id).update(dispatched_at=None, since=Now() - timedelta(minutes=1))
    sweep.once()
    stranded = Run.objects.get(id=run_id)
    assert stranded.status == "waiting_for_version"
    assert stranded.reason == f"waits for a worker that serves chain@1: w1 is stopped by a gate over {scope}"
    second = crew.hire()
    second.session.region = "elsewhere"
    with second.connections.connection() as conn:
        conn.execute("UPDATE runs_workersession SET region = 'elsewhere' WHERE id = %s", (second.session.id,))
    crew.messages.clear()
    sweep.once()
    assert set(crew.messages) == {(run_id, release)}, "somebody came who may take it"
    assert crew.drive(run_id, second).status == "done"


def test_a_run_that_is_stranded_by_a_gate_over_a_place_goes_on_when_it_is_lifted(
    crew: Crew, ledger: Ledger, sweep: Sweep
) -> None:
    crew.hire()
    gate("worker:w1")
    run_id = start("keyed")
    Run.objects.filter(id=run_id).update(since=Now() - timedelta(seconds=10))
    sweep.once()
    assert Run.objects.get(id=run_id).status == "waiting_for_version"
    lift("worker:w1")
    crew.messages.clear()
    sweep.once()
    assert {message[0] for message in crew.messages} == {run_id}
    assert Run.objects.get(id=run_id).status == "queued"


def test_a_gate_over_a_worker_is_over_the_children_of_its_pool(crew: Crew) -> None:
    worker = crew.hire()
    worker.session.name, worker.session.pool = "w1-4711", "prefork"
    worker.hear(OpenGates({"worker:w1": "look"}, heard_at=5e9))
    assert worker.gate_here == "gate worker:w1: look"
    told: list[bool] = []
    worker.on_gate = told.append
    worker.hear(OpenGates({}, heard_at=6e9))
    worker.hear(OpenGates({"worker:w1-4711": "look"}, heard_at=7e9))
    worker.hear(OpenGates({"worker:w1-4711": "look", "worker:w1-47": "look"}, heard_at=8e9))
    assert told == [False, True]


@pytest.mark.parametrize("scope", ["agent:other", "release:keyed@2", "worker:w2", "region:eu", "tool:refund"])
def test_other_scopes_stop_nothing(crew: Crew, ledger: Ledger, scope: str) -> None:
    gate(scope)
    assert crew.drive(start("keyed")).status == "done"


def test_a_gate_on_a_tool_stops_its_calls_alone(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    gate("tool:letter")
    run_id = start("siblings", {"effects": ["unkeyed", "keyed", "read"]})
    run = crew.drive(run_id)
    assert (run.status, run.reason) == ("held", "gate tool:letter: look first")
    assert [slot.outcome for slot in state(run_id).slots.values()] == [None, "succeeded", "succeeded"]
    assert ledger.acted(f"{run_id}:1") == 0
    call = next(e for e in entries_of(run_id) if e.kind == "TOOL_CALL")
    assert call.body["gate"] == "gate"
    lift("tool:letter")
    sweep.once()
    assert crew.drive(run_id).status == "done"
    assert ledger.acted(f"{run_id}:1") == 1 and "ATTEMPT:1" in journal(run_id)


def test_a_gate_that_comes_later_stops_a_retry(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    ledger.fault("refund", "rate_limit", times=1, retry_after=0.2)
    run_id = start("keyed-probe")
    assert crew.advance(run_id).status == "waiting"
    gate("tool:refund")
    assert crew.drive(run_id).reason == "gate tool:refund: look first"
    assert ledger.acted(f"{run_id}:1") == 0
    lift("tool:refund")
    sweep.once()
    assert crew.drive(run_id).status == "done"


def test_of_two_gates_each_lifted_one_lets_go_what_it_stopped(crew: Crew, ledger: Ledger, sweep: Sweep) -> None:
    gate("tool:letter")
    gate("tool:charge", "too fast")
    run_id = start("siblings", {"effects": ["unkeyed", "keyed"]})
    assert crew.drive(run_id).reason == "gate tool:letter: look first; gate tool:charge: too fast"
    lift("tool:charge")
    sweep.once()
    run = crew.drive(run_id)
    assert (run.reason, ledger.acted(f"{run_id}:2")) == ("gate tool:letter: look first", 1)
    lift("tool:letter")
    sweep.once()
    assert crew.drive(run_id).status == "done"


def test_a_call_under_a_gate_gives_its_place_in_line_to_others(crew: Crew, ledger: Ledger) -> None:
    gate("tool:letter_one")
    assert crew.drive(start("one-letter")).status == "held"
    lift("tool:letter_one")
    assert crew.drive(start("one-letter")).status == "done"


def test_a_scope_has_one_gate_and_who_comes_second_learns_of_the_first(crew: Crew) -> None:
    first = gate("agent:keyed")
    with pytest.raises(GateExists, match=f"olga placed gate {first.pk} on agent:keyed at .*: look first"):
        gate("agent:keyed", "again")
    lifted = lift("agent:keyed")
    assert (lifted.lifted_by, lifted.lift_reason) == ("max", "looked") and lifted.lifted_at is not None
    with pytest.raises(GateNotFound):
        lift("agent:keyed")
    assert gate("agent:keyed").pk != first.pk


@pytest.mark.parametrize(
    "scope", ["", "every", "agent:", "agent:a b", "release:a", "release:a@", "tool:\0", "tool:" + 300 * "x"]
)
def test_a_scope_that_is_none_is_refused(db: None, scope: str) -> None:
    with pytest.raises(GateScopeUnknown):
        gate(scope)


def test_a_gate_needs_a_reason_to_be_placed_and_to_be_lifted(db: None) -> None:
    with pytest.raises(ReasonMissing):
        gate("all", " ")
    gate("all")
    with pytest.raises(ReasonMissing):
        lift_gate(scope="all", reason="", actor="max")


def test_a_gate_is_in_force_once_every_live_worker_has_renewed_since(crew: Crew) -> None:
    worker = crew.hire(lease=1.0)
    placed = gate("tool:letter")
    assert sessions_behind(placed) == ["w1"]
    wait_until(lambda: not sessions_behind(placed), "its heartbeat brings it")
    assert worker.gates.over("tool:letter") == "gate tool:letter: look first"
    lift("tool:letter")
    wait_until(lambda: not worker.gates.reasons, "its heartbeat brings that too")


def test_what_was_heard_before_never_replaces_what_was_heard_since(crew: Crew) -> None:
    worker = crew.hire()
    worker.hear(OpenGates({"all": "new"}, heard_at=5e9))
    worker.hear(OpenGates({}, heard_at=4e9))
    assert worker.gates.reasons == {"all": "new"}


def test_a_run_is_cancelled_under_a_gate_for_it_sends_nothing_more(crew: Crew, ledger: Ledger) -> None:
    run_id = start("signals", {"names": ["go"]})
    crew.drive(run_id)
    gate("all")
    cancel_run(run_id=run_id, reason="enough", actor="olga")
    assert crew.drive(run_id).status == "cancelled"


def test_children_born_under_a_gate_say_what_holds_them(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [{"agent": "keyed", "input": {}}]})
    crew.advance(run_id)
    gate("all")
    (child,) = Run.objects.filter(parent=run_id)
    assert (child.id, child.release_id) == crew.messages[-1]
    stopped = crew.advance(child.id)
    assert (stopped.status, stopped.reason) == ("queued", "gate all: look first")


def test_a_run_of_a_dead_worker_is_taken_over_at_a_gate_and_held_there(crew: Crew, ledger: Ledger) -> None:
    worker = crew.hire()
    run_id = start("signals", {"names": ["go"]})
    crew.drive(run_id, worker)
    gate("all")
    Run.objects.filter(id=run_id).update(status="running", session_id=worker.session.id)
    crew.lose(worker)
    held = crew.advance(run_id)
    assert (held.status, held.reason) == ("held", "gate all: look first")


def test_a_run_that_never_began_is_cancelled_under_a_gate(crew: Crew, ledger: Ledger) -> None:
    gate("all")
    run_id = start("keyed")
    crew.advance(run_id)
    cancel_run(run_id=run_id, reason="enough", actor="olga")
    assert crew.drive(run_id).status == "cancelled"
