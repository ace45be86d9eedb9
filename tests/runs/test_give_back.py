"""A worker that fails never keeps a run that it does not drive."""

import pytest

from runs.commands import resume_run
from runs.engine import Slice
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger


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
