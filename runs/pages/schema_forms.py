"""A form made from a JSON schema: a field for each scalar, a fieldset for each object, JSON for everything else.

What was written is judged by the same validator as the command's, and each fault is told at its field. Beside a field
`name` stand, hidden, `name:as` (it is asked in another way than its schema says: `json`, `choice`, `number`),
`name:blank` (what an emptied field means, as JSON) and `name:given` (whether an object that may be left out is there).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from runs.answer_types import Fault, SchemaRefused, faults_of
from runs.pages.schema_fields import EMPTY, field_of, read, told_at, written
from runs.pages.schema_parts import Part, parts_of

MISSING: Any = object()
BLANKS: Mapping[str, Any] = {"null": None, '""': "", "[]": []}
LONGEST_SCHEMA = 20_000
NEEDED = "It cannot be left out."


@dataclass(slots=True)
class Shown:
    """A part as the page draws it. `hidden`: names and values that go with it; `given`: the box of what is optional."""

    part: Part
    name: str
    field: BoundField | None
    parts: list[Shown]
    hidden: list[tuple[str, str]]
    given: BoundField | None
    errors: list[str]

    @property
    def schema(self) -> str:
        """What has to be written as JSON, for reading along."""
        text = json.dumps(self.part.schema, indent=2, default=str) if self.part.kind == "json" else ""
        return text if self.part.schema and len(text) <= LONGEST_SCHEMA else ""


class SchemaForm(forms.Form):
    """`initial`: a JSON value to begin with, exactly as it is; without one the schema's defaults are shown.

    `is_valid()` sets `value`, the JSON value that was meant. `as_json` asks for all of it as JSON. What is not
    `required` and left empty is None.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        data: Mapping[str, Any] | None = None,
        initial: Any = None,
        prefix: str = "",
        as_json: bool = False,
        required: bool = True,
    ) -> None:
        super().__init__(data)
        self.schema, self.value = schema, None
        self.written: Any = None  # what was readable of it, right or wrong
        self.from_initial = initial is not None
        part = replace(parts_of(schema), required=required)
        begin = initial if self.from_initial else default_of(part)
        self.name = prefix or "value"
        self.top = self.show(as_given(part, "json") if as_json else part, self.name, begin)

    def show(self, part: Part, name: str, value: Any) -> Shown:
        """The part with its fields; they come into the form."""
        part = self.as_asked(part, name, value)
        shown = Shown(part, name, None, [], [], None, [])
        if part.kind == "object":
            if not part.required or part.nullable:
                self.add(f"{name}:given", forms.BooleanField(label=part.label, required=False), type(value) is dict)
                shown.given = self[f"{name}:given"]
            inner = value if isinstance(value, Mapping) else {}
            shown.parts = [self.show(one, name_below(name, one), self.begin(one, inner)) for one in part.parts]
        else:
            text = None if value is MISSING else written(part, value)
            self.add(name, field_of(part), value is True if part.kind == "flag" else text or "")
            shown.field = self[name]
        shown.hidden = self.hidden_of(part, name, value)
        return shown

    def add(self, name: str, field: forms.Field, initial: Any) -> None:
        field.widget.attrs["id"] = f"{self.name}-{len(self.fields)}"  # a name may hold what an id must not
        self.fields[name], self.initial[name] = field, initial

    def begin(self, part: Part, values: Mapping[str, Any]) -> Any:
        if part.name in values:
            return values[part.name]
        return MISSING if self.from_initial else default_of(part)

    def as_asked(self, part: Part, name: str, value: Any) -> Part:
        """Asked in another way where its own field could not say the value, or where the page had it so."""
        if self.is_bound:
            way = self.data.get(f"{name}:as")
            return as_given(part, way) if way in ("json", "choice") or (way == "number" and part.either) else part
        if part.kind == "flag" and value is MISSING and self.from_initial and not part.required:
            return as_given(part, "choice")
        if is_sayable(part, value) or not self.from_initial:
            return part
        number = as_given(part, "number") if part.either else part
        return number if part.either and is_sayable(number, value) else as_given(part, "json")

    def hidden_of(self, part: Part, name: str, value: Any) -> list[tuple[str, str]]:
        if self.is_bound:
            return [(key, str(self.data[key])) for key in (f"{name}:as", f"{name}:blank") if key in self.data]
        found = [(f"{name}:as", part.asked_as)] if part.asked_as else []
        if self.from_initial and part.kind not in ("json", "choice", "flag"):
            found += [(f"{name}:blank", word) for word, blank in BLANKS.items() if same(value, blank)]
        return found

    def clean(self) -> dict[str, Any]:
        value = self.gather(self.top)
        value = self.written = None if value is MISSING else value
        if self.errors or any(shown.errors for shown in self.shown()):
            self.spoil()
            return self.cleaned_data
        try:
            for fault in faults_of(self.schema, value):
                self.place(fault)
        except SchemaRefused as error:
            self.top.errors.append(f"Its schema cannot be judged by: {error}.")
        self.value = value
        if any(shown.errors for shown in self.shown()):
            self.spoil()
        return self.cleaned_data

    def spoil(self) -> None:
        """A fault of an object stands at its fieldset, which Django's errors do not know."""
        if not self.errors:
            self.add_error(None, "See below.")

    def gather(self, shown: Shown) -> Any:
        """The part's value, or MISSING if it is left out (or wrong: then there is an error)."""
        part = shown.part
        if part.kind == "object":
            if shown.given is not None and not self.cleaned_data.get(shown.given.name):
                return self.blank(shown)
            found = {one.part.name: self.gather(one) for one in shown.parts}
            return {name: value for name, value in found.items() if value is not MISSING}
        given = self.cleaned_data.get(shown.name, MISSING)
        if given is MISSING or part.kind == "flag":
            return given
        if not given.strip():
            return self.blank(shown)
        try:
            return read(part, given)
        except ValidationError as error:
            self.add_error(shown.name, error)
            return MISSING

    def blank(self, shown: Shown) -> Any:
        """What it means that nothing was written."""
        meant = self.data.get(f"{shown.name}:blank")
        if meant is not None and meant in BLANKS:
            return BLANKS[meant]
        if not shown.part.required:
            return MISSING
        if shown.part.nullable and shown.part.kind not in ("choice", "json"):
            return None
        if shown.part.kind == "list":
            return []
        shown.errors.append(NEEDED) if shown.field is None else self.add_error(shown.name, NEEDED)
        return MISSING

    def place(self, fault: Fault) -> None:
        """At the deepest part on the way to it."""
        shown, rest = self.top, list(fault.path)
        while rest and (below := next((one for one in shown.parts if one.part.name == rest[0]), None)) is not None:
            shown, rest = below, rest[1:]
        if shown.field is not None:
            self.add_error(shown.name, told_at(shown.part, rest, fault.message))
        else:
            shown.errors.append(told_at(shown.part, rest, fault.message))

    def refuse(self, message: str) -> None:
        """What only the command knew of: all of it is refused."""
        if self.top.field is not None:
            self.add_error(self.top.name, message)
        else:
            self.top.errors.append(message)

    def shown(self) -> Iterator[Shown]:
        waiting = [self.top]
        while waiting:
            yield (one := waiting.pop())
            waiting += one.parts


def name_below(name: str, part: Part) -> str:
    return f"{name}/{part.name.replace('~', '~0').replace('/', '~1').replace(':', '~2')}"


def as_given(part: Part, way: str) -> Part:
    if way == "choice":
        return replace(part, kind="choice", required=False, options=(True, False), asked_as=way)
    if way == "number":
        return replace(part, kind="number", asked_as=way)
    return replace(part, kind="json", parts=(), asked_as=way)


def default_of(part: Part) -> Any:
    """The schema's default, if its field can say it. An empty one is what an empty field means anyhow."""
    value = part.schema.get("default", MISSING)
    shows = value is not MISSING and value not in EMPTY and is_sayable(part, value)
    return value if shows else MISSING


def is_sayable(part: Part, value: Any) -> bool:
    """Whether the part's own field can say exactly this value; what is inside an object falls back by itself."""
    if value is MISSING:
        return True
    if part.kind == "object":
        names = {one.name for one in part.parts}
        fits = isinstance(value, Mapping) and names >= value.keys()
        return fits or (value is None and part.nullable)
    if value is None and part.nullable and part.kind != "choice":
        return True
    return written(part, value) is not None


def same(value: Any, blank: Any) -> bool:
    return type(value) is type(blank) and value == blank
