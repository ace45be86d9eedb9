"""A form made from a JSON schema says exactly what was written in it, and where it is wrong."""

import datetime
import enum
import json
import time
from decimal import Decimal
from typing import Any, Literal

import pytest
from django.forms import CheckboxInput
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from runs.answer_types import faults_of
from runs.pages.schema_forms import SchemaForm

EVIL = "</textarea><img src=x onerror=alert(1)>"


class Size(enum.Enum):
    small = "s"
    large = "l"


class Item(BaseModel):
    sku: str = Field(min_length=1)
    count: int = 1


class Address(BaseModel):
    city: str
    lines: list[str] = []


class Order(BaseModel):
    order_id: str = Field(description="As the shop has it.")
    amount_cents: int = Field(ge=0)
    size: Size
    express: bool
    notify: bool = True
    note: str | None = None
    due: datetime.date | None = None
    address: Address
    billing: Address | None = None
    tags: list[str] = []
    counts: list[int] = []
    items: list[Item] = []
    kind: Literal["new"] = "new"
    weight: float = 1.5


SCHEMA = Order.model_json_schema()
MINIMAL = {"order_id": "o-1", "amount_cents": 5, "size": "s", "express": False, "address": {"city": "Bergen"}}


def sent(form: SchemaForm) -> dict[str, Any]:
    """What a browser sends of the form as it stands."""
    found: dict[str, Any] = {}
    for shown in form.shown():
        found |= dict(shown.hidden)
        for field in (shown.field, shown.given):
            if field is None:
                continue
            value = field.value()
            if isinstance(field.field.widget, CheckboxInput):
                found |= {field.html_name: "on"} if value else {}
            else:
                found[field.html_name] = value
    return found


def written(schema: Any, **fields: Any) -> SchemaForm:
    form = SchemaForm(schema, {f"value/{name}" if name else "value": text for name, text in fields.items()})
    form.is_valid()
    return form


def shown_of(form: SchemaForm) -> str:
    return render_to_string("_schema_form.html", {"form": form})


def errors_of(form: SchemaForm) -> dict[str, list[str]]:
    found = {shown.name: list(shown.errors) for shown in form.shown() if shown.errors}
    return found | {name: list(errors) for name, errors in form.errors.items() if name != "__all__"}


def test_fields_follow_the_types() -> None:
    page = shown_of(SchemaForm(SCHEMA))
    for part in (
        'name="value/order_id"', "As the shop has it.", 'type="radio" name="value/size"', 'inputmode="numeric"',
        'type="checkbox"', 'type="date"', "<fieldset", 'name="value/address/city"', 'name="value/billing:given"',
        "One a line.", "Schema of Items", "Default: 1.5.",
        "Give Billing",
    ):  # fmt: skip
        assert part in page, part


def test_what_is_left_empty_is_left_out_and_defaults_are_sent_as_shown() -> None:
    form = SchemaForm(SCHEMA)
    given = sent(form) | {"value/order_id": "o-1", "value/amount_cents": "5", "value/size": '"s"'}
    form = SchemaForm(SCHEMA, given | {"value/address/city": "Bergen"})
    assert form.is_valid(), errors_of(form)
    assert form.value == MINIMAL | {"notify": True, "weight": 1.5, "kind": "new"}


def test_faults_stand_at_their_fields() -> None:
    given = {"value/amount_cents": "-4", "value/size": '"s"', "value/order_id": "o", "value/address/city": "B"}
    form = SchemaForm(SCHEMA, given | {"value/items": '[{"sku": ""}]', "value/counts": "1"})
    assert not form.is_valid()
    assert errors_of(form) == {
        "value/amount_cents": ["It is less than the minimum of 0."],
        "value/items": ["0.sku: It is shorter than 1 character."],
    }
    form = SchemaForm(SCHEMA, given | {"value/order_id": "", "value/address/city": "", "value/counts": "1\ntwo"})
    assert not form.is_valid() and errors_of(form) == {
        "value/order_id": ["It cannot be left out."],
        "value/address/city": ["It cannot be left out."],
        "value/counts": ["Line 2: This is not a whole number. Write it as 12."],
    }
    assert 'value="B"' not in shown_of(form) and "1\ntwo" in shown_of(form)


def test_a_fault_of_an_object_stands_at_its_fieldset() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "minProperties": 1}
    form = SchemaForm({"type": "object", "properties": {"in": schema}, "required": ["in"]}, {"value/in/a": ""})
    assert not form.is_valid() and list(errors_of(form)) == ["value/in"]
    assert 'class="err"' in shown_of(form)


def test_json_that_is_none_is_pointed_at() -> None:
    form = SchemaForm(True, {"value": '{"a": 1,\n "b" 2}'})  # type: ignore[arg-type]
    assert not form.is_valid()
    assert errors_of(form) == {
        "value": ["This is not JSON: line 2, column 6, at “2}”: expecting ':' delimiter. Texts stand in double quotes."]
    }


def test_a_value_that_no_field_can_say_stands_as_json() -> None:
    value = MINIMAL | {"order_id": "a\rb", "note": "", "address": {"city": "B", "extra": 1}, "tags": ["", "b"]}
    form = SchemaForm(SCHEMA, initial=value)
    page = shown_of(form)
    assert 'name="value/address:as" value="json"' in page and 'name="value/tags:as" value="json"' in page
    form = SchemaForm(SCHEMA, sent(form))
    assert form.is_valid() and form.value == value


def test_all_of_it_may_be_written_as_json() -> None:
    form = SchemaForm(SCHEMA, initial=MINIMAL, as_json=True)
    assert json.loads(sent(form)["value"]) == MINIMAL
    form = SchemaForm(SCHEMA, {"value:as": "json", "value": json.dumps(MINIMAL)})
    assert form.is_valid() and form.value == MINIMAL
    form = SchemaForm(SCHEMA, {"value:as": "json", "value": '{"order_id": 4}'})
    assert not form.is_valid() and "order_id: It is not of type" in " ".join(errors_of(form)["value"])


@pytest.mark.parametrize("given", ["", "null"])
def test_what_is_any_object_is_written_as_json_and_never_null(given: str) -> None:
    schema = TypeAdapter(dict[str, Any]).json_schema()
    assert "<textarea" in shown_of(SchemaForm(schema))
    assert not written(schema, **{"": given}).is_valid()
    assert written(schema, **{"": "{}"}).value == {}


class Payment(BaseModel):
    amount: Decimal = Field(gt=0)
    fee: Decimal | None = Decimal("1.50")
    reference: int | str | None = None
    account: str | int


def test_an_amount_is_a_field_that_keeps_it_exactly() -> None:
    schema = Payment.model_json_schema()
    page = shown_of(SchemaForm(schema))
    assert "<textarea" not in page and "A number, kept exactly as it is written; or a text." in page
    assert 'value="1.50"' in page and page.count('inputmode="decimal"') == 2
    form = written(schema, amount="12.10", reference="77", account='"77"', fee="0.10000000000000000001")
    assert form.is_valid(), errors_of(form)
    assert form.value == {"amount": "12.10", "fee": "0.10000000000000000001", "reference": 77, "account": "77"}
    form = written(schema, amount="12.10", reference="o-77", account="1.5")
    assert form.is_valid() and form.value == {"amount": "12.10", "reference": "o-77", "account": "1.5"}


def test_an_amount_that_was_a_number_stays_one_and_is_judged_as_one() -> None:
    schema = Payment.model_json_schema()
    given = sent(SchemaForm(schema, initial={"amount": 12.5, "account": 7}))
    assert given["value/amount"] == "12.5" and "<textarea" not in shown_of(SchemaForm(schema, given))
    form = SchemaForm(schema, given)
    assert form.is_valid() and form.value == {"amount": 12.5, "account": 7}
    for named in (given, {"value/account": "7"}):
        form = SchemaForm(schema, named | {"value/amount": "-1"})
        assert not form.is_valid()
        assert errors_of(form) == {"value/amount": ["It is less than or equal to the minimum of 0.0."]}


def test_no_amount_is_rounded_without_a_word_where_json_is_written() -> None:
    schema = {"type": "object", "properties": {"any": {}, "number": {"type": "number"}}}
    for field in ("any", "number"):
        for exact in ("0.10", "1e22", "-0.0", "12345678901234567"):
            assert written(schema, **{field: exact}).is_valid(), exact
        for lost in ("12345678901234567.89", "1e400", "1e-400"):
            form = written(schema, **{field: lost})
            assert not form.is_valid() and f"{lost} has more digits than a number keeps" in str(errors_of(form))


def circle(depth: int) -> dict[str, Any]:
    return {"$defs": {str(n): {"$ref": f"#/$defs/{(n + 1) % depth}"} for n in range(depth)}, "$ref": "#/$defs/0"}


class Node(BaseModel):
    value: int
    next: "Node | None" = None


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
    return schema


@pytest.mark.parametrize(
    ("schema", "fields"),
    [
        (circle(3), {"value"}),
        ({"$ref": "#"}, {"value"}),
        ({"$ref": "https://example.org/schema"}, {"value"}),
        ({"type": "object", "properties": {str(n): {"type": "string"} for n in range(5_000)}}, {"value"}),
        ({"enum": list(range(5_000))}, {"value"}),
        ({"type": "object", "properties": {"\ud800": {"type": "string"}}}, {"value"}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"value"}),
        (deep(6), {"value/in/in/in"}),
        (Node.model_json_schema(), {
            "value/value", "value/next:given", "value/next/value", "value/next/next:given", "value/next/next/value",
            "value/next/next/next",
        }),
    ],
    ids=["circle", "self", "elsewhere", "wide", "many", "surrogate", "either", "deep", "recursive"],
)  # fmt: skip
def test_what_is_too_large_or_leads_in_circles_is_written_as_json(schema: dict[str, Any], fields: set[str]) -> None:
    began = time.monotonic()
    form = SchemaForm(schema)
    page = shown_of(form)
    page.encode()
    assert set(form.fields) == fields and time.monotonic() - began < 20
    assert "<textarea" in page


def test_markup_in_schemas_and_values_stays_text() -> None:
    properties = {EVIL: {"type": "string", "title": EVIL, "description": EVIL, "default": EVIL}, "x": {"enum": [EVIL]}}
    schema = {"type": "object", "properties": properties, "required": [EVIL]}
    for form in (SchemaForm(schema), SchemaForm(schema, {f"value/{EVIL}": EVIL, "value/x": EVIL, "value:blank": EVIL})):
        form.is_valid()
        assert "<img" not in shown_of(form)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
TEXTS = st.text(max_size=30)
SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, TEXTS), (int, st.integers()), (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()), (Size, st.sampled_from(["s", "l"])), (datetime.date, st.dates().map(str)),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (dict[str, int], st.dictionaries(TEXTS, st.integers(), max_size=3)), (int | str, st.integers() | TEXTS),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False).map(str) | st.floats(-9, 9)),
    (int | float | str, st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS),
]  # fmt: skip


@st.composite
def typed_values(draw: Any, level: int = 0) -> tuple[dict[str, Any], Any]:
    """A JSON schema that pydantic made, and a value that it accepts."""
    kind, values = draw(st.sampled_from(SCALARS))
    if draw(st.booleans()):
        kind, values = list[kind], st.lists(values, max_size=4)
    if draw(st.booleans()):
        kind, values = kind | None, st.none() | values
    return TypeAdapter(kind).json_schema(), draw(values)


@st.composite
def objects(draw: Any, level: int = 0) -> tuple[dict[str, Any], Any]:
    properties, value, needed = {}, {}, []
    for name in draw(st.lists(NAMES, max_size=4, unique=True)):
        deeper = level < 3 and draw(st.integers(0, 3)) == 0
        schema, one = draw(objects(level + 1) if deeper else typed_values())
        properties[name] = schema
        if draw(st.booleans()):
            needed.append(name)
            value[name] = one
        elif draw(st.booleans()):
            value[name] = one
    return {"type": "object", "properties": properties, "required": needed}, value


def lifted(schema: dict[str, Any]) -> dict[str, Any]:
    """With the definitions of its parts at the top, where references look for them."""
    found: dict[str, Any] = {}

    def strip(part: Any) -> Any:
        if isinstance(part, dict):
            found.update(part.get("$defs", {}) if isinstance(part.get("$defs"), dict) else {})
            return {name: strip(inner) for name, inner in part.items() if name != "$defs"}
        return part

    whole = strip(schema)
    return {**whole, "$defs": found}


@settings(max_examples=150, deadline=None)
@given(objects())
def test_any_value_comes_back_from_its_form_exactly(made: tuple[dict[str, Any], Any]) -> None:
    schema, value = lifted(made[0]), json.loads(json.dumps(made[1]))
    try:
        assert faults_of(schema, value) == []
    except AssertionError:
        return  # no whole Unicode: the judge refuses it, as the command does
    form = SchemaForm(schema, sent(SchemaForm(schema, initial=value)))
    assert form.is_valid(), errors_of(form)
    assert json.dumps(form.value, sort_keys=True) == json.dumps(value, sort_keys=True)
    shown_of(form)
