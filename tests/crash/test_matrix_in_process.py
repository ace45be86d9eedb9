"""Every crash point of every way to send a call, for every effect class: one effect a key, or in doubt and parked.

A first walk writes down each point that is passed; then the run is done anew for each of them, and the worker is
abandoned there. A second worker takes over. What it cannot know, a person settles by looking into the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from journal import crash
from journal.verify import verify_run
from recovery.commands import reconcile_intent
from runs.approvals import decide_approval
from runs.models import Run
from runs.queries import entries_of
from tests.rig.crew import CrashHere, Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS

EFFECTS = ("read", "keyed", "keyed-probe", "probed", "unkeyed")
ACTIONS = {"keyed": "charge", "keyed-probe": "refund", "probed": "transfer", "unkeyed": "mail"}


def first_send(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    run_id = start(effect, {})
    return run_id, lambda: None


def after_approval(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    run_id = start("approval", {"effect": effect})
    assert crew.drive(run_id).status == "awaiting_approval"
    slot = state(run_id).slots[1]

    def approve() -> object:
        return decide_approval(
            run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.digest, note="", actor="ada", groups=APPROVERS
        )

    return run_id, approve


def after_retry(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    if effect == "read":
        pytest.skip("a read that fails is called again like any other: see re-send on resume")
    ledger.fault(ACTIONS[effect], "rate_limit", times=1, retry_after=0)
    return start(effect, {}), lambda: None


def resent_on_resume(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    run_id = start(effect, {})
    lose_at(crew, run_id, "before-effect")
    return run_id, lambda: None


def executed_by_operator(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    run_id = start(effect, {})
    lose_at(crew, run_id, "before-effect")
    return run_id, lambda: say(run_id, 1, "never_happened")


def beside_a_sibling(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    return start("siblings", {"effects": [effect, effect]}), lambda: None


def decided_by_a_model(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, Callable[[], object]]:
    return start("model", {"effect": effect}), lambda: None


SOURCES = (
    first_send,
    after_approval,
    after_retry,
    resent_on_resume,
    executed_by_operator,
    beside_a_sibling,
    decided_by_a_model,
)


def lose_at(crew: Crew, run_id: UUID, point: str) -> None:
    """The run's first worker dies at this point."""
    crash.hook = lambda name: crash_if(name == point)
    worker = crew.hire()
    with pytest.raises(CrashHere):
        worker.advance(run_id, Run.objects.get(id=run_id).release_id)
    crash.hook = None
    crew.lose(worker)


def crash_if(now: bool) -> None:
    if now:
        raise CrashHere


def say(run_id: UUID, step: int, verdict: str) -> Run:
    slot = state(run_id).slots[step]
    return reconcile_intent(
        run_id=run_id,
        seq=slot.seq,
        verdict=verdict,
        evidence="looked into the ledger",
        actor="olga",
        attempt=len(slot.attempts),
    )


def walk(crew: Crew, run_id: UUID, person: Callable[[], object], die_at: int | None) -> list[str]:
    """Drives on until the run rests, or until the point with this number is passed. The names of the points passed."""
    passed: list[str] = []

    def count(name: str) -> None:
        passed.append(name)
        crash_if(len(passed) - 1 == die_at)

    crash.hook = count
    worker = crew.hire()
    try:
        person()
        crew.drive(run_id, worker)
    except CrashHere:
        assert die_at is not None
    finally:
        crash.hook = None
    crew.lose(worker)
    return passed


def settle_by_ledger(crew: Crew, ledger: Ledger, run_id: UUID) -> None:
    """A person looks each key up and says what is so, until the run ends."""
    for _ in range(4):
        run = crew.drive(run_id)
        if run.status != "needs_reconciliation":
            break
        assert run.intents and run.reason, "a parked run says why"
        for slot in [slot for slot in state(run_id).unsettled() if slot.in_doubt]:
            say(run_id, slot.step, "happened" if ledger.acted(slot.key) else "never_happened")
    assert run.status == "done", (run.status, run.reason, [(e.kind, e.body) for e in entries_of(run_id)])


def assert_once(ledger: Ledger, run_id: UUID, point: str) -> None:
    told = f"{point}: {[(e.seq, e.epoch, e.kind, e.body) for e in entries_of(run_id)]}"
    for slot in state(run_id).slots.values():
        if slot.effect != "read":
            assert ledger.acted(slot.key) == 1, told
    assert verify_run(run_id) == [], told
    settled = [e.settles for e in entries_of(run_id) if e.settles]
    assert len(settled) == len(set(settled)), told


@pytest.mark.slow
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_one_effect_a_key_wherever_the_worker_dies(
    crew: Crew, ledger: Ledger, source: Callable[..., tuple[UUID, Callable[[], object]]], effect: str
) -> None:
    run_id, person = source(crew, ledger, effect)
    points = walk(crew, run_id, person, None)
    settle_by_ledger(crew, ledger, run_id)
    assert_once(ledger, run_id, "no crash")
    for number, point in enumerate(points):
        run_id, person = source(crew, ledger, effect)
        passed = walk(crew, run_id, person, number)
        if state(run_id).slots and any(slot.effect == "unkeyed" for slot in state(run_id).slots.values()):
            assert_no_blind_second(ledger, run_id)
        settle_by_ledger(crew, ledger, run_id)
        assert_once(ledger, run_id, f"crash at point {number}, {point} ({passed[-1:]})")
        if source is decided_by_a_model:
            assert ledger.model_requests(run_id) <= 4, "what the model said is not asked for again"


def assert_no_blind_second(ledger: Ledger, run_id: UUID) -> None:
    for slot in state(run_id).slots.values():
        assert ledger.acted(slot.key) <= 1
