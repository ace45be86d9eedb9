"""The form of an answer, made from the question's JSON schema and options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from runs.pages.forms import LONGEST, JsonField, refuse_constant
from runs.slots import Slot
from runs.values import line

REQUIRED = {"required": "Write an answer."}
CHOOSE = {"required": "Choose one.", "invalid_choice": "Choose one of these."}


class AnswerForm(forms.Form):
    """`value` is the answer as JSON has it. `schema` is shown beside an answer that has to be written in JSON."""

    def __init__(self, slot: Slot, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        schema, options = slot.body.get("schema") or {}, choices_of(slot)
        self.fields["value"] = choice_field(options) if options else field_of(schema)
        self.schema = json.dumps(schema, indent=2, default=str) if type(self.fields["value"]) is JsonField else ""

    @property
    def value(self) -> Any:
        return self.cleaned_data["value"]


def choices_of(slot: Slot) -> Sequence[Any]:
    """What may be answered, if it can be told one by one."""
    schema = slot.body.get("schema") or {}
    if (options := slot.body.get("options")) is not None:
        return list(options)
    if isinstance(named := schema.get("enum"), list):
        return named
    if "const" in schema:
        return [schema["const"]]
    return [True, False] if schema.get("type") == "boolean" else []


WORDS = {True: "Yes", False: "No"}


def choice_field(options: Sequence[Any]) -> forms.Field:
    """One radio button for each; the place in the list is sent, so that the answer is the option itself."""
    shown = [(str(n), WORDS[o] if isinstance(o, bool) else line(o)) for n, o in enumerate(options)]
    return forms.TypedChoiceField(
        choices=shown, coerce=lambda n: options[int(n)], widget=forms.RadioSelect, error_messages=CHOOSE
    )


def field_of(schema: Mapping[str, Any]) -> forms.Field:
    match schema.get("type"):
        case "string":
            return TextField(max_length=LONGEST, widget=forms.Textarea, error_messages=REQUIRED)
        case "integer":
            return NumberField(whole=True)
        case "number":
            return NumberField(whole=False)
    return JsonField(error_messages=REQUIRED, help_text="JSON, as the schema says.")


class TextField(forms.CharField):
    """Browsers send a line's end as two characters."""

    def clean(self, value: Any) -> str:
        return str(super().clean(value)).replace("\r\n", "\n")


class NumberField(forms.CharField):
    """A number as it was written: whole ones of any size, others with a point."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole
        word = "numeric" if whole else "decimal"
        super().__init__(
            max_length=400, error_messages=REQUIRED, widget=forms.TextInput(attrs={"inputmode": word}),
            help_text="A whole number." if whole else "A number.",
        )  # fmt: skip

    def clean(self, value: Any) -> int | float:
        text = super().clean(value)
        try:
            number = json.loads(text, parse_constant=refuse_constant)
        except ValueError:
            number = None
        if type(number) not in ((int,) if self.whole else (int, float)):
            example = "12" if self.whole else "12.5"
            raise forms.ValidationError(f"This is not a {'whole ' if self.whole else ''}number. Write it as {example}.")
        return number  # type: ignore[no-any-return]
