"""A journal cut at every entry: whatever the last word was, a worker goes on from it rightly."""

from uuid import UUID

import pytest
from django.db import connection, transaction

from journal.append import append_person, create_head, new_run_id
from journal.entries import Draft, Entry
from journal.verify import verify_run
from recovery.commands import reconcile_intent
from runs.models import Run
from runs.queries import entries_of
from tests.rig.crew import Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.programs import PROGRAMS
from tests.rig.robot import Robot


def copy_prefix(run: Run, entries: list[Entry], length: int) -> UUID:
    """A run whose journal is this one's first entries, keys made its own; held by nobody."""
    with transaction.atomic():
        run_id = new_run_id()
        create_head(run_id)
        for e in entries[:length]:
            body = dict(e.body)
            if "key" in body:
                body["key"] = f"{run_id}:{e.step}"
            draft = Draft(e.kind, body, e.step, e.settles, actor=e.actor)
            append_person(run_id, [draft], request_id=None, actor=e.actor)
        Run.objects.create(id=run_id, agent=run.agent, release_id=run.release_id, as_of_seq=length)
    connection.close()
    return run_id


def ends_of_appends(run_id: UUID) -> list[int]:
    """Where a crash can cut a journal: the entries of one append are committed together."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq FROM journal_entry WHERE run_id = %s AND link IS NOT NULL ORDER BY seq", [run_id])
        return [seq for (seq,) in cursor.fetchall()]


@pytest.mark.parametrize("effect", ["read", "keyed", "keyed-probe", "probed", "unkeyed"])
@pytest.mark.parametrize("agent", ["chain", "siblings", "decide", "model"])
def test_a_journal_cut_anywhere_is_resumed(crew: Crew, ledger: Ledger, agent: str, effect: str) -> None:
    given = {"chain": {"steps": 2, "effect": effect}, "siblings": {"effects": [effect, "keyed"]}}
    first = start(agent, given.get(agent, {"effect": effect}))
    whole = crew.drive(first)
    entries = entries_of(first)
    assert whole.status == "done"
    for length in ends_of_appends(first)[:-1]:
        run_id = copy_prefix(whole, entries, length)
        settled = {e.step for e in entries[:length] if e.kind == "OBS"}
        run = crew.drive(run_id)
        while run.status == "needs_reconciliation":
            for slot in [slot for slot in state(run_id).unsettled() if slot.in_doubt]:
                assert slot.effect == "unkeyed", "only what nobody can be asked about waits for a person"
                reconcile_intent(run_id=run_id, seq=slot.seq, verdict="never_happened", evidence="cut", actor="olga")
            run = crew.drive(run_id)
        assert run.status == "done", (length, run.reason)
        assert verify_run(run_id) == []
        for slot in state(run_id).slots.values():
            acted = ledger.acted(slot.key)
            assert acted == (0 if slot.step in settled or slot.effect == "read" else 1), (length, slot.step)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_journal_of_waits_cut_anywhere_is_resumed(crew: Crew, ledger: Ledger, name: str) -> None:
    """Its children are those that were born before the cut; signals and answers after it come again."""
    program, result = PROGRAMS[name]
    robot = Robot(ledger.acted)
    first = start("script", program)
    crew.drive_out(robot, first)
    entries = entries_of(first)
    for length in ends_of_appends(first)[:-1]:
        run_id = copy_prefix(Run.objects.get(id=first), entries, length)
        settled = {e.step for e in entries[:length] if e.settles}
        crew.drive_out(robot, run_id)
        assert state(run_id).done == {"result": result}, length
        assert verify_run(run_id) == []
        for slot in state(run_id).slots.values():
            if slot.kind == "call":
                assert ledger.acted(slot.key) == (0 if slot.step in settled else 1), (length, slot.step)
        for slot in state(run_id).slots.values():
            if slot.kind == "child":
                assert Run.objects.filter(id=slot.child, parent__in=(first, run_id)).count() == 1
