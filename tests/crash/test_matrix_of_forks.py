"""Every crash point of a call in a fork that a relative has made too: unsent until a person says so, then sent once.

As in test_matrix_in_process: a first walk writes each point down, then the worker is lost at each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from journal.verify import verify_run
from recovery.forking import fork_run
from runs.approvals import decide_approval
from runs.models import Run
from runs.queries import entries_of
from tests.crash.test_matrix_in_process import assert_no_blind_second, assert_once, say, settle_by_ledger, walk
from tests.rig.crew import Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS

EFFECTS = ("keyed", "keyed-probe", "probed", "unkeyed")


def forked(run_id: UUID) -> UUID:
    return fork_run(run_id=run_id, at=1, reason="once more", actor="olga").id


def after_it_succeeded(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, UUID]:
    """The source is done."""
    run_id = start(effect, {})
    assert crew.drive(run_id).status == "done"
    return run_id, forked(run_id)


def while_it_waits(crew: Crew, ledger: Ledger, effect: str) -> tuple[UUID, UUID]:
    """The source waits for approval of its own call."""
    run_id = start("approval", {"effect": effect})
    assert crew.drive(run_id).status == "awaiting_approval"
    return run_id, forked(run_id)


SOURCES = (after_it_succeeded, while_it_waits)
Source = Callable[[Crew, Ledger, str], tuple[UUID, UUID]]


def approve(run_id: UUID) -> None:
    slot = state(run_id).slots[1]
    assert slot.approval is not None and slot.approval.repeats, "nobody approves it who was not told"
    decide_approval(
        run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.approval.digest, note="", actor="ada",
        groups=APPROVERS,
    )  # fmt: skip


def unsent(ledger: Ledger, run_id: UUID) -> None:
    assert verify_run(run_id) == []
    for slot in state(run_id).slots.values():
        assert ledger.acted(slot.key) == 0 and not slot.attempts, entries_of(run_id)


@pytest.mark.slow
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_nothing_is_sent_before_a_person_says_so_wherever_the_worker_dies(
    crew: Crew, ledger: Ledger, source: Source, effect: str
) -> None:
    _, run_id = source(crew, ledger, effect)
    points = walk(crew, run_id, lambda: None, None)
    unsent(ledger, run_id)
    for number in range(len(points)):
        _, run_id = source(crew, ledger, effect)
        walk(crew, run_id, lambda: None, number)
        unsent(ledger, run_id)
        assert crew.drive(run_id).status == "awaiting_approval", points[number]
        unsent(ledger, run_id)
        approve(run_id)
        assert crew.drive(run_id).status == "done", points[number]
        assert_once(ledger, run_id, points[number])


@pytest.mark.slow
@pytest.mark.parametrize("effect", EFFECTS)
def test_once_approved_it_is_sent_once_wherever_the_worker_dies(crew: Crew, ledger: Ledger, effect: str) -> None:
    def parked() -> UUID:
        _, run_id = after_it_succeeded(crew, ledger, effect)
        assert crew.drive(run_id).status == "awaiting_approval"
        return run_id

    run_id = parked()
    points = walk(crew, run_id, lambda: approve(run_id), None)
    assert_once(ledger, run_id, "no crash")
    for number, point in enumerate(points):
        run_id = parked()
        walk(crew, run_id, lambda: approve(run_id), number)  # noqa: B023
        assert_no_blind_second(ledger, run_id)
        if state(run_id).slots[1].approval.open:  # type: ignore[union-attr]
            approve(run_id)
        settle_by_ledger(crew, ledger, run_id)
        assert_once(ledger, run_id, point)


@pytest.mark.parametrize("effect", EFFECTS)
def test_what_nobody_knows_in_the_source_is_not_sent_by_the_fork(crew: Crew, ledger: Ledger, effect: str) -> None:
    """The source's worker dies just before its effect; the fork comes to the same call before anybody knows."""
    run_id = start(effect, {})
    points = walk(crew, run_id, lambda: None, None)
    run_id = start(effect, {})
    walk(crew, run_id, lambda: None, points.index("before-effect"))
    fork_id = forked(run_id)
    assert crew.drive(fork_id).status == "awaiting_approval"
    asked = state(fork_id).slots[1].approval
    assert asked is not None and asked.repeats[0].outcome == "in_doubt"
    unsent(ledger, fork_id)
    if effect != "unkeyed":
        assert crew.drive(run_id).status == "done"
    else:
        assert crew.drive(run_id).status == "needs_reconciliation"
        say(run_id, 1, "never_happened")
        assert crew.drive(run_id).status == "done"
    assert Run.objects.get(id=fork_id).status == "awaiting_approval"
    assert_once(ledger, run_id, "the source")
    unsent(ledger, fork_id)
