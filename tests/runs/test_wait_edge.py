"""Waits at their edges: of no length, of one, by the thousand, and questions of every type."""

from __future__ import annotations

import time
from typing import Any, Literal

import pytest
from django.db import connection
from pydantic import BaseModel

from journal.append import append_person
from journal.entries import Draft
from journal.verify import verify_run
from runs.answer_types import answer_fault
from runs.commands import answer_ask, signal_run
from runs.errors import AnswerInvalid
from runs.models import Run
from runs.queries import entries_of
from runs.sdk import Ask
from runs.slots import Slot
from runs.state import fold
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger
from tests.rig.robot import Robot, tree_of

CALL = ["call", "keyed-probe"]


@pytest.mark.parametrize("driver", ["script", "script-decide", "script-model"])
def test_waits_of_no_length_and_a_first_of_one(crew: Crew, ledger: Ledger, driver: str) -> None:
    program = [["sleep", 0], ["wait", "never", 0], ["ask", 0], ["first", [["sleep", 0]]], CALL]
    run_id = start(driver, [*program, ["first", [["wait", "never", 0]]]])
    assert crew.drive(run_id).status == "done"
    assert state(run_id).done == {"result": [None, "!expired", "!expired", [0, None], "acted", "!expired"]}


def test_a_signal_that_came_before_a_wait_of_no_length_is_taken(crew: Crew, ledger: Ledger) -> None:
    run_id = start("script", [["wait", "go", 0]])
    signal_run(run_id=run_id, name="go", payload=1, actor="olga")
    crew.drive(run_id)
    assert state(run_id).done == {"result": [1]}


class Address(BaseModel):
    street: str
    number: int


@pytest.mark.parametrize(
    ("type_", "right", "wrong", "told"),
    [
        (str, "yes", 1, "string"),
        (int, 7, 7.5, "integer"),
        (bool, True, "true", "boolean"),
        (type(None), None, 0, "null"),
        (Literal["skip", "repair"], "skip", "Skip", "repair"),
        (int | None, None, "none", "answer"),
        (list[int], [1, 2], [1, "2"], r"answer.1"),
        (Address, {"street": "Main", "number": 1}, {"street": "Main", "number": "1"}, r"answer.number"),
        ({"type": "string", "maxLength": 3}, "abc", "abcd", "longer than 3"),
    ],
)
def test_an_answer_is_checked_against_the_asked_type(type_: Any, right: Any, wrong: Any, told: str) -> None:
    asked = Ask("Which?", type_)
    slot = Slot(1, "ask", 2, None, {"question": asked.question, "schema": asked.schema})  # type: ignore[arg-type]
    assert answer_fault(slot.body, right) is None
    assert told in (answer_fault(slot.body, wrong) or ""), answer_fault(slot.body, wrong)


def test_an_option_is_itself_and_not_what_equals_it(crew: Crew) -> None:
    """True is not 1, and 100.0 is not the integer that was offered."""
    run_id = start("asks", {"options": [1, 100]})
    crew.drive(run_id)
    seq = state(run_id).slots[1].seq
    for wrong in (True, 100.5, "1", [1]):
        with pytest.raises(AnswerInvalid):
            answer_ask(run_id=run_id, seq=seq, value=wrong, actor="ada")


@pytest.mark.slow
def test_ten_thousand_signals_are_taken_in_order(crew: Crew, ledger: Ledger) -> None:
    run_id = start("script", [["wait", "go", None]] * 50)
    crew.drive(run_id)
    for first in range(0, 10_000, 500):
        entries = [Draft("SIGNAL", {"name": "go", "payload": number}) for number in range(first, first + 500)]
        append_person(run_id, entries, request_id=None, actor="olga")
    began = time.monotonic()
    signal_run(run_id=run_id, name="go", payload=10_000, actor="olga")
    assert time.monotonic() - began < 10, "one more signal, behind ten thousand others"
    Run.objects.filter(id=run_id).update(status="queued")
    began = time.monotonic()
    assert crew.drive(run_id, seconds=90).status == "done"
    assert time.monotonic() - began < 60
    assert state(run_id).done == {"result": list(range(50))}
    entries_now = entries_of(run_id)
    began = time.monotonic()
    fold(run_id, entries_now)
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_thousand_children_of_one_parent(crew: Crew, ledger: Ledger) -> None:
    """Born in one append, joined a handful of times and not once for each."""
    root = start("script", [["all", [["spawn", [["sleep", 0]], "script"]] * 1_000]])
    began = time.monotonic()
    crew.advance(root)
    born = time.monotonic() - began
    assert Run.objects.filter(parent=root).count() == 1_000
    began = time.monotonic()
    crew.drive_out(Robot(ledger.acted), root, seconds=200)
    ended = time.monotonic() - began
    assert state(root).done == {"result": [[[None]] * 1_000]}
    assert journal(root).count("START") == 1 and Run.objects.get(id=root).epoch <= 3, "it was woken once"
    assert verify_run(root) == [] and len(tree_of(root)) == 1_001
    print(f"1,000 children: born in {born:.2f} s, ended and joined in {ended:.2f} s")
    connection.close()
