"""`manage.py generate`: runs for tests of scale whose journals hold."""

from collections import Counter

import pytest

from journal.verify import verify_run
from runs.errors import BadInput
from runs.generate import generate
from runs.listing import list_runs
from runs.models import ENDED, Run, Status
from runs.queries import list_intents, state_of

pytestmark = pytest.mark.django_db


def test_makes_so_many_runs_with_so_many_entries_each() -> None:
    generate(40, 10)
    assert Run.objects.count() == 40
    assert {state_of(run.id).seq for run in Run.objects.all()} == {10}


def test_every_chain_verifies_and_every_row_is_the_fold_of_its_journal() -> None:
    generate(600, 12, seed=3)
    statuses = Counter(Run.objects.values_list("status", flat=True))
    assert statuses.keys() == set(Status), "every status is there"
    for run in Run.objects.all():
        assert verify_run(run.id) == []
        state = state_of(run.id)
        assert state.seq == run.as_of_seq
        assert (state.done is not None) == (run.status in ENDED) == (run.ended_at is not None)
        assert [(slot.seq, slot.state) for slot in state.unsettled() if slot.kind == "call"] == [
            (intent["seq"], intent["state"]) for intent in run.intents
        ]


@pytest.mark.parametrize("entries", [2, 3, 4, 5, 6, 7, 8, 9, 33])
def test_few_or_many_entries_are_told_exactly(entries: int) -> None:
    generate(30, entries)
    for run in Run.objects.all():
        assert state_of(run.id).seq == entries and verify_run(run.id) == []


def test_ages_are_spread_over_thirty_days_and_ids_follow_them() -> None:
    generate(100, 5)
    by_id, _ = list_runs(limit=100)
    starts = [run.created_at for run in by_id]
    assert starts == sorted(starts, reverse=True)
    assert (starts[0] - starts[-1]).days >= 28


def test_the_inbox_lists_what_waits() -> None:
    generate(300, 10)
    assert {view.state for view in list_intents()[0]} == {"awaiting_approval", "in_doubt"}


def test_a_second_call_adds_and_nothing_collides() -> None:
    generate(20, 5, seed=1)
    generate(20, 5, seed=1)
    assert Run.objects.count() == 40


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(BadInput):
        generate(1, 1)
