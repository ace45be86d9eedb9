"""A worker that fails never keeps a run that it does not drive."""

import threading

import pytest

from runs.commands import resume_run
from runs.engine.drivers import FlowDriver
from runs.engine.slice import Slice
from runs.models import Run
from runs.moves import Decided, Finish
from runs.state import RunState
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger, wait_until


def test_a_run_that_the_worker_itself_fails_on_is_held_and_can_be_resumed(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start("keyed", {})

    def fails(piece: Slice) -> None:
        raise ZeroDivisionError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(Slice, "decide", fails)
        run = crew.drive(run_id)
    assert (run.status, run.session_id) == ("held", None)
    assert run.reason == "the worker failed: ZeroDivisionError: a fault of ours"
    assert journal(run_id) == ["START", "CONTROL"]
    resume_run(run_id=run_id, reason="mended", actor="olga")
    assert crew.drive(run_id).status == "done"
    assert ledger.acted(f"{run_id}:1") == 1


def test_a_decision_that_does_not_return_is_held_and_its_thread_writes_no_more(
    crew: Crew, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = start("keyed", {})
    worker = crew.hire(lease=0.9)
    worker.decision_limit = 0.1
    lets_go = threading.Event()

    def hangs(driver: FlowDriver, state: RunState) -> Decided:
        lets_go.wait(60)
        return Decided([Finish("too late")])

    with monkeypatch.context() as patched:
        patched.setattr(FlowDriver, "check", lambda *given: None)
        patched.setattr(FlowDriver, "decide", hangs)
        stuck = threading.Thread(target=worker.advance, args=(run_id, Run.objects.get(id=run_id).release_id))
        stuck.start()
        wait_until(lambda: Run.objects.get(id=run_id).status == "held", "the run is held")
        lets_go.set()
        stuck.join(60)
    run = Run.objects.get(id=run_id)
    assert run.reason == "the agent's code did not decide within 0.1 s (after entry 1)"
    assert (run.session_id, journal(run_id)) == (None, ["START", "CONTROL"])
    resume_run(run_id=run_id, reason="mended", actor="olga")
    assert crew.drive(run_id).status == "done"
