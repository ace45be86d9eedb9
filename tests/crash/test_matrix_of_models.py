"""Every crash point of runs whose model is asked over HTTP: no committed answer is asked for again, no key acts twice,
and the model is told the same as in a run that nobody disturbed.

The points are those that the undisturbed run passes, each time that it passes one: the run is done anew for each of
them, and the worker is abandoned there. Some cases meet some of them only; with HOLDFAST_CRASH_POINTS=all, every one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import pytest
from django.db import connection

from journal import crash
from recovery.commands import reconcile_intent
from runs.approvals import decide_approval
from runs.commands import signal_run
from runs.models import Run
from runs.slots import Approval, Slot
from tests.crash.asked import assert_asked_once, assert_recomputed, bodies
from tests.crash.proof import assert_whole
from tests.crash.test_matrix_of_waits import EVERY_POINT
from tests.rig import talks
from tests.rig.crew import CrashHere, Crew, start, state, told
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers
from tests.rig.robot import APPROVERS, Robot, tried

Point = tuple[str, int]  # the name, and which time it is passed
Meanwhile = Callable[[], object] | None
TRIES = 3
SIDE_BY_SIDE = ("three", "approval")


class Clerk(Robot):
    """Knows what a call gave back that nobody else can say of."""

    def _settle(self, run: Run, slot: Slot) -> int:
        said = {"verdict": "happened", "result": talks.SENT} if self.acted(slot.key) else {"verdict": "never_happened"}
        return tried(reconcile_intent, run_id=run.id, seq=slot.seq, evidence="looked into the ledger",
                     attempt=len(slot.attempts), actor="olga", **said)  # fmt: skip


class Refuser(Clerk):
    def _approve(self, run: Run, slot: Slot, approval: Approval) -> int:
        return tried(decide_approval, run_id=run.id, seq=slot.seq, verdict="deny", digest=approval.digest,
                     note=talks.WHY_NOT, actor="ada", groups=APPROVERS)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """`meanwhile`: the person acts in the very moment before the worker dies. `step`: of so many points one is met."""

    story: str
    protocol: str = ""
    stream: bool = False
    person: type[Clerk] = Clerk
    meanwhile: bool = False
    step: int = 1

    def __str__(self) -> str:
        more = ["refused"] * (self.person is Refuser) + ["meanwhile"] * self.meanwhile
        return "-".join([self.agent, *more])

    @property
    def agent(self) -> str:
        return talks.name_of(self.story, self.protocol, self.stream) if self.protocol else self.story


CASES = [
    Case("one", "messages", stream=False),
    Case("one", "chat", stream=True, step=3),
    Case("one", "responses", stream=True, step=3),
    Case("three", "messages", stream=True),
    Case("three", "chat", stream=False, step=3),
    Case("approval", "messages", stream=False, meanwhile=True),
    Case("approval", "chat", stream=True, step=3),
    Case("approval", "messages", stream=True, person=Refuser, step=3),
    Case("approval", "chat", stream=False, person=Refuser, meanwhile=True, step=2),
    Case("moved", step=2),
    Case("clumsy", step=2),
    Case("long", step=3),
]
RESULTS = {
    "one": "The letter is sent.", "three": "Charged once, paid back twice.", "approval": "Paid back.",
    "moved": "The letter is sent.", "clumsy": "Paid back.", "long": "Paid back.",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_answer_is_asked_for_twice_wherever_the_worker_dies(
    desk: Crew, ledger: Ledger, providers: Providers, case: Case
) -> None:
    robot = case.person(ledger.acted)
    undisturbed, points = done(desk, robot, case, None)
    asked = bodies(providers.requests, *own_words(undisturbed))
    assert all(len(of_one) == 1 for of_one in asked.values()) or case.story == "long"
    assert_right(ledger, undisturbed, case, "no crash")
    met: set[Point] = set()
    for point in points[:: 1 if EVERY_POINT else case.step]:
        for _ in range(TRIES):  # calls side by side end in one append or in several: not every run passes it
            before = len(providers.requests)
            run_id, passed = done(desk, robot, case, point)
            about = f"crash at {point}: {told(Run.objects.get(id=run_id))}"
            assert_right(ledger, run_id, case, about)
            seen = providers.requests[before:]
            assert_asked_once(run_id, seen)
            if len(met) % 4 == 0:
                assert_recomputed(Run.objects.get(id=run_id))
            assert bodies(seen, *own_words(run_id)) == asked, about
            if point in passed:
                met.add(point)
                break
    missed = set(points[:: 1 if EVERY_POINT else case.step]) - met
    assert not missed or case.story in SIDE_BY_SIDE, missed
    assert len(missed) <= 4, missed
    assert case.step > 1 or {name for name, _ in points} == {name for name, _ in met}
    assert {"after-attempt", "before-model", "after-model", "before-plan", "after-plan"} <= {name for name, _ in points}


def done(desk: Crew, robot: Robot, case: Case, die_at: Point | None) -> tuple[UUID, list[Point]]:
    """A run that went to its end, and the points that its first worker passed, up to the one at which it died."""
    run_id = start(case.agent, "Look after order o-1.")
    passed = walk(desk, robot, run_id, die_at, partial(robot.serve, run_id) if case.meanwhile else None)
    desk.drive_out(robot, run_id)
    return run_id, passed


def own_words(run_id: UUID) -> list[str]:
    """What was made at run time for this run, once."""
    context = state(run_id).context
    return [] if context is None else [context]


def walk(
    desk: Crew, robot: Robot, run_id: UUID, at: Point | None, meanwhile: Meanwhile = None, dies: bool = True
) -> list[Point]:
    """Drives the run on to its end, or to the point `at`: what is meant to happen `meanwhile` happens there, and then
    the worker dies. The points that were passed."""
    passed: list[Point] = []
    times: Counter[str] = Counter()
    lock = threading.Lock()

    def count(name: str) -> None:
        with lock:
            if crash.hook is None:
                return
            times[name] += 1
            passed.append((name, times[name]))
            if passed[-1] != at:
                return
            crash.hook = None if dies else crash.hook
        if meanwhile is not None:
            meanwhile()
        if dies:
            raise CrashHere

    crash.hook = count
    worker = desk.hire()
    try:
        desk.drive_out(robot, run_id, worker=worker)
    except CrashHere:
        assert at is not None
    finally:
        crash.hook = None
        desk.lose(worker)
    return passed


def assert_right(ledger: Ledger, run_id: UUID, case: Case, about: str) -> None:
    assert_whole(run_id)
    found = state(run_id)
    result = "It was refused." if case.person is Refuser else RESULTS[case.story]
    assert found.done is not None and found.done.get("result") == result, about
    for slot in found.slots.values():
        if slot.effect != "read":
            assert ledger.acted(slot.key) == (slot.outcome == "succeeded"), about
        assert slot.outcome == ("denied" if slot.approval and case.person is Refuser else "succeeded"), about


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["who goes on", "who dies then"])
def test_a_word_at_any_point_is_heard_and_costs_no_answer(
    desk: Crew, ledger: Ledger, providers: Providers, dies: bool
) -> None:
    """Somebody speaks to the run while its worker is at this point."""
    robot, told_of = Clerk(ledger.acted), "I was told: Look after order o-1."
    first = start("hears-beside", "Look after order o-1.")
    points = walk(desk, robot, first, None)
    for point in points if EVERY_POINT else points[int(dies) :: 2]:
        before = len(providers.requests)
        run_id = start("hears-beside", "Look after order o-1.")
        said: list[int] = []
        walk(desk, robot, run_id, point, lambda run_id=run_id, said=said: said.append(speaks(run_id)), dies)
        desk.drive_out(robot, run_id)
        about = f"a word at {point}: {told(Run.objects.get(id=run_id))}"
        assert_whole(run_id)
        done = state(run_id).done
        assert done is not None and done.get("result") == told_of + "; and hurry" * said[0], about
        assert said[0] or points.index(point) > points.index(("before-done", 1)), about
        seen = providers.requests[before:]
        assert_asked_once(run_id, seen)
        assert dies or len({seen.digest for seen in seen}) == len(seen), f"asked twice: {about}"
        assert [slot.outcome for slot in state(run_id).slots.values()] == ["succeeded"], about
        assert_recomputed(Run.objects.get(id=run_id))


def speaks(run_id: UUID) -> int:
    try:
        return tried(signal_run, run_id=run_id, name="message", payload="and hurry", actor="ada")
    finally:
        if threading.current_thread() is not threading.main_thread():  # in whichever it happens
            connection.close()
