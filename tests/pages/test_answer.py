"""A question is answered on a page made from its schema."""

from typing import Any

import pytest
from django.test import Client

from journal.entries import Kind
from journal.read import read_entries
from runs.models import Status
from tests.pages.conftest import signed_in
from tests.pages.journals import Story

pytestmark = pytest.mark.django_db

ADDRESS = {
    "type": "object",
    "title": "Address",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


def asking(schema: dict[str, Any], **more: Any) -> tuple[Story, str]:
    story = Story()
    seq = story.ask("How much?", schema, **more)
    return story.now_is(Status.WAITING, "asks: How much?"), f"{story.url}/asks/{seq}/answer"


def answers_of(story: Story) -> list[Any]:
    return [entry.body["value"] for entry in read_entries(None, story.run.id, kinds=[Kind.ANSWER])]


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "string"}, " two\r\nlines ", " two\nlines "),
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, str(10**40), 10**40),
        ({"type": "number"}, "-1.5", -1.5),
        ({"type": "boolean"}, "false", False),
        ({"enum": ["skip", 7, None]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "", None),
    ],
    ids=["text", "integer", "large", "number", "boolean", "enum", "either"],
)
def test_an_answer_is_written_as_its_schema_has_it(
    olga: Client, schema: dict[str, Any], written: str, value: object
) -> None:
    story, address = asking(schema)
    assert olga.get(address).status_code == 200
    assert olga.post(address, {"value": written}).status_code == 302
    assert answers_of(story) == [value] and type(answers_of(story)[0]) is type(value)
    assert read_entries(None, story.run.id)[-1].actor == "olga"


def test_options_are_offered_one_by_one_and_sent_as_they_are(olga: Client) -> None:
    story, address = asking({"type": "integer"}, options=[5, 10, 20])
    page = olga.get(address).content.decode()
    assert page.count('type="radio"') == 3 and "checked" not in page and ">20</span>" in page
    assert olga.post(address, {"value": "20"}).status_code == 302
    assert answers_of(story) == [20]


@pytest.mark.parametrize(
    ("schema", "written", "said"),
    [
        ({"type": "integer"}, "1.5", "This is not a whole number. Write it as 12."),
        ({"type": "integer"}, "true", "This is not a whole number."),
        ({"type": "number"}, "NaN", "This is not a number."),
        ({"type": "string"}, "  ", "It cannot be left out."),
        ({"type": "string", "maxLength": 3}, "four", "longer than 3"),
        ({"type": "boolean"}, "", "It cannot be left out."),
        ({"type": "boolean"}, "9", "Choose one of these."),
        ({"type": "object"}, "{city: Bergen}", "This is not JSON: line 1, column 2, at “city: Bergen}”"),
        ({"type": "object"}, "[" * 100_000, "nested too deep"),
    ],
)
def test_what_is_no_answer_is_said_at_the_field_and_nothing_is_written(
    olga: Client, schema: dict[str, Any], written: str, said: str
) -> None:
    story, address = asking(schema)
    answer = olga.post(address, {"value": written})
    page = answer.content.decode()
    assert answer.status_code == 422 and said in page and 'class="err"' in page
    assert answers_of(story) == []


def test_an_answer_of_an_object_is_written_field_by_field(olga: Client) -> None:
    story, address = asking(ADDRESS)
    assert 'name="value/city"' in olga.get(address).content.decode()
    wrong = olga.post(address, {"value/city": ""})
    assert wrong.status_code == 422 and "It cannot be left out." in wrong.content.decode()
    assert olga.post(address, {"value/city": "Bergen"}).status_code == 302
    assert answers_of(story) == [{"city": "Bergen"}]


def test_an_answer_in_json_shows_its_schema(olga: Client) -> None:
    _, address = asking({"type": "object", "additionalProperties": {"type": "integer"}})
    page = olga.get(address).content.decode()
    assert "Schema" in page and "&quot;additionalProperties&quot;" in page


def test_the_second_answer_is_told_who_was_first(olga: Client, max: Client) -> None:
    story, address = asking({"type": "string"})
    olga.post(address, {"value": "yes"})
    late = max.post(address, {"value": "no"})
    assert late.status_code == 409 and "olga" in late.content.decode()
    assert "Answered by olga" in max.get(address).content.decode()
    assert answers_of(story) == ["yes"]


def test_a_question_that_is_not_there_is_not_found(olga: Client) -> None:
    story, _ = asking({"type": "string"})
    assert olga.get(f"{story.url}/asks/99/answer").status_code == 404


@pytest.mark.parametrize(("who", "may"), [("victor", False), ("ada", True), ("olga", True), ("max", True)])
def test_answering_is_for_those_who_may_answer(cast: None, who: str, may: bool) -> None:
    _, address = asking({"type": "string"})
    client = signed_in(who)
    assert client.get(address).status_code == (200 if may else 403)
    assert client.post(address, {"value": "yes"}).status_code == (302 if may else 403)
