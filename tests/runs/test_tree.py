"""Trees: children are born with their parent's entry, joined by their parent, and cancelled with it."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from journal.verify import verify_run
from runs.commands import cancel_run, signal_run
from runs.models import Run
from runs.queries import entries_of
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger

KEYED = {"agent": "keyed", "input": {"amount_cents": 3}}


def is_queued(run_id: UUID) -> bool:
    return Run.objects.get(id=run_id).status == "queued"


def children_of(run_id: UUID) -> list[Run]:
    return list(Run.objects.filter(parent=run_id).order_by("parent_step"))


def test_a_parent_joins_all_its_children(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [KEYED] * 5})
    assert crew.drive_tree(run_id).status == "done"
    done = entries_of(run_id)[-1].body["result"]
    assert done["outcomes"] == ["succeeded"] * 5 and len(done["results"]) == 5
    born = children_of(run_id)
    assert [child.parent_step for child in born] == [1, 2, 3, 4, 5]
    assert all(child.parent_told for child in born)
    assert [ledger.acted(f"{child.id}:1") for child in born] == [1] * 5
    start_entry = entries_of(born[0].id)[0]
    assert start_entry.body["parent"] == {"run": str(run_id), "step": 1} and start_entry.actor == "parent"
    assert not verify_run(run_id) and not any(verify_run(child.id) for child in born)


def test_children_and_the_park_of_their_parent_are_one_append(crew: Crew) -> None:
    run_id = start("parent", {"children": [KEYED, KEYED]})
    parked = crew.advance(run_id)
    assert parked.status == "waiting" and parked.reason.startswith("waits for its child keyed r-")
    assert journal(run_id) == ["START", "PLAN", "CHILD:1", "CHILD:2"]
    born = [child.id for child in children_of(run_id)]
    assert parked.awaits == born and parked.wake_at is None
    assert [sent for sent, _ in crew.messages][-2:] == born


def test_a_parent_wakes_when_its_last_child_has_ended(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [KEYED, KEYED]})
    crew.advance(run_id)
    one, two = children_of(run_id)
    crew.advance(one.id)
    assert Run.objects.get(id=run_id).wake_at is None
    crew.advance(two.id)
    assert Run.objects.get(id=run_id).wake_at is not None
    assert crew.drive(run_id).status == "done"


def test_a_childs_failure_is_thrown_into_its_parent(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [KEYED, {"agent": "fails", "input": None}]})
    assert crew.drive_tree(run_id).status == "done"
    done = entries_of(run_id)[-1].body["result"]
    assert done == {"results": ["fails", "failed", "as it was told"], "outcomes": ["succeeded", "failed"]}


def test_a_child_that_cannot_be_started_is_a_failure_too(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [{"agent": "nobody", "input": None}]})
    assert crew.drive_tree(run_id).status == "done"
    results = entries_of(run_id)[-1].body["result"]["results"]
    assert results[:2] == ["nobody", "failed"] and "no agent 'nobody'" in results[2]
    assert children_of(run_id) == []


def test_the_first_child_to_succeed_cancels_the_others(crew: Crew, ledger: Ledger) -> None:
    slow = {"agent": "sleep", "input": {"seconds": 3600}}
    run_id = start("first-child", {"children": [slow, {"agent": "fails", "input": None}, KEYED]})
    root = crew.drive_tree(run_id)
    assert root.status == "done" and entries_of(run_id)[-1].body["result"][0] == 2
    assert crew.drive(children_of(run_id)[0].id).status == "cancelled"
    assert [slot.outcome for slot in state(run_id).slots.values()] == ["cancelled", "failed", "succeeded"]


def test_when_all_have_failed_the_first_has_failed(crew: Crew) -> None:
    run_id = start("first-child", {"children": [{"agent": "fails", "input": None}] * 2})
    assert crew.drive_tree(run_id).status == "failed"
    assert Run.objects.get(id=run_id).reason == "fails failed: as it was told"


def test_a_decider_sees_its_children(crew: Crew, ledger: Ledger) -> None:
    run_id = start("decides-children")
    assert crew.drive_tree(run_id).status == "done"
    assert entries_of(run_id)[-1].body["result"] == [1, 2]


def test_a_tree_is_cancelled_from_the_root_down(crew: Crew, ledger: Ledger) -> None:
    """E29 without a call under way: tests/faults has it with one."""
    grandchild = {"agent": "sleep", "input": {"seconds": 3600}}
    middle = {"agent": "parent", "input": {"children": [grandchild]}}
    run_id = start("parent", {"children": [middle, {"agent": "signals", "input": {"names": ["go"]}}]})
    crew.advance(run_id)
    first, second = children_of(run_id)
    for child in (first, second):
        crew.advance(child.id)
    (leaf,) = children_of(first.id)
    crew.advance(leaf.id)
    cancel_run(run_id=run_id, reason="the customer left", actor="olga")
    seq = next(e.seq for e in entries_of(run_id) if e.kind == "CONTROL")
    assert crew.drive_tree(run_id).status == "cancelled"
    for below in (first.id, second.id, leaf.id):
        done = entries_of(below)[-1]
        assert done.body == {"cancelled": "the customer left", "cause": {"run": str(run_id), "seq": seq}}
    assert [slot.outcome for slot in state(run_id).slots.values()] == ["cancelled", "cancelled"]


def test_a_cancelled_parent_waits_for_its_children_to_stop(crew: Crew) -> None:
    run_id = start("parent", {"children": [{"agent": "sleep", "input": {"seconds": 3600}}]})
    crew.advance(run_id)
    cancel_run(run_id=run_id, reason="enough", actor="olga")
    parked = crew.advance(run_id)
    assert parked.status == "waiting" and parked.reason.startswith("is being cancelled, once its child sleep r-")


@pytest.mark.parametrize("again", [False, True])
def test_a_child_that_ends_while_its_parent_is_driven_is_not_missed(crew: Crew, ledger: Ledger, again: bool) -> None:
    """Its parent is told nothing: it finds the end when it lets go. Or it hears it twice."""
    run_id = start("parent", {"children": [KEYED]})
    crew.advance(run_id)
    (child,) = children_of(run_id)
    crew.advance(child.id)
    worker = crew.standing
    assert worker is not None
    if again:
        worker.tell_parent(child.id)
    assert crew.drive(run_id).status == "done"
    assert journal(run_id).count("CHILD:1") == 2


def test_of_children_with_one_business_id_one_is_born_and_the_others_are_refused(crew: Crew, ledger: Ledger) -> None:
    parents = [start("spawns-only", "o-1") for _ in range(6)]
    workers = [crew.hire() for _ in parents]
    release = Run.objects.get(id=parents[0]).release_id
    with ThreadPoolExecutor(len(parents)) as pool:
        list(pool.map(lambda pair: pair[0].advance(pair[1], release), zip(workers, parents, strict=True)))
    runs = [crew.advance(run_id) if is_queued(run_id) else Run.objects.get(id=run_id) for run_id in parents]
    assert sorted(run.status for run in runs) == ["done"] * 5 + ["waiting"], [run.reason for run in runs]
    (born,) = Run.objects.filter(agent="only")
    for run in runs:
        if run.status == "done":
            assert entries_of(run.id)[-1].body["result"] == f"order:o-1 belongs to the open run {born.id}"
        assert ledger.acted(f"{run.id}:1") == 1 and journal(run.id).count("OBS:1") == 1


def test_of_twins_with_one_business_id_the_first_is_born(crew: Crew, ledger: Ledger) -> None:
    run_id = start("twins", "o-2")
    crew.advance(run_id)
    (born,) = children_of(run_id)
    signal_run(run_id=born.id, name="go", actor="olga")
    assert crew.drive_tree(run_id).status == "done"
    step, why = entries_of(run_id)[-1].body["result"]
    assert (step, why) == (2, f"order:o-2 belongs to its sibling {born.id}")
