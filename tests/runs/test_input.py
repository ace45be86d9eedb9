"""An agent says what it takes: who starts a run with anything else is told where it is wrong, and nothing starts."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from runs.errors import BadInput, InputRefused, RequestKeyTaken
from runs.inputs import input_refusal
from runs.models import Run
from runs.queries import entries_of
from runs.sdk import Agent, Finish
from runs.sdk import start as start_by_sdk
from runs.starting import start_run
from runs.testing import run
from tests.rig.agents import typed
from tests.rig.crew import Crew, start
from tests.rig.ledger import Ledger
from tests.runs.staged import NAME, release

GOOD = {"order_id": "o-1", "amount_cents": 5}


class Order(BaseModel):
    order_id: str
    cents: int = 0


@dataclass
class Small:
    n: int


def agent(**given: Any) -> Agent:
    return Agent("a", "1", decide=lambda state: Finish(), **given)


def test_the_schema_of_the_input_is_part_of_the_release() -> None:
    assert agent(input=Order).content["input"]["required"] == ["order_id"]
    assert agent(input=Small).content["input"]["properties"]["n"]["type"] == "integer"
    assert agent(input={"type": "integer"}).content["input"] == {"type": "integer"}
    assert agent(input=Order).release_id != agent(input=Small).release_id


def test_an_agent_that_takes_anything_keeps_its_release() -> None:
    assert "input" not in agent().content


@pytest.mark.parametrize("wrong", [{"type": 5}, 5, {"$ref": "https://example.org/x"}])
def test_what_is_no_type_is_refused_where_the_agent_is_declared(wrong: Any) -> None:
    with pytest.raises(ValueError, match="agent a: input="):
        agent(input=wrong)


def test_a_wrong_input_is_refused_by_its_path_and_nothing_starts(crew: Crew) -> None:
    with pytest.raises(BadInput) as refused:
        start_by_sdk("typed", {"order_id": 4, "amount_cents": "x"})
    assert str(refused.value) == (
        'The agent does not take this input: input.order_id: It is not of type "string"; '
        'input.amount_cents: It is not of type "integer".'
    )
    assert isinstance(refused.value, InputRefused)
    assert [error["field"] for error in refused.value.errors] == ["input.order_id", "input.amount_cents"]
    with pytest.raises(BadInput, match="input: It is not of type"):
        start_by_sdk("typed")
    assert not Run.objects.exists()


def test_a_right_input_reaches_the_agent_as_it_was_given(crew: Crew) -> None:
    due = datetime(2031, 1, 31, 12, tzinfo=UTC)
    run_id = start_by_sdk("typed", GOOD | {"due": due})
    assert crew.drive(run_id).status == "done"
    assert entries_of(run_id)[-1].body["result"] == {"input": GOOD | {"due": due}}


def test_a_repeated_start_gets_its_run_though_the_input_is_no_longer_taken(dsn: str) -> None:
    given = {"agent": NAME, "input": 1, "actor": "olga", "request_key": "k"}
    release("7", input={"const": 1})
    first, made = start_run(**given)
    assert made
    newer = release("8", input={"type": "object"})
    assert newer.stage == "current"
    again, made = start_run(**given)
    assert again.id == first.id and not made
    with pytest.raises(InputRefused):
        start_run(**given | {"request_key": "another"})
    with pytest.raises(RequestKeyTaken):
        start_run(**given | {"input": 2})


def test_what_a_newer_release_keeps_secret_is_no_other_content_of_a_repeated_start(dsn: str) -> None:
    def takes(**card: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"card": {"type": "string"} | card}}

    given = {"agent": NAME, "input": {"card": "1234"}, "actor": "olga", "request_key": "k"}
    release("7", input=takes())
    first, _ = start_run(**given)
    release("8", input=takes(writeOnly=True))
    assert start_run(**given)[0].id == first.id


def test_a_child_whose_input_is_not_taken_is_refused_with_the_sentence(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [{"agent": "typed", "input": {"order_id": "x"}}]})
    assert crew.drive_tree(run_id).status == "done"
    said = str(entries_of(run_id)[-1].body["result"])
    assert "The agent does not take this input: input.order_id: It does not match" in said
    assert not Run.objects.filter(parent=run_id).exists()


def test_a_child_whose_input_is_taken_is_born(crew: Crew, ledger: Ledger) -> None:
    run_id = start("parent", {"children": [{"agent": "typed", "input": GOOD}]})
    assert crew.drive_tree(run_id).status == "done"
    assert Run.objects.get(parent=run_id).status == "done"


def test_in_memory_it_is_the_same() -> None:
    assert run(typed, GOOD).result == {"input": GOOD}
    with pytest.raises(BadInput, match=r"input\.order_id: It is missing"):
        run(typed, {})


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1: 2}, [None] * 10_000, {"order_id": "o-\ud800"}])
def test_any_value_is_judged_without_an_exception(value: Any) -> None:
    assert input_refusal(typed.takes, value).startswith("The agent does not take this input: input")
