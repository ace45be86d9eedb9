"""What cannot be decided is refused where the agent's code writes it, with what to write instead."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import pytest

from runs.answer_types import schema_fault
from runs.errors import BadInput
from runs.moves import Ask, Sleep, Spawn, WaitFor
from runs.starting import start_run


class Colour(Enum):
    RED = "red"


BAD_LABELS = [
    ({"a": 5}, "names and values are texts, not str and int"),
    ({5: "a"}, "names and values are texts, not int and str"),
    ({"a:b": "c"}, "a name has no colon"),
    ({"a": "x\0"}, "without NUL"),
    ({"a": "\udcff"}, "whole Unicode text"),
    ({"": "a"}, "1 to 200 characters"),
    ({"a" * 201: "b"}, "1 to 200 characters"),
    ({"a": "b" * 201}, "a value at most 200"),
    ({"a": None}, "names and values are texts, not str and NoneType"),
    ({str(n): "" for n in range(51)}, "at most 50 labels"),
]


@pytest.mark.parametrize(("labels", "said"), BAD_LABELS)
def test_labels_are_judged_the_same_for_a_child_and_for_a_start(labels: Any, said: str) -> None:
    with pytest.raises(ValueError, match=rf"Spawn\(labels=\): .*{said}"):
        Spawn("desk", labels=labels)
    with pytest.raises(BadInput, match=said):
        start_run(agent="desk", input=None, labels=labels, actor="olga")


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (lambda: Spawn("tr\0ee"), "Spawn takes an agent or its name"),
        (lambda: Spawn("x" * 201), "1 to 200 characters"),
        (lambda: Spawn("desk", release=7), "Spawn(release=) takes the version"),  # type: ignore[arg-type]
        (lambda: Sleep(until=datetime.max.replace(tzinfo=UTC)), "Sleep(until=) takes a time in the years 2 to 9998"),
        (lambda: Sleep(until=datetime.min.replace(tzinfo=UTC)), "Sleep(until=) takes a time in the years 2 to 9998"),
        (lambda: Spawn("desk", labels=["a"]), "Spawn(labels=) takes texts by name, not ['a']"),  # type: ignore[arg-type]
        (lambda: Spawn("desk", deadline="5"), "seconds, from above 0 to ten years, not '5'"),  # type: ignore[arg-type]
        (lambda: Spawn("desk", deadline=0), "Spawn(deadline=) takes a number of seconds, from above 0"),
        (lambda: Sleep(float("nan")), "Sleep takes a number of seconds, from 0 to ten years, not nan"),
        (lambda: Sleep(until="2031-01-31"), "Sleep(until=) needs a datetime"),  # type: ignore[arg-type]
        (lambda: WaitFor("go", timeout="5"), "WaitFor(timeout=) takes a number of seconds"),  # type: ignore[arg-type]
        (lambda: Ask("Which?", timeout=-1), "Ask(timeout=) takes a number of seconds"),
        (lambda: Ask("Which?", {"type": "banana"}), '"banana" is not valid'),
        (lambda: Ask("Which?", {"$ref": "http://127.0.0.1:9/x"}), "is not fetched"),
        (lambda: Ask("Which?", {"$ref": "#/$defs/none"}), "does not exist"),
        (lambda: Ask("Which?", {"enum": {1}}), "Ask(type=) is no JSON schema"),
        (lambda: Ask("Which?", int, options=["a", "b"]), "'a' is no answer of the question's type="),
        (lambda: Ask("Which?", options=[1, 2]), "1 is no answer of the question's type="),
    ],
)
def test_a_move_that_could_never_come_to_something_is_refused(move: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        move()


def test_options_are_kept_as_a_person_gives_them() -> None:
    assert Ask("Which?", Colour, options=[Colour.RED]).options == ["red"]
    assert Ask("When?", date, options=[date(2031, 1, 31)]).options == ["2031-01-31"]
    assert Ask("Which?", int | None, options=[1, None]).options == [1, None]


def test_a_schema_that_was_asked_under_before_never_fetches_either() -> None:
    with pytest.raises(ValueError, match="not fetched"):
        schema_fault({"$ref": "http://127.0.0.1:9/x"}, 5)


def test_an_answer_that_json_cannot_hold_is_none() -> None:
    assert schema_fault({"type": "string"}, "\udcff") == "answer: it is no whole Unicode text"
    assert schema_fault({"type": "object", "required": ["a"]}, {}) == 'answer: "a" is a required property'
