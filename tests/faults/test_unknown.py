"""Unknown is neither success nor failure."""

from threading import Thread

import pytest

from runs.models import Run
from runs.queries import entries_of, state_of
from tests.crash.proof import assert_done_once, assert_parked_in_doubt, reconcile
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger, wait_until


@pytest.mark.parametrize("fault", ["hang", "late"])
def test_a_call_that_acted_and_did_not_answer_in_time_is_found_by_its_key(
    crew: Crew, ledger: Ledger, fault: str
) -> None:
    ledger.fault("refund", fault, seconds=3.0)
    run_id = start("hasty", {})
    run = crew.drive(run_id)
    assert_done_once(ledger, run)
    outcomes = [(e.body["outcome"], e.body["source"]) for e in entries_of(run_id) if e.kind == "OBS"]
    assert outcomes == [("unknown", "worker"), ("succeeded", "probe")]
    assert "ERROR:1" not in journal(run_id), "nobody was told that it failed"
    assert (ledger.calls(f"{run_id}:1"), ledger.probes(f"{run_id}:1")) == (1, 1)


def test_a_call_that_nobody_can_be_asked_about_waits_for_a_person(crew: Crew, ledger: Ledger) -> None:
    ledger.fault("mail", "late", seconds=3.0)
    run_id = start("hasty-unkeyed", {})
    assert_parked_in_doubt(ledger, crew.drive(run_id), acted=1)
    assert ledger.calls(f"{run_id}:1") == 1
    reconcile(run_id, "happened")
    assert_done_once(ledger, crew.drive(run_id))
    assert ledger.calls(f"{run_id}:1") == 1


def test_the_same_key_is_sent_at_each_try_resume_and_operators_word(crew: Crew, ledger: Ledger) -> None:
    """The ledger counts calls by the key that it was sent: all of them are under one."""
    ledger.fault("charge", "rate_limit", times=1, retry_after=0)
    ledger.fault("charge", "drop", times=1)
    run_id = start("keyed", {"amount_cents": 7})
    assert_done_once(ledger, crew.drive(run_id))
    sent = [e.body["source"] for e in entries_of(run_id) if e.kind == "ATTEMPT"]
    assert len(sent) == 2
    assert ledger.calls(f"{run_id}:1") == 3
    assert ledger.replays(f"{run_id}:1") == 1, "the other side knew the key again"
    unkeyed = start("unkeyed", {})
    ledger.fault("mail", "fail", times=1)
    assert_parked_in_doubt(ledger, crew.drive(unkeyed), acted=0)
    reconcile(unkeyed, "never_happened")
    assert_done_once(ledger, crew.drive(unkeyed))
    assert ledger.calls(f"{unkeyed}:1") == 2


def test_a_key_in_the_arguments_is_an_argument_and_nothing_more(crew: Crew, ledger: Ledger) -> None:
    run_id = start("argument", {"name": "uuid"})
    crew.drive(run_id)
    slot = state_of(run_id).slots[1]
    assert slot.key == f"{run_id}:1" and str(slot.args["value"]).startswith("00000000")
    assert ledger.calls(slot.key) == 1


def test_a_second_claim_by_the_same_process_fences_the_first(crew: Crew, ledger: Ledger) -> None:
    """The session was ended while its worker was in a call; another session of the same process took the run."""
    first, second = crew.hire(), crew.hire()
    run_id = start("slow", {"seconds": 2.0})
    release_id = Run.objects.get(id=run_id).release_id
    slow = Thread(target=first.advance, args=(run_id, release_id))
    slow.start()
    wait_until(lambda: ledger.acted(f"{run_id}:1") == 1, "the call has acted")
    crew.lose(first)
    second.advance(run_id, release_id)
    run = Run.objects.filter(id=run_id).values().get()
    entries = entries_of(run_id)
    assert run["status"] == "done"
    slow.join(60)
    assert entries_of(run_id) == entries
    assert Run.objects.filter(id=run_id).values().get() == run
    assert ledger.calls(f"{run_id}:1") == 1
