"""Forks: a run that begins as a copy of another's first entries, under a chain of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from journal.verify import verify_run
from recovery.errors import NotAFrontier
from recovery.forking import fork_run, preview
from runs.approvals import decide_approval
from runs.commands import cancel_run, resume_run
from runs.models import Run
from runs.queries import entries_of, state_of
from runs.relatives import uncovered
from runs.sdk import Call, RunView, flow
from runs.short_ids import short_id
from runs.slots import Repeat
from tests.rig import tools
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS
from tests.rig.versions import serve_also

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
            said = str(refused)
            assert str(at) in said and ("nearest is entry" in said) == (" and entry " not in said)
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


# -- the family gate --------------------------------------------------------------------------------------------------


def approve(run_id: UUID, step: int) -> Run:
    slot = state_of(run_id).slots[step]
    assert slot.approval is not None
    given = {"verdict": "approve", "digest": slot.approval.digest, "note": "", "actor": "ada", "groups": APPROVERS}
    return decide_approval(run_id=run_id, seq=slot.seq, **given)


def sent(ledger: Ledger, run_id: UUID) -> list[int]:
    """How often each call of the run acted, by step."""
    return [ledger.acted(slot.key) for slot in state_of(run_id).slots.values()]


def test_what_a_relative_has_done_waits_for_a_person_and_is_then_sent_once(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew, "keyed", 2)
    forked = fork(run_id, 1)
    told = crew.drive(forked.id)
    short = short_id(run_id)
    assert (told.status, told.reason) == (
        "awaiting_approval",
        f"charge (step 1) waits for approval: it is the same as step 1 of {short} (entry 3), which succeeded",
    )
    (asked,) = [e for e in entries_of(forked.id) if e.kind == "APPROVAL"]
    assert asked.body["repeats"] == [{"run": str(run_id), "seq": 3, "step": 1, "outcome": "succeeded"}]
    assert sent(ledger, forked.id) == [0]
    approve(forked.id, 1)
    assert crew.drive(forked.id).status == "awaiting_approval"
    assert sent(ledger, forked.id) == [1, 0]
    approve(forked.id, 2)
    assert crew.drive(forked.id).status == "done"
    assert sent(ledger, forked.id) == [1, 1] and verify_run(forked.id) == []


def test_what_no_relative_has_done_is_sent_at_once(crew: Crew, ledger: Ledger) -> None:
    run_id = chain(crew, "keyed", 2)
    forked = fork(run_id, len(journal(run_id)) - 1)
    assert crew.drive(forked.id).status == "done"
    assert journal(forked.id)[-1] == "DONE"


def test_a_source_that_goes_on_looks_at_its_fork_too(crew: Crew, ledger: Ledger) -> None:
    run_id = start("approval", {"effect": "keyed"})
    crew.drive(run_id)
    forked = fork(run_id, 1)
    assert crew.drive(forked.id).status == "awaiting_approval"
    asked = [e.body.get("repeats") for e in entries_of(forked.id) if e.kind == "APPROVAL"]
    assert asked[0] is None and asked[1] == [{"run": str(run_id), "seq": 3, "step": 1, "outcome": "awaiting_approval"}]
    approve(forked.id, 1)
    assert crew.drive(forked.id).status == "done"
    approve(run_id, 1)  # nobody who granted this was told of the fork's
    held = crew.drive(run_id)
    assert held.status == "awaiting_approval" and "which succeeded" in held.reason
    approve(run_id, 1)
    assert crew.drive(run_id).status == "done"


def test_what_happened_after_it_was_named_is_told_before_it_happens_again(crew: Crew, ledger: Ledger) -> None:
    run_id = start("approval", {"effect": "keyed"})
    crew.drive(run_id)
    forked = fork(run_id, 1)
    crew.drive(forked.id)  # its approver is told that the source's waits for approval
    crew.drive(run_id)
    approve(run_id, 1)
    if crew.drive(run_id).status != "done":  # it looked at its fork meanwhile
        approve(run_id, 1)
        assert crew.drive(run_id).status == "done"
    approve(forked.id, 1)
    told = crew.drive(forked.id)
    assert told.status == "awaiting_approval" and "which succeeded" in told.reason
    assert sent(ledger, forked.id) == [0]
    approve(forked.id, 1)
    assert crew.drive(forked.id).status == "done" and sent(ledger, forked.id) == [1]


def test_a_child_that_was_only_expected_when_somebody_let_it_is_told_once_it_was_started(
    crew: Crew, ledger: Ledger
) -> None:
    run_id = start("parent", {"children": [{"agent": "keyed", "input": {"amount_cents": 3}}]})
    named = Repeat(run_id, 2, 1, "pending")
    assert uncovered([named], [named]) == []
    for outcome in ("started", "succeeded", "erased"):
        assert uncovered([replace(named, outcome=outcome)], [named]) != [], outcome
    crew.drive(run_id)
    forked = fork(run_id, 1)
    told = crew.drive(forked.id)
    assert told.status == "held" and "which was started" in told.reason


# -- children ---------------------------------------------------------------------------------------------------------


def test_a_child_that_a_relative_has_started_is_started_again_only_when_somebody_lets_it(
    crew: Crew, ledger: Ledger
) -> None:
    run_id = start("parent", {"children": [{"agent": "keyed", "input": {"amount_cents": 3}}]})
    assert crew.drive_tree(run_id).status == "done"
    forked = fork(run_id, 1)
    told = crew.drive(forked.id)
    assert told.status == "held" and not Run.objects.filter(parent=forked.id).exists()
    assert f"it would start keyed (step 1) with the same as step 1 of {short_id(run_id)} (entry 3)" in told.reason
    resume_run(run_id=forked.id, reason="the first one was lost", actor="olga")
    assert crew.drive_tree(forked.id).status == "awaiting_approval"  # the charge behind it, which its source did too
    child = Run.objects.get(parent=forked.id)
    assert child.status == "done" and verify_run(forked.id) == []
    approve(forked.id, 2)
    assert crew.drive(forked.id).status == "done"


def test_of_two_that_would_start_the_same_child_the_second_waits(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [{"agent": "keyed", "input": {"amount_cents": 3}}]})
    forked = fork(run_id, 1)
    assert crew.drive(forked.id).status == "waiting"
    assert crew.drive(Run.objects.get(parent=forked.id).id).status == "done"
    assert crew.drive(run_id).status == "held" and not Run.objects.filter(parent=run_id).exists()
    assert crew.drive(forked.id).status == "done" and verify_run(run_id) == []


def test_a_fork_of_a_child_is_nobodys_child(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [{"agent": "keyed", "input": {"amount_cents": 3}}]})
    assert crew.drive_tree(run_id).status == "done"
    child = Run.objects.get(parent=run_id)
    forked = fork(child.id, 1)
    assert forked.parent is None and state_of(forked.id).parent is None
    assert crew.drive(forked.id).status == "awaiting_approval"
    assert Run.objects.get(id=run_id).status == "done"


def test_what_is_asked_about_anew_gives_up_its_place_among_limited_calls(crew: Crew, ledger: Ledger) -> None:
    @flow(name="narrow", version="1", tools=[tools.limited])
    def narrow(run: RunView) -> Any:
        yield Call(tools.limited)

    serve_also(narrow)
    run_id = start("narrow", release="1")
    one, other, third = fork(run_id, 1), fork(run_id, 1), start("narrow", release="1")
    cancel_run(run_id=run_id, reason="no", actor="olga")
    with connection.cursor() as cursor:  # as a call under way elsewhere has it
        cursor.execute("SELECT verdict FROM runs_acquire_v1(%s, 9, 1, 'limited', '', 1, NULL, NULL, NULL)", [run_id])
    assert crew.advance(one.id).status == "waiting"
    assert crew.advance(other.id).status == "awaiting_approval"
    approve(other.id, 1)
    assert crew.advance(other.id).status == "waiting" and crew.advance(third).status == "waiting"
    assert crew.standing is not None
    crew.standing.permits.free(run_id, None)
    assert crew.drive(one.id).status == "awaiting_approval"  # the other has come meanwhile
    assert crew.drive(other.id).status == "done"
    assert crew.drive(third).status == "done"
    approve(one.id, 1)
    assert crew.drive(one.id).status == "awaiting_approval"  # and has succeeded
    approve(one.id, 1)
    assert crew.drive(one.id).status == "done"
