"""Everything is killed; a run kills its worker; the code changes under a run."""

import signal
from pathlib import Path
from uuid import UUID

import pytest

from runs.commands import release_run
from runs.models import Run, WorkerSession
from runs.queries import entries_of, state_of
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

CHANGING = """
from runs.sdk import Call, flow
from tests.rig import tools

@flow(name="changing", version="1", tools=[tools.charge, tools.refund])
def changing(run):
    yield Call(tools.charge, amount_cents=1)
    yield Call(tools.charge, amount_cents=2)
    yield Call(tools.{third}, amount_cents=3)
    yield Call(tools.charge, amount_cents=4)
"""


@pytest.mark.slow
def test_when_everything_is_killed_each_run_goes_on_under_one_new_worker(fleet: Fleet, ledger: Ledger) -> None:
    fleet.environment["HOLDFAST_AGENTS"] += ",tests.faults.agents"
    workers = [fleet.worker(), fleet.worker()]
    for worker in workers:
        fleet.await_session(worker)
    sweeper = fleet.sweeper()
    calls = [start("slow", {"seconds": 60}) for _ in range(10)]
    models = [start("ponders", {}) for _ in range(10)]
    fleet.until(lambda: all(ledger.acted(f"{run}:1") for run in calls), "ten are in a call")
    fleet.until(lambda: all(ledger.model_requests(run) for run in models), "ten wait for a model")
    for hand in (*workers, sweeper):
        hand.send(signal.SIGKILL)
        hand.dies()
    fleet.worker()
    fleet.sweeper()
    for run_id in calls + models:
        run = fleet.rests(run_id)
        assert_done_once(ledger, run)
        assert run.epoch >= 2
        assert any(e.kind == "NOTE" and e.body["text"] == "taken over" for e in entries_of(run_id))
    assert all(ledger.model_requests(run) == 3 for run in models), "only the request without an answer was repeated"
    assert all(state_of(run).usage == {"tokens": 20} for run in models)
    dead = WorkerSession.objects.filter(id__in=[worker.session for worker in workers])
    assert {session.end_reason for session in dead} == {"lease ran out"}


@pytest.mark.slow
def test_killed_again_and_again_after_the_effect_it_is_still_one(fleet: Fleet, ledger: Ledger) -> None:
    """Once in the call that acted, then each time somebody asks what became of it, released whenever it is suspect."""
    fleet.sweeper()
    run_id = start("keyed-probe", {})
    for point in ("after-effect", "before-probe", "after-probe"):
        fleet.bury(fleet.worker(crash=point))
        assert [e.kind for e in entries_of(run_id)].count("TOOL_CALL") == 1
        assert ledger.acted(f"{run_id}:1") == 1
    fleet.worker()
    assert fleet.rests(run_id).status == "quarantined"
    release_run(run_id=run_id, reason="it was the machine", actor="olga")
    assert_done_once(ledger, fleet.rests(run_id))
    observed = [(e.body["outcome"], e.body["source"]) for e in entries_of(run_id) if e.kind == "OBS"]
    assert observed == [("succeeded", "probe")]
    assert ledger.calls(f"{run_id}:1") == 1


@pytest.mark.slow
def test_a_run_that_kills_its_worker_is_quarantined_and_spares_the_others(fleet: Fleet, ledger: Ledger) -> None:
    fleet.sweeper()
    deadly = start("deadly", {})
    others = [start("keyed", {"amount_cents": cents}) for cents in range(1, 11)]

    def restart_until(run_id: UUID, status: str) -> None:
        worker = fleet.worker()

        def tended() -> bool:
            nonlocal worker
            if worker.code is not None:
                fleet.bury(worker)
                worker = fleet.worker()
            return Run.objects.get(id=run_id).status == status

        fleet.until(tended, f"the run is {status}", within=60)

    restart_until(deadly, "quarantined")
    run = Run.objects.get(id=deadly)
    assert (run.crashes, ledger.calls(f"{deadly}:1")) == (3, 3)
    assert "died 3 times" in run.reason
    for other in others:
        assert_done_once(ledger, fleet.rests(other))
    release_run(run_id=deadly, reason="let it try again", actor="olga")
    assert Run.objects.get(id=deadly).crashes == 0
    restart_until(deadly, "quarantined")
    assert ledger.calls(f"{deadly}:1") == 6, "the count starts anew"
    assert_whole(deadly)


@pytest.mark.slow
def test_other_code_under_the_same_release_is_held_before_any_effect(
    fleet: Fleet, ledger: Ledger, tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, third in ((old, "charge"), (new, "refund")):
        folder.mkdir()
        (folder / "changing.py").write_text(CHANGING.format(third=third))
    fleet.environment["HOLDFAST_AGENTS"] = "changing"
    victim = fleet.worker(crash="after-outcome:2", path=[str(old)])
    assert fleet.run("start", "changing", "--input", "{}", path=[str(old)]).dies() == 0, fleet.story()
    run_id = Run.objects.get().id
    fleet.bury(victim)
    acted = len(ledger.effects())
    changed = fleet.worker(path=[str(new)])
    fleet.sweeper()
    run = fleet.rests(run_id)
    assert run.status == "held" and "diverged" in run.reason
    assert len(ledger.effects()) == acted
    (control,) = [e.body for e in entries_of(run_id) if e.kind == "CONTROL"]
    call = next(e for e in entries_of(run_id) if e.kind == "TOOL_CALL" and e.step == 3)
    assert control["recorded"] == [{"call": "charge", "args": {"amount_cents": 3}}]
    assert control["attempted"] == [{"call": "refund", "args": {"amount_cents": 3}}]
    assert control["seq"] == call.seq
    fleet.await_heartbeat(changed)
    assert Run.objects.get(id=run_id).epoch == run.epoch, "it is not tried for ever"
    assert_whole(run_id)
