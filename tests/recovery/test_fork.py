"""Forks: a run that begins as a copy of another's first entries, under a chain of its own."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from journal.verify import verify_run
from recovery.errors import NotAFrontier
from recovery.forking import fork_run, preview
from runs.models import Run
from runs.queries import entries_of, state_of
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.django_db(transaction=True)


def fork(run_id: UUID, at: int, **more: Any) -> Run:
    return fork_run(**({"run_id": run_id, "at": at, "reason": "once more", "actor": "olga"} | more))


def chain(crew: Crew, effect: str = "read", steps: int = 3) -> UUID:
    run_id = start("chain", {"steps": steps, "effect": effect})
    assert crew.drive(run_id).status == "done"
    return run_id


def test_a_fork_begins_with_the_same_entries_and_goes_on_by_itself(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    forked = fork(run_id, 4)
    assert verify_run(forked.id) == [] and verify_run(run_id) == []
    assert crew.drive(forked.id).status == "done"
    assert verify_run(forked.id) == []
    mine, theirs = entries_of(forked.id), entries_of(run_id)
    for one, other in zip(mine[:4], theirs[:4], strict=True):
        assert (one.seq, one.kind, one.step, one.settles, one.actor) == (
            other.seq, other.kind, other.step, other.settles, other.actor,
        )  # fmt: skip
        assert one.recorded_at == other.recorded_at and one.epoch == 0
        assert one.body.pop("copied_from") == {"run": str(run_id), "seq": one.seq}
        one.body.pop("fork", None)
        assert one.body == other.body
    assert [state_of(forked.id).slots[step].key for step in (1, 2)] == [f"{run_id}:1", f"{forked.id}:2"]


def test_only_a_frontier_is_a_place_to_fork_at(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew)
    kinds = journal(run_id)
    allowed = []
    for at in range(len(kinds) + 2):
        try:
            fork(run_id, at)
        except NotAFrontier as refused:
            assert str(at) in str(refused)
        else:
            allowed.append(at)
    assert allowed == [1, 2, 4, 5, 7, 8, 10]


def test_a_preview_tells_each_later_effect_and_what_could_repeat(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew, "keyed")
    seen = preview(Run.objects.get(id=run_id), 4)
    assert (seen.allowed, seen.copied, seen.steps, seen.before, seen.after) == (True, 4, 1, 4, 5)
    assert [(e.run, e.step, e.tool, e.effect, e.outcome, e.could_repeat) for e in seen.effects] == [
        (run_id, 2, "charge", "keyed", "succeeded", True),
        (run_id, 3, "charge", "keyed", "succeeded", True),
    ]
    assert seen.by_class == {"keyed": 2} and seen.family == []
    assert not preview(Run.objects.get(id=run_id), 3).allowed
