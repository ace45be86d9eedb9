"""A fork beside its source, step by step."""

from __future__ import annotations

import pytest

from recovery.forks_compared import forks_compared
from runs.queries import entries_of
from tests.recovery.test_fork import approve, chain, fork
from tests.recovery.test_fork_edit import asked
from tests.recovery.test_fork_edit import judges as judges
from tests.rig.crew import Crew
from tests.rig.ledger import Ledger

pytestmark = pytest.mark.django_db(transaction=True)


def test_steps_are_copied_equal_different_or_in_one_of_them_alone(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew, "keyed", 3)
    forked = fork(run_id, 4)
    crew.drive(forked.id)
    found = forks_compared(entries_of(forked.id), entries_of(run_id))
    assert (found.at, [(pair.step, pair.how, pair.differs) for pair in found.steps]) == (
        4, [(1, "copied", ()), (2, "differs", ["outcome"]), (3, "only in the source", ())],
    )  # fmt: skip
    assert found.endings == (None, {"result": 3})
    approve(forked.id, 2)
    crew.drive(forked.id)
    found = forks_compared(entries_of(forked.id), entries_of(run_id))
    assert found.steps[1].how == "equal" or found.steps[1].differs == ["result"]


def test_two_forks_of_one_run_have_in_common_what_both_copied(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew, "read", 3)
    one, other = fork(run_id, 4), fork(run_id, 7)
    crew.drive(one.id)
    assert forks_compared(entries_of(one.id), entries_of(other.id)).at == 4
    grandchild = fork(one.id, 7)
    assert forks_compared(entries_of(grandchild.id), entries_of(run_id)).at == 4
    assert forks_compared(entries_of(grandchild.id), entries_of(one.id)).at == 7


def test_what_was_edited_is_told(judges: Crew, ledger: Ledger) -> None:
    run_id = asked(judges)
    forked = fork(run_id, 4, edits=[{"seq": 4, "value": 7}])
    judges.drive(forked.id)
    found = forks_compared(entries_of(forked.id), entries_of(run_id))
    assert [(pair.how, list(pair.differs)) for pair in found.steps] == [("edited", []), ("differs", ["move"])]
    assert [entry.seq for entry in found.edits] == [4] and found.counts == {"edited": 1, "differs": 1}
