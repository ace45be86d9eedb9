"""Reconcile: people settle what nobody knows, once, by key and with evidence; late results speak for themselves."""

from uuid import UUID

import pytest

from recovery.commands import reconcile_intent
from recovery.errors import AlreadyReconciled, AttemptOutdated, CannotProbe, EvidenceMissing, NotInDoubt
from runs.errors import BadInput
from runs.models import Evidence, Run
from runs.queries import entries_of, list_intents
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger, wait_until


def in_doubt(crew: Crew, ledger: Ledger) -> tuple[UUID, int]:
    """A letter that went out, and whose answer never came."""
    ledger.fault("mail", "drop", times=1)
    run_id = start("unkeyed", {})
    run = crew.drive(run_id)
    assert run.status == "needs_reconciliation"
    assert run.reason == "letter (step 1) may have happened: nobody can be asked"
    (intent,) = list_intents(state="in_doubt")[0]
    return run_id, intent.seq


def say(run_id: UUID, seq: int, verdict: str, **more: object) -> Run:
    return reconcile_intent(
        run_id=run_id,
        seq=seq,
        verdict=verdict,
        evidence="saw it in the outbox",
        actor="olga",
        **more,  # type: ignore[arg-type]
    )


def test_what_happened_is_not_sent_again_and_its_result_is_the_persons(crew: Crew, ledger: Ledger) -> None:
    run_id, seq = in_doubt(crew, ledger)
    say(run_id, seq, "happened", result={"id": "mail-1"})
    assert crew.drive(run_id).status == "done"
    assert journal(run_id)[-4:] == ["OBS:1", "RECONCILE:1", "OBS:1", "DONE"]
    found, settled, done = entries_of(run_id)[-3:]
    assert (found.actor, found.body) == ("olga", {"verdict": "happened", "evidence": "saw it in the outbox"})
    assert settled.body["source"] == "operator" and done.body == {"result": {"id": "mail-1"}}
    assert ledger.acted(f"{run_id}:1") == 1


def test_what_never_happened_is_executed_under_its_own_key(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "fail", times=1)
    run_id = start("unkeyed", {})
    crew.drive(run_id)
    (intent,) = list_intents(state="in_doubt")[0]
    say(run_id, intent.seq, "never_happened")
    assert crew.drive(run_id).status == "done"
    assert [e.body for e in entries_of(run_id) if e.kind == "ATTEMPT"] == [{"attempt": 2, "source": "operator"}]
    assert ledger.acted(f"{run_id}:1") == 1


def test_an_abort_ends_the_run_and_leaves_the_question_on_record(crew: Crew, ledger: Ledger) -> None:
    run_id, seq = in_doubt(crew, ledger)
    run = say(run_id, seq, "abort")
    assert (run.status, run.session_id) == ("cancelled", None)
    assert journal(run_id)[-2:] == ["RECONCILE:1", "DONE"]
    assert state(run_id).slots[1].in_doubt, "nobody said what happened"


def test_a_second_answer_hears_who_was_first(crew: Crew, ledger: Ledger) -> None:
    run_id, seq = in_doubt(crew, ledger)
    say(run_id, seq, "happened")
    with pytest.raises(AlreadyReconciled) as refused:
        reconcile_intent(run_id=run_id, seq=seq, verdict="never_happened", evidence="no", actor="ada")
    assert refused.value.actor == "olga"


def test_evidence_is_needed_and_the_tool_must_be_able_to_answer(crew: Crew, ledger: Ledger) -> None:
    run_id, seq = in_doubt(crew, ledger)
    with pytest.raises(EvidenceMissing):
        reconcile_intent(run_id=run_id, seq=seq, verdict="happened", evidence=" ", actor="olga")
    with pytest.raises(CannotProbe):
        say(run_id, seq, "probe")
    assert Run.objects.get(id=run_id).status == "needs_reconciliation"


def test_a_settled_intent_is_not_in_doubt(crew: Crew, ledger: Ledger) -> None:
    run_id = start("approval", {"effect": "keyed"})
    crew.drive(run_id)
    with pytest.raises(NotInDoubt):
        say(run_id, state(run_id).slots[1].seq, "happened")


def test_a_result_that_comes_after_its_timeout_is_adopted(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "late", times=1, seconds=2)
    run_id = start("hasty-unkeyed", {})
    worker = crew.hire()
    assert crew.drive(run_id, worker).status == "needs_reconciliation", "it gave up after one second"
    wait_until(lambda: Evidence.objects.filter(run_id=run_id, outcome="succeeded").exists(), "the late answer is kept")
    wait_until(lambda: Run.objects.get(id=run_id).status == "queued", "the run is looked at again")
    assert crew.drive(run_id, worker).status == "done"
    late = [e for e in entries_of(run_id) if e.kind in ("RECONCILE", "OBS")][-2:]
    assert (late[0].actor, late[0].body["verdict"], late[1].body["source"]) == ("system", "happened", "late")
    assert Evidence.objects.get(run_id=run_id).adopted_seq == late[1].seq
    assert ledger.acted(f"{run_id}:1") == 1


def test_a_verdict_serves_for_the_attempt_that_was_judged_and_for_no_later_one(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "fail", times=2)
    run_id = start("unkeyed", {})
    crew.drive(run_id)
    (intent,) = list_intents(state="in_doubt")[0]
    assert intent.attempt == 1
    say(run_id, intent.seq, "never_happened", attempt=1)
    assert crew.drive(run_id).status == "needs_reconciliation", "the second send is in doubt too"
    with pytest.raises(AttemptOutdated):
        say(run_id, intent.seq, "never_happened", attempt=1)
    with pytest.raises(AlreadyReconciled):
        say(run_id, intent.seq, "never_happened")
    assert ledger.calls(f"{run_id}:1") == 2
    say(run_id, intent.seq, "never_happened", attempt=2)
    assert crew.drive(run_id).status == "done"
    assert ledger.acted(f"{run_id}:1") == 1


def test_a_result_goes_with_what_happened_only(crew: Crew, ledger: Ledger) -> None:
    run_id, seq = in_doubt(crew, ledger)
    with pytest.raises(BadInput):
        say(run_id, seq, "never_happened", result={"id": 1})
