"""Killed by SIGKILL around questions, answers, children and permits: children born once, waits over once."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from runs.commands import answer_ask, signal_run
from runs.models import ENDED, Permit, Run
from runs.queries import entries_of, state_of
from tests.crash.proof import assert_done_once, assert_whole
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger

CALL = ["call", "keyed-probe"]
CHILD = ["spawn", [CALL], "script"]


def killed_at(fleet: Fleet, point: str, program: list[Any]) -> UUID:
    """A run of this program whose worker died there; a second one and a sweeper go on."""
    victim = fleet.worker(crash=point)
    fleet.sweeper()
    run_id = start("script", program)
    fleet.bury(victim)
    fleet.worker()
    return run_id


def ends(fleet: Fleet, run_id: UUID) -> Run:
    """Not only at rest: a run that waits for another may have to go on by itself."""
    runs = Run.objects.select_related("release")
    fleet.until(lambda: runs.get(id=run_id).status in ENDED, f"run {run_id} ends")
    return runs.get(id=run_id)


def assert_tree_done_once(fleet: Fleet, ledger: Ledger, root: UUID, result: list[Any]) -> None:
    run = ends(fleet, root)
    assert_done_once(ledger, run)
    assert entries_of(root)[-1].body["result"] == result
    tree = [run]
    while tree:
        above = tree.pop()
        born = [slot.child for slot in state_of(above.id).slots.values() if slot.kind == "child"]
        below = list(Run.objects.filter(parent=above.id).order_by("parent_step"))
        assert [child.id for child in below] == born
        for child in below:
            ends(fleet, child.id)
            assert_whole(child.id)
            assert [entry.kind for entry in entries_of(child.id)].count("START") == 1
        tree += below
    fleet.until(lambda: not Permit.objects.exists(), "no permit is left")
    connection.close()


def open_question(fleet: Fleet, run_id: UUID) -> int:
    fleet.until(lambda: 1 in state_of(run_id).slots and Run.objects.get(id=run_id).session is None, "it asks")
    return state_of(run_id).slots[1].seq


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-question", "after-question"])
def test_killed_while_asking_a_person(fleet: Fleet, ledger: Ledger, point: str) -> None:
    run_id = killed_at(fleet, point, [["ask", None], CALL])
    answer_ask(run_id=run_id, seq=open_question(fleet, run_id), value=7, actor="ada")
    assert_tree_done_once(fleet, ledger, run_id, [7, "acted"])
    assert [e.kind for e in entries_of(run_id)].count("ASK") == 1


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-answer", "after-answer"])
def test_killed_while_a_question_expires(fleet: Fleet, ledger: Ledger, point: str) -> None:
    run_id = killed_at(fleet, point, [["ask", 0.5], CALL])
    assert_tree_done_once(fleet, ledger, run_id, ["!expired", "acted"])
    assert [e.kind for e in entries_of(run_id)].count("ANSWER") == 1


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-timer", "after-timer"])
def test_killed_while_beginning_to_wait_for_a_signal_that_is_there(fleet: Fleet, ledger: Ledger, point: str) -> None:
    victim = fleet.worker(crash=point)
    run_id = start("script", [["sleep", 0.5], ["wait", "go", None], ["wait", "go", None], CALL])
    for payload in (1, 2):
        signal_run(run_id=run_id, name="go", payload=payload, actor="olga")
    fleet.sweeper()
    fleet.bury(victim)
    fleet.worker()
    assert_tree_done_once(fleet, ledger, run_id, [None, 1, 2, "acted"])
    assert [signal.step for signal in state_of(run_id).signals] == [2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-child", "after-child", "before-child:2", "after-child:2"])
def test_killed_while_starting_or_joining_children(fleet: Fleet, ledger: Ledger, point: str) -> None:
    run_id = killed_at(fleet, point, [["all", [CHILD, CHILD]], CALL])
    assert_tree_done_once(fleet, ledger, run_id, [[["acted"], ["acted"]], "acted"])


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-tell-parent", "after-tell-parent"])
def test_killed_while_telling_the_parent(fleet: Fleet, ledger: Ledger, point: str) -> None:
    run_id = killed_at(fleet, point, [CHILD, CALL])
    assert_tree_done_once(fleet, ledger, run_id, [["acted"], "acted"])


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-cancel-child", "after-cancel-child"])
def test_killed_while_cancelling_the_child_that_came_second(fleet: Fleet, ledger: Ledger, point: str) -> None:
    slow = ["spawn", [["wait", "never", None]], "script"]
    run_id = killed_at(fleet, point, [["first", [slow, CHILD]], CALL])
    assert_tree_done_once(fleet, ledger, run_id, [[1, ["acted"]], "acted"])
    (second,) = Run.objects.filter(parent=run_id, parent_step=1)
    assert ends(fleet, second.id).status == "cancelled"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before-permit", "after-permit", "before-free", "after-free"])
def test_killed_around_a_permit(fleet: Fleet, ledger: Ledger, point: str) -> None:
    """One at a time: the run behind the dead one is not left in line."""
    victim = fleet.worker(crash=point)
    fleet.sweeper()
    runs = [start("script", [["call", "limited"], CALL]) for _ in range(2)]
    fleet.bury(victim)
    fleet.worker()
    for run_id in runs:
        assert_tree_done_once(fleet, ledger, run_id, ["acted", "acted"])
