"""Waits: signals, questions, time, and the first of several."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from runs.commands import answer_ask, cancel_run, signal_run
from runs.errors import AlreadyAnswered, AnswerInvalid, AskNotFound, BadInput, RunEnded, SignalIdTaken
from runs.queries import entries_of
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger


def test_signals_are_taken_in_order_and_early_ones_wait(crew: Crew, ledger: Ledger) -> None:
    run_id = start("signals", {"names": ["b", "a", "a"]})
    for name, payload in (("a", 1), ("a", 2), ("b", 3)):
        signal_run(run_id=run_id, name=name, payload=payload, actor="olga")
    run = crew.drive(run_id)
    assert run.status == "done" and entries_of(run_id)[-1].body["result"] == [3, 1, 2]


def test_a_run_waits_without_a_worker_until_its_signal_comes(crew: Crew, ledger: Ledger) -> None:
    run_id = start("signals", {"names": ["go"]})
    parked = crew.drive(run_id)
    assert (parked.status, parked.reason, parked.session_id) == ("waiting", "waits for the signal go", None)
    other = signal_run(run_id=run_id, name="other", actor="olga")
    assert other.status == "waiting"  # nobody takes it yet, and nothing is woken for it
    assert signal_run(run_id=run_id, name="go", payload={"by": "train"}, actor="olga").status == "queued"
    assert crew.drive(run_id).status == "done"
    assert entries_of(run_id)[-1].body["result"] == [{"by": "train"}]
    assert [signal.step for signal in state(run_id).signals] == [None, 1]


def test_a_wait_expires_and_a_signal_that_comes_later_stays_untaken(crew: Crew, ledger: Ledger) -> None:
    run_id = start("signals", {"names": ["go", "go"], "timeout": 0.2})
    crew.drive(run_id)
    assert entries_of(run_id)[-1].body["result"] == ["expired", "expired"]
    with pytest.raises(RunEnded):
        signal_run(run_id=run_id, name="go", actor="olga")


def test_the_same_signal_id_comes_once(crew: Crew, ledger: Ledger) -> None:
    run_id = start("signals", {"names": ["go", "go"]})
    crew.drive(run_id)

    def send(_: int) -> None:
        signal_run(run_id=run_id, name="go", payload=1, signal_id="m-1", actor="olga")
        connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))
    assert journal(run_id).count("SIGNAL") == 1
    with pytest.raises(SignalIdTaken):
        signal_run(run_id=run_id, name="go", payload=2, signal_id="m-1", actor="olga")
    with pytest.raises(BadInput):
        signal_run(run_id=run_id, name="", actor="olga")
    signal_run(run_id=run_id, name="go", payload=2, actor="olga")
    assert crew.drive(run_id).status == "done"
    signal_run(run_id=run_id, name="go", payload=1, signal_id="m-1", actor="olga")  # known, though the run is over


def test_an_answer_of_the_asked_type_goes_on_with_the_run(crew: Crew, ledger: Ledger) -> None:
    run_id = start("asks", {"options": [100, 200]})
    parked = crew.drive(run_id)
    assert (parked.status, parked.reason) == ("waiting", "asks: How much?")
    seq = state(run_id).slots[1].seq
    for wrong, why in (("100", "one of 100, 200"), (300, "one of 100, 200"), (None, "one of 100, 200")):
        with pytest.raises(AnswerInvalid, match=why):
            answer_ask(run_id=run_id, seq=seq, value=wrong, actor="olga")
    with pytest.raises(AskNotFound):
        answer_ask(run_id=run_id, seq=seq + 1, value=100, actor="olga")
    answer_ask(run_id=run_id, seq=seq, value=200, actor="ada")
    assert crew.drive(run_id).status == "done"
    assert ledger.acted(f"{run_id}:2") == 1
    with pytest.raises(AlreadyAnswered, match="ada: succeeded"):
        answer_ask(run_id=run_id, seq=seq, value=100, actor="olga")


def test_an_answer_of_another_type_is_refused_with_its_place(crew: Crew) -> None:
    run_id = start("asks", {})
    crew.drive(run_id)
    with pytest.raises(AnswerInvalid, match="integer"):
        answer_ask(run_id=run_id, seq=state(run_id).slots[1].seq, value="many", actor="olga")


def test_one_of_many_answers_is_written(crew: Crew, ledger: Ledger) -> None:
    run_id = start("asks", {})
    crew.drive(run_id)
    seq = state(run_id).slots[1].seq

    def answer(value: int) -> bool:
        try:
            answer_ask(run_id=run_id, seq=seq, value=value, actor=f"p{value}")
        except AlreadyAnswered:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(answer, range(1, 9))) == 1
    assert crew.drive(run_id).status == "done" and journal(run_id).count("ANSWER:1") == 1


def test_a_question_expires(crew: Crew) -> None:
    run_id = start("asks", {"timeout": 0.2})
    crew.drive(run_id)
    assert entries_of(run_id)[-1].body["result"] == "ask expired"
    seq = state(run_id).slots[1].seq
    with pytest.raises(AlreadyAnswered, match="system: expired"):
        answer_ask(run_id=run_id, seq=seq, value=1, actor="olga")


def test_the_first_of_a_signal_and_a_deadline_withdraws_the_other(crew: Crew, ledger: Ledger) -> None:
    late = start("race", {"seconds": 0.2})
    crew.drive(late)
    assert entries_of(late)[-1].body["result"] == [1, None]
    assert [slot.outcome for slot in state(late).slots.values()] == ["cancelled", "succeeded", "succeeded"]
    early = start("race", {"seconds": 3600})
    parked = crew.advance(early)
    assert parked.reason.startswith("sleeping until") and parked.reason.endswith("; waits for the signal go")
    signal_run(run_id=early, name="go", payload="now", actor="olga")
    assert crew.drive(early).status == "done"
    assert entries_of(early)[-1].body["result"] == [0, "now"]


def test_a_wait_is_withdrawn_when_its_run_is_cancelled(crew: Crew) -> None:
    for agent, given in (("signals", {"names": ["go"]}), ("asks", {})):
        run_id = start(agent, given)
        crew.drive(run_id)
        cancel_run(run_id=run_id, reason="enough", actor="olga")
        assert crew.drive(run_id).status == "cancelled"
        assert state(run_id).slots[1].outcome == "cancelled"


def test_an_answer_comes_back_as_a_value_of_its_type(crew: Crew) -> None:
    run_id = start("asks-typed")
    crew.drive(run_id)
    with pytest.raises(AnswerInvalid, match="date-time"):
        answer_ask(run_id=run_id, seq=state(run_id).slots[1].seq, value="not a date", actor="olga")
    answer_ask(run_id=run_id, seq=state(run_id).slots[1].seq, value="2026-11-29T12:00:00Z", actor="olga")
    crew.drive(run_id)
    answer_ask(run_id=run_id, seq=state(run_id).slots[2].seq, value="12.50", actor="olga")
    assert crew.drive(run_id).status == "done"
    assert entries_of(run_id)[-1].body["result"] == ["datetime", "Decimal", []]


def test_an_answer_that_the_schema_lets_pass_but_not_the_type_fails_the_question(crew: Crew) -> None:
    run_id = start("asks-typed")
    crew.drive(run_id)
    answer_ask(run_id=run_id, seq=state(run_id).slots[1].seq, value="2026-11-29T12:00:00Z", actor="olga")
    crew.drive(run_id)
    answer_ask(run_id=run_id, seq=state(run_id).slots[2].seq, value="abc", actor="olga")
    failed = crew.drive(run_id)
    assert failed.status == "failed" and "ask failed: the answer is not of its type" in failed.reason


def test_a_decider_sees_what_came_of_its_waits(crew: Crew) -> None:
    run_id = start("decides-waits")
    assert crew.drive(run_id).status == "done"
    assert entries_of(run_id)[-1].body["result"] == ["expired"]
