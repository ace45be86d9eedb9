"""Every crash point of every way to wait, with a person who acts before, during or after the crash.

As in test_matrix_in_process: the run is done anew for each point that is passed, and the worker is abandoned there. In
the end each tree has the right result, each child was started once, each signal was taken once, no permit is left, and
each chain verifies. Where a person acts before or after the crash, every other point is met, and with
HOLDFAST_CRASH_POINTS=all every one.
"""

from __future__ import annotations

import os
from typing import Any
from uuid import UUID

import pytest

from journal import crash
from runs.models import Permit, Run
from tests.crash.proof import assert_whole
from tests.rig.crew import CrashHere, Crew, start, state, told
from tests.rig.ledger import Ledger
from tests.rig.programs import PROGRAMS
from tests.rig.robot import Robot, tree_of

WITH_A_PERSON = ("question", "signals", "first of signal and time", "grandchild", "approval beside waits")
DRIVERS = {"before": "script", "during": "script-decide", "after": "script-model"}
EVERY_POINT = os.environ.get("HOLDFAST_CRASH_POINTS") == "all"
LONG = "grandchild"  # so many points that once has to do
CASES = [
    (name, when)
    for name in PROGRAMS
    for when in DRIVERS
    if when == "during" or (name in WITH_A_PERSON and name != LONG)
]


def walk(crew: Crew, robot: Robot, root: UUID, die_at: int, meanwhile: bool) -> str | None:
    """Drives on until the tree has ended, or until the point with this number is passed: its name then.

    `meanwhile`: the person does what there is to do in the very moment before the worker dies.
    """
    passed: list[str] = []

    def count(name: str) -> None:
        if crash.hook is None:
            return
        passed.append(name)
        if len(passed) - 1 == die_at:
            crash.hook = None
            if meanwhile:
                robot.serve(root)
            raise CrashHere

    crash.hook = count
    worker = crew.hire()
    try:
        crew.drive_out(robot, root, worker=worker)
        return None
    except CrashHere:
        return passed[-1]
    finally:
        crash.hook = None
        crew.lose(worker)


def assert_tree_right(ledger: Ledger, root: UUID, result: list[Any], point: str) -> None:
    for run in tree_of(root):
        about = f"{point}: {told(run)}"
        assert_whole(run.id)
        slots = state(run.id).slots
        assert [child.id for child in Run.objects.filter(parent=run.id).order_by("parent_step")] == [
            slot.child for slot in slots.values() if slot.kind == "child"
        ], about
        for slot in slots.values():
            if slot.effect not in ("", "read"):
                assert ledger.acted(slot.key) == 1, about
        taken = [signal.step for signal in state(run.id).signals]
        assert None not in taken and taken == sorted(set(taken)), about
        assert not Permit.objects.filter(run=run.id).exists(), about
    done = state(root).done
    assert done is not None and done.get("result") == result, told(Run.objects.get(id=root))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "when"), CASES)
def test_the_right_end_wherever_the_worker_dies(crew: Crew, ledger: Ledger, name: str, when: str) -> None:
    program, result = PROGRAMS[name]
    robot = Robot(ledger.acted)
    number, point, step = 0, "no crash", 1 if when == "during" or EVERY_POINT else 2
    while True:
        root = start(DRIVERS[when], program)
        if when == "before":
            robot.serve(root)
        met = walk(crew, robot, root, number, meanwhile=when == "during")
        point = f"crash at point {number}, {met}"
        crew.drive_out(robot, root)
        assert_tree_right(ledger, root, result, point)
        if met is None:
            break
        number += step
    assert number > 5
