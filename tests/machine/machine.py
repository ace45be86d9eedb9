"""Two workers, a sweep, a person and the world, in any order, with crashes and thefts at any point."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

import psycopg
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from journal import crash
from recovery.commands import reconcile_intent
from recovery.fork_source import Source
from recovery.forking import fork_run
from recovery.sweep import Sweep
from runs.approvals import answer_question, decide_approval
from runs.commands import answer_ask, cancel_run, hold_run, note_run, release_run, resume_run, retry_run, signal_run
from runs.engine.worker import Worker
from runs.gates import lift_gate, place_gate
from runs.models import Gate, Permit, Run
from runs.queries import state_of
from runs.slots import Slot
from tests.machine.judge import judge, judge_end, judge_families
from tests.machine.programs import started
from tests.machine.world import CHANGEABLE, TOOLS, TROUBLES, WORLD
from tests.rig.crew import CrashHere, Crew, start
from tests.rig.robot import APPROVERS, Robot, tree_of, tried

MOST_RUNS = 3
MOST_FORKS = 3
Happens = Callable[[str], object]
points = st.integers(0, 40)
any_of = st.integers(0, 1000)
either = st.sampled_from([0, 1])
some_slices = st.integers(1, 4)
THEFT_TOO_LATE = "before-effect"  # the lease was looked at: what follows is the pause that nobody can prevent
STEAL = "UPDATE runs_workersession SET ended_at = clock_timestamp(), end_reason = 'a test' WHERE id = %s"


@contextmanager
def happening(at: int | None, happens: Happens) -> Iterator[None]:
    """Lets it happen at the crash point with this number, in whatever thread passes that."""
    passed, lock = [0], threading.Lock()

    def count(name: str) -> None:
        with lock:
            passed[0] += 1
            now = crash.hook is not None and passed[0] - 1 == at
            if now:
                crash.hook = None
        if now:
            try:
                happens(name)
            finally:
                if threading.current_thread() is not threading.main_thread():
                    connection.close()

    crash.hook = count
    try:
        yield
    finally:
        crash.hook = None


class Machine(RuleBasedStateMachine):
    crew: ClassVar[Crew]

    def __init__(self) -> None:
        super().__init__()
        WORLD.reset(self.crew.dsn)
        self.roots: list[UUID] = []
        self.deaths: list[int] = []
        self.epochs: dict[UUID, int] = {}
        self.workers = [self.crew.hire(), self.crew.hire()]
        self.sweep = Sweep(self.crew.dsn, 60.0, 0.05, self.crew.take)
        self.robot = Robot(WORLD.acted)

    # -- runs and workers -------------------------------------------------------------------------------------------

    @initialize(
        opening=started(2), deaths=st.lists(points, max_size=4),
        kinds=st.lists(st.sampled_from(TROUBLES), min_size=2, max_size=8),
    )  # fmt: skip
    def open_with(self, opening: tuple[list[Any], str], deaths: list[int], kinds: list[str]) -> None:
        """`deaths`: at which points workers die when all else is over, and the runs are driven to their end."""
        self.deaths = deaths
        WORLD.troubles.extend(kinds)
        self.roots.append(start(opening[1], opening[0]))

    @precondition(lambda self: len(self.roots) < MOST_RUNS)
    @rule(opening=started(2), deadline=st.sampled_from([None, None, 0.3]))
    def begin(self, opening: tuple[list[Any], str], deadline: float | None) -> None:
        self.roots.append(start(opening[1], opening[0], deadline=deadline))

    @precondition(lambda self: len(self.roots) < MOST_RUNS + MOST_FORKS)
    @rule(which=any_of, at=any_of)
    def forks(self, which: int, at: int) -> None:
        """A person restarts one of the runs from a place where that may be done."""
        self.fork(which, at)
        self.look()

    def fork(self, which: int, at: int) -> None:
        runs = self.runs()
        run = runs[which % len(runs)]
        points = Source(run).points.seqs
        if not points or not tried(self._fork, run_id=run.id, at=points[at % len(points)]):
            return
        WORLD.tally["forked"] += 1

    def _fork(self, **given: Any) -> None:
        self.roots.append(fork_run(**given, reason="a test", actor="olga").id)

    @rule(which=any_of, who=either, slices=some_slices)
    def advance(self, which: int, who: int, slices: int) -> None:
        self._advance(which, who, slices)

    @rule(which=any_of, who=either, slices=some_slices, at=points)
    def crash(self, which: int, who: int, slices: int, at: int) -> None:
        """The worker dies when it passes this point."""
        self._advance(which, who, slices, at, self.die)

    @rule(which=any_of, who=either, slices=some_slices, at=points)
    def steal(self, which: int, who: int, slices: int, at: int) -> None:
        """The worker sleeps at this point until its lease is over and another has driven the run; then it goes on."""
        victim, thief = self.workers[who], self.workers[1 - who]
        stolen = []

        def sleep(name: str) -> None:
            if name == THEFT_TOO_LATE:
                return
            stolen.append(name)
            WORLD.tally["stolen"] += 1
            with psycopg.connect(self.crew.dsn, autocommit=True) as conn:
                conn.execute(STEAL, (victim.session.id,))
            victim.session._until = 0.0
            self._advance_one(thief, 0)

        self._advance(which, who, slices, at, sleep)
        if stolen and victim in self.workers:
            self.replace(victim)

    @rule(which=any_of, who=either, slices=some_slices, at=points, act=any_of)
    def interfere(self, which: int, who: int, slices: int, at: int, act: int) -> None:
        """A person acts while the worker is at this point."""

        def act_now(_name: str) -> None:
            WORLD.tally["interfered"] += 1
            if act % 5 == 0 and len(self.roots) < MOST_RUNS + MOST_FORKS:
                self.fork(act, act // 5)
            else:
                self.person(act)

        self._advance(which, who, slices, at, act_now)

    @staticmethod
    def die(_name: str) -> None:
        WORLD.tally["died"] += 1
        raise CrashHere

    def _advance(self, which: int, who: int, slices: int, at: int | None = None, happens: Happens = print) -> None:
        worker = self.workers[who]
        try:
            with happening(at, happens):
                for nth in range(slices):
                    self._advance_one(worker, which + nth)
        except CrashHere:
            self.replace(worker)
        self.look()

    def _advance_one(self, worker: Worker, which: int) -> None:
        due = Q(session=None) & (Q(status__in=("queued", "waiting_for_version")) | Q(wake_at__lte=Now()))
        due |= Q(session__ended_at__isnull=False)
        ready = list(Run.objects.filter(due, id__in=[run.id for run in self.runs()], ended_at=None).order_by("id"))
        if ready:
            run = ready[which % len(ready)]
            worker.advance(run.id, run.release_id)

    def replace(self, worker: Worker) -> None:
        crash.hook = None
        self.crew.lose(worker)
        self.workers[self.workers.index(worker)] = self.crew.hire()

    @rule(tool=st.sampled_from(sorted(TOOLS)))
    def gate(self, tool: str) -> None:
        """A person stops a tool, or lets it go on."""
        given = {"scope": f"tool:{tool}", "reason": "look first", "actor": "olga"}
        if not tried(place_gate, **given):
            lift_gate(**given)

    @rule()
    def sweeps(self) -> None:
        self.sweep.once()

    @rule(seconds=st.sampled_from([0.01, 0.06]))
    def time_passes(self, seconds: float) -> None:
        time.sleep(seconds)

    @rule(kinds=st.lists(st.sampled_from(TROUBLES), min_size=1, max_size=4))
    def trouble(self, kinds: list[str]) -> None:
        """What the next calls meet."""
        WORLD.troubles.extend(kinds)

    # -- a person ---------------------------------------------------------------------------------------------------

    @rule(act=any_of)
    def person_acts(self, act: int) -> None:
        self.person(act)
        self.look()

    @rule()
    def person_serves(self) -> None:
        self.robot.serve(*self.roots)
        self.look()

    def person(self, act: int) -> None:
        """One of the acts that there are for one of the runs, possible or not: what is refused changes nothing."""
        runs = self.runs()
        run = runs[act % len(runs)]
        acts = self.acts_on(run)
        tried(acts[act // len(runs) % len(acts)])

    def acts_on(self, run: Run) -> list[Callable[[], object]]:
        why: dict[str, Any] = {"run_id": run.id, "reason": "a test", "actor": "olga"}
        acts: list[Callable[[], object]] = [
            partial(command, **why) for command in (hold_run, resume_run, cancel_run, release_run, retry_run)
        ]
        acts += [partial(signal_run, run_id=run.id, name=name, payload=0, actor="olga") for name in ("go", "on")]
        acts.append(partial(note_run, run_id=run.id, text="a note", actor="victor"))
        for slot in state_of(run.id).slots.values():
            at: dict[str, Any] = {"run_id": run.id, "seq": slot.seq, "actor": "ada"}
            if slot.kind == "ask":
                acts += [partial(answer_ask, **at, value=value) for value in (7, "seven")]
            elif slot.approval is not None:
                acts += self.acts_on_approval(slot, at)
            elif slot.in_doubt:
                so = "happened" if WORLD.acts[slot.key] else "never_happened"
                told = at | {"evidence": "looked", "attempt": len(slot.attempts)}
                acts += [partial(reconcile_intent, **told, verdict=verdict) for verdict in (so, "probe", "abort")]
        return acts

    @staticmethod
    def acts_on_approval(slot: Slot, at: dict[str, Any]) -> list[Callable[[], object]]:
        digest = slot.approval.digest if slot.approval is not None else slot.digest
        asked = at | {"digest": digest, "note": "as ordered", "groups": APPROVERS}
        acts: list[Callable[[], object]] = [
            partial(decide_approval, **asked | {"actor": actor}, verdict="approve") for actor in ("ada", "max")
        ]
        acts += [partial(decide_approval, **asked, verdict=verdict) for verdict in ("deny", "ask")]
        args = {"n": slot.args.get("n", 0) + 1} if slot.tool in CHANGEABLE else {}
        acts.append(partial(decide_approval, **asked | {"actor": "zoe"}, verdict="edit", args=args))
        acts.append(partial(answer_question, run_id=at["run_id"], seq=slot.seq, text="because", actor="olga"))
        return acts

    # -- what is true -----------------------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        return tree_of(*self.roots)

    def look(self) -> None:
        for run in self.runs():
            judge(run, self.epochs.get(run.id, 0))
            self.epochs[run.id] = run.epoch
        judge_families(self.runs())
        assert not WORLD.wrong, WORLD.wrong

    def teardown(self) -> None:
        try:
            if self.roots and not WORLD.wrong:
                self.end_all()
        finally:
            crash.hook = None
            self.sweep.close()
            for worker in self.workers:
                self.crew.lose(worker)
            connection.close()

    def end_all(self) -> None:
        """A person who serves all of them; then they come to their end by themselves, and no permit is left."""
        for gate in Gate.objects.filter(lifted_at=None):
            lift_gate(gate_id=gate.pk, reason="looked", actor="olga")
        for at in self.deaths:
            try:
                with happening(at, self.die):
                    self.crew.drive_out(self.robot, *self.roots, worker=self.workers[0], seconds=60)
                break
            except CrashHere:
                self.replace(self.workers[0])
        self.crew.drive_out(self.robot, *self.roots, worker=self.workers[0], seconds=60)
        self.look()
        self.sweep.once()
        for run in self.runs():
            judge_end(run)
        assert not Permit.objects.filter(run__in=self.runs()).exists()
