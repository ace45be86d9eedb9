"""E29: a tree is cancelled from its root down, whatever is under way in it."""

from __future__ import annotations

import signal
import threading
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from journal import crash
from recovery.commands import reconcile_intent
from runs.commands import cancel_run
from runs.errors import RunEnded
from runs.models import ENDED, Run
from runs.queries import entries_of, state_of
from runs.trees import DEEPEST
from tests.crash.proof import assert_whole
from tests.rig.crew import CrashHere, Crew, start, state, told
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger
from tests.rig.robot import Robot, tree_of

NEVER = ["wait", "never", None]
CALL = ["call", "keyed-probe"]


def child(*statements: Any) -> list[Any]:
    return ["spawn", list(statements), "script"]


def sends_after_cancel(run_id: UUID, committed: Any) -> list[int]:
    """The seqs of intents, sends and births after the run's own cancel, or after the tree's was committed."""
    entries = entries_of(run_id)
    own = next(e.seq for e in entries if e.kind == "CONTROL")
    sends = [e for e in entries if e.kind in ("TOOL_CALL", "ATTEMPT") or e.body.get("verb") == "spawned"]
    return [e.seq for e in sends if e.seq > own or e.recorded_at > committed]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["slow", "slow-unkeyed"])
def test_cancelled_while_a_grandchild_is_in_a_call(fleet: Fleet, ledger: Ledger, agent: str) -> None:
    """The open call is told, awaited and recorded; nothing new is sent; each run names the cause."""
    grandchild = {"agent": agent, "input": {"seconds": 60}}
    middle = {"agent": "parent", "input": {"children": [grandchild]}}
    other = {"agent": "chain", "input": {"steps": 1000, "effect": "keyed"}}
    fleet.worker()
    fleet.worker()
    fleet.sweeper()
    root = start("parent", {"children": [middle, other]})
    fleet.until(lambda: len(tree_of(root)) == 4, "all are born")
    leaf = next(run.id for run in tree_of(root) if run.agent == agent)
    fleet.until(lambda: ledger.acted(f"{leaf}:1") == 1, "the grandchild is in its call")
    cancel_run(run_id=root, reason="the customer left", actor="olga")
    ((committed,),) = fleet.ask("SELECT clock_timestamp()")
    cancelled = next(e for e in entries_of(root) if e.kind == "CONTROL")
    fleet.until(lambda: all(run.status in ENDED for run in tree_of(root)), "all have ended")
    for run in tree_of(root):
        assert run.status == "cancelled", told(run)
        assert_whole(run.id)
        assert sends_after_cancel(run.id, committed) == [], told(run)
        done = entries_of(run.id)[-1].body
        cause = {} if run.id == root else {"cause": {"run": str(root), "seq": cancelled.seq}}
        assert done == {"cancelled": "the customer left"} | cause
    slot = state_of(leaf).slots[1]
    assert (slot.outcome, ledger.calls(slot.key), ledger.acted(slot.key)) == ("succeeded", 1, 1)
    assert {slot.outcome for slot in state_of(root).slots.values()} == {"cancelled"}
    connection.close()


@pytest.mark.slow
def test_cancelled_while_the_worker_of_a_call_is_killed(fleet: Fleet, ledger: Ledger) -> None:
    """What became of the call is asked by its key, and recorded, before the tree is cancelled."""
    victim = fleet.worker()
    fleet.sweeper()
    root = start("parent", {"children": [{"agent": "slow", "input": {"seconds": 60}}]})
    fleet.until(lambda: len(tree_of(root)) == 2, "the child is born")
    leaf = tree_of(root)[1].id
    fleet.until(lambda: ledger.acted(f"{leaf}:1") == 1, "it is in its call")
    victim.send(signal.SIGKILL)
    victim.dies()
    cancel_run(run_id=root, reason="enough", actor="olga")
    fleet.end(victim)
    fleet.worker()
    fleet.until(lambda: all(run.status in ENDED for run in tree_of(root)), "all have ended")
    assert [run.status for run in tree_of(root)] == ["cancelled", "cancelled"]
    obs = next(e for e in entries_of(leaf) if e.kind == "OBS")
    assert (obs.body["source"], ledger.calls(f"{leaf}:1"), ledger.acted(f"{leaf}:1")) == ("probe", 1, 1)
    connection.close()


def test_cancel_races_the_birth_of_children(crew: Crew, ledger: Ledger) -> None:
    """Either a child is born and cancelled with the others, or it is never born."""
    worker = crew.hire()
    for round_ in range(25):
        root = start("script", [["all", [child(NEVER), child(child(NEVER))]], child(CALL), CALL])
        ready = threading.Barrier(2)

        def cancel(root: UUID = root, ready: threading.Barrier = ready, late: float = round_ * 0.002) -> None:
            ready.wait()
            threading.Event().wait(late)
            cancel_run(run_id=root, reason="enough", actor="olga")
            connection.close()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        ready.wait()
        worker.advance(root, Run.objects.get(id=root).release_id)
        canceller.join()
        crew.drive_out(Robot(ledger.acted), root, worker=worker)
        for run in tree_of(root):
            assert run.status == "cancelled", told(run)
            assert_whole(run.id)
        born = [slot.child for slot in state(root).slots.values() if slot.kind == "child"]
        assert born == [run.id for run in tree_of(root) if run.parent_id == root]


def test_a_child_that_is_cancelled_alone_is_a_failure_in_its_parent(crew: Crew, ledger: Ledger) -> None:
    root = start("script", [child(NEVER), CALL])
    crew.advance(root)
    cancel_run(run_id=tree_of(root)[1].id, reason="not needed", actor="olga")
    crew.drive_out(Robot(ledger.acted), root)
    done = state(root).done
    assert done == {"result": ["!cancelled", "acted"]}
    assert state(root).slots[1].error == "not needed"


def test_cancelled_twice_it_ends_once_for_the_first_reason(crew: Crew, ledger: Ledger) -> None:
    root = start("script", [child(NEVER)])
    crew.drive_tree(root)
    for reason in ("first", "second"):
        cancel_run(run_id=root, reason=reason, actor="olga")
    crew.drive_out(Robot(ledger.acted), root)
    for run in tree_of(root):
        assert state(run.id).done is not None and state(run.id).done["cancelled"] == "first"
        with pytest.raises(RunEnded):
            cancel_run(run_id=run.id, reason="third", actor="olga")


@pytest.mark.parametrize("point", ["before-cancel-child", "after-cancel-child", "before-outcome", "after-outcome"])
def test_a_worker_dies_while_it_withdraws_a_child(crew: Crew, ledger: Ledger, point: str) -> None:
    root = start("script", [["first", [child(NEVER), ["sleep", 0.05]]], CALL])
    crash.hook = lambda name: die_if(name == point)
    worker = crew.hire()
    with pytest.raises(CrashHere):
        crew.drive_out(Robot(ledger.acted), root, worker=worker)
    crash.hook = None
    crew.lose(worker)
    crew.drive_out(Robot(ledger.acted), root)
    assert state(root).done == {"result": [[1, None], "acted"]}
    assert [run.status for run in tree_of(root)] == ["done", "cancelled"]
    assert state(root).slots[1].outcome == "cancelled" and ledger.acted(f"{root}:3") == 1


def die_if(now: bool) -> None:
    if now:
        raise CrashHere


def test_a_child_that_needs_a_person_is_what_its_parent_waits_for(crew: Crew, ledger: Ledger) -> None:
    root = start("script", [child(["call", "unkeyed"])])
    crew.advance(root)
    below = tree_of(root)[1]
    crash.hook = lambda name: die_if(name == "after-effect")
    worker = crew.hire()
    with pytest.raises(CrashHere):
        worker.advance(below.id, below.release_id)
    crash.hook = None
    crew.lose(worker)
    assert crew.drive(below.id).status == "needs_reconciliation"
    parent = Run.objects.get(id=root)
    assert parent.status == "waiting" and parent.reason.startswith("waits for its child script r-")
    crew.drive_out(Robot(ledger.acted), root)
    assert state(root).done == {"result": [["acted"]]}


def test_an_aborted_parent_takes_the_runs_below_it_along(crew: Crew, ledger: Ledger) -> None:
    root = start("script", [["all", [["call", "unkeyed"], child(child(NEVER))]]])
    crash.hook = lambda name: die_if(name == "after-effect")
    worker = crew.hire()
    with pytest.raises(CrashHere):
        crew.drive_out(Robot(ledger.acted), root, worker=worker)
    crash.hook = None
    crew.lose(worker)
    assert crew.drive(root).status == "needs_reconciliation"
    crew.drive_tree(tree_of(root)[1].id)
    seq = state(root).slots[1].seq
    reconcile_intent(run_id=root, seq=seq, verdict="abort", evidence="the shop has closed", actor="olga")
    crew.drive_out(Robot(ledger.acted), root)
    assert [run.status for run in tree_of(root)] == ["cancelled"] * 3
    done = entries_of(root)[-1]
    for run in tree_of(root)[1:]:
        assert state(run.id).done == {"cancelled": done.body["cancelled"], "cause": {"run": str(root), "seq": done.seq}}


def test_an_agent_that_starts_itself_without_end_is_stopped(crew: Crew, ledger: Ledger) -> None:
    root = start("endless")
    crew.drive_out(Robot(ledger.acted), root, seconds=90)
    tree = tree_of(root)
    assert len(tree) == 1 + DEEPEST
    assert state(root).done == {"result": DEEPEST}
    deepest = state(tree[-1].id).slots[1]
    assert deepest.outcome == "failed" and "at most 32 levels" in str(deepest.error)
