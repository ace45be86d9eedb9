"""The sweep re-queues what nobody drives, robs nobody, and says of each run that cannot move why."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from recovery.sweep import Sweep
from runs.gates import lift_gate, place_gate
from runs.models import Run, WorkerSession
from tests.rig.crew import CrashHere, Crew, start
from tests.rig.ledger import Ledger, wait_until


@pytest.fixture
def sent() -> list[UUID]:
    return []


@pytest.fixture
def sweep(crew: Crew, sent: list[UUID]) -> Iterator[Sweep]:
    def take(run_id: UUID, release_id: str) -> bool:
        sent.append(run_id)
        return True

    sweep = Sweep(crew.dsn, lease=0.0, every=0.05, dispatch=take)
    yield sweep
    sweep.close()


def execute(crew: Crew, statement: str, *given: Any) -> None:
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        conn.execute(statement, given)  # type: ignore[arg-type]


def orphan(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, UUID]:
    """A run whose worker died under it, with the session that still seems to live."""
    from journal import crash

    def die(point: str) -> None:
        if point == "after-intent":
            raise CrashHere

    run_id, worker = start("keyed", {}), crew.hire()
    monkeypatch.setattr(crash, "hook", die)
    with pytest.raises(CrashHere):
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    monkeypatch.setattr(crash, "hook", None)
    assert worker.session.id is not None
    worker._stopping.set()
    return Run.objects.get(id=run_id), worker.session.id


def test_a_queued_run_that_no_message_reached_is_sent_once_and_then_spaced(
    crew: Crew, sweep: Sweep, sent: list[UUID]
) -> None:
    crew.hire()
    run_id = start("keyed", {})
    wait_until(lambda: sweep.once() and sent, "it is found")
    assert sent == [run_id]
    run = Run.objects.get(id=run_id)
    assert (run.status, run.dispatches) == ("queued", 1)


def test_a_run_of_an_ended_session_is_sent_and_that_of_a_live_one_is_left_alone(
    crew: Crew, sweep: Sweep, sent: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = orphan(crew, monkeypatch)
    crew.hire()
    sweep.once()
    assert sent == [], "its session lives"
    execute(crew, "UPDATE runs_workersession SET expires_at = now() - interval '2 seconds' WHERE id = %s", session)
    sweep.once()
    assert sent == [run.id]
    ended = WorkerSession.objects.get(id=session)
    assert ended.ended_at is not None and ended.end_reason == "lease ran out"
    assert Run.objects.get(id=run.id).status == "running", "a claim takes it over, the sweep does not"


def test_a_session_is_not_ended_before_a_whole_lease_of_contact(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    _, session = orphan(crew, monkeypatch)
    execute(crew, "UPDATE runs_workersession SET expires_at = now() - interval '1 hour' WHERE id = %s", session)
    patient = Sweep(crew.dsn, lease=3600.0, every=0.05, dispatch=crew.take)
    patient.once()
    assert WorkerSession.objects.get(id=session).ended_at is None
    patient._contact_since -= 3600
    patient.close()
    patient.once()
    assert WorkerSession.objects.get(id=session).ended_at is None, "a lost connection starts the wait anew"
    patient._contact_since -= 3600
    patient.once()
    assert WorkerSession.objects.get(id=session).ended_at is not None
    patient.close()


def test_a_run_whose_pin_nobody_serves_is_stranded_and_goes_on_when_somebody_does(
    crew: Crew, ledger: Ledger, sweep: Sweep, sent: list[UUID]
) -> None:
    run_id = start("keyed", {})
    wait_until(lambda: sweep.once() or Run.objects.get(id=run_id).status != "queued", "it is found")
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("waiting_for_version", "waits for a worker that serves keyed@1")
    assert sent == []
    worker = crew.hire()
    sweep.once()
    assert sent == [run_id] and Run.objects.get(id=run_id).status == "queued"
    assert crew.drive(run_id, worker).status == "done"


def test_a_draining_session_serves_nobody_new(crew: Crew, sweep: Sweep, sent: list[UUID]) -> None:
    worker = crew.hire()
    execute(crew, "UPDATE runs_workersession SET draining_at = now() WHERE id = %s", worker.session.id)
    run_id = start("keyed", {})
    wait_until(lambda: sweep.once() or Run.objects.get(id=run_id).status != "queued", "it is found")
    assert Run.objects.get(id=run_id).status == "waiting_for_version"


def test_a_due_run_is_sent_and_one_that_is_not_due_is_not(crew: Crew, sweep: Sweep, sent: list[UUID]) -> None:
    worker = crew.hire()
    soon, later = start("sleep", {"seconds": 0.3}), start("sleep", {"seconds": 3600})
    for run_id in (soon, later):
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    wait_until(lambda: sweep.once() and soon in sent, "the due one is found")
    assert later not in sent
    assert sweep.pause() <= sweep.every


def test_a_run_that_was_not_taken_at_a_gate_is_sent_when_it_is_lifted(
    crew: Crew, sweep: Sweep, sent: list[UUID]
) -> None:
    gate = place_gate(scope="all", reason="deploy", actor="max")
    run_id = start("keyed", {})
    run = crew.advance(run_id)
    assert (run.status, run.reason) == ("queued", "gate all: deploy")
    assert sweep.once() == 0 and sent == []
    lift_gate(gate_id=gate.pk, reason="deployed", actor="max")
    sweep.once()
    assert set(sent) == {run_id} and Run.objects.get(id=run_id).reason == "waits for a worker"


def test_a_due_run_that_a_round_could_not_send_is_tried_with_the_next(crew: Crew, sweep: Sweep) -> None:
    crew.hire()
    sweep.once()
    run_id = start("sleep", {"seconds": 3600})
    crew.advance(run_id)
    assert sweep.pause() == sweep.every, "nothing is due"
    execute(crew, "UPDATE runs_run SET wake_at = clock_timestamp() + interval '20 ms' WHERE id = %s", run_id)
    assert sweep.pause() < 0.05, "it is heard of in the middle of a pause"
    execute(crew, "UPDATE runs_run SET wake_at = clock_timestamp() WHERE id = %s", run_id)
    sweep.once()
    assert sweep.pause() == sweep.every, "what was due before the last look waits for the next round"


def test_a_queued_run_says_that_it_waits_for_a_worker(crew: Crew, sweep: Sweep, sent: list[UUID]) -> None:
    crew.hire()
    run_id = start("sleep", {"seconds": 0.1})
    assert Run.objects.get(id=run_id).reason == "waits for a worker"
    assert crew.advance(run_id).reason.startswith("sleeping until")
    wait_until(lambda: sweep.once() and sent, "it is due")
    run = Run.objects.get(id=run_id)
    assert (run.status, run.reason) == ("queued", "waits for a worker")


def test_a_parent_whose_childs_end_nobody_told_is_sent(crew: Crew, sweep: Sweep, sent: list[UUID]) -> None:
    crew.hire()
    parent, child = start("sleep", {"seconds": 3600}), start("sleep", {"seconds": 3600})
    crew.advance(parent)
    execute(
        crew,
        "UPDATE runs_run SET status = 'done', ended_at = now() - interval '1 minute', parent_id = %s, parent_step = 1"
        " WHERE id = %s",
        parent,
        child,
    )
    execute(crew, "UPDATE runs_run SET awaits = ARRAY[%s::uuid] WHERE id = %s", child, parent)
    sweep.once()
    assert parent in sent and Run.objects.get(id=child).parent_told


def test_higher_priorities_are_sent_first(crew: Crew, sweep: Sweep, sent: list[UUID]) -> None:
    crew.hire()
    low, high, middle = (start("keyed", {}, priority=priority) for priority in (0, 9, 5))
    wait_until(lambda: sweep.once() and sent, "they are found")
    assert sent == [high, middle, low]


def test_an_unknown_session_id_claims_nothing(crew: Crew) -> None:
    run_id = start("keyed", {})
    with psycopg.connect(crew.dsn, autocommit=True) as conn:
        answer = conn.execute(
            "SELECT verdict FROM runs_claim_v2(%s, %s, true, NULL, true)", (uuid4(), run_id)
        ).fetchone()
    assert answer == ("no session",)
