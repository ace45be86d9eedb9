"""The fields of a schema's form: how a value is written into one, and read out of what a person wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from runs.answer_types import faults_of
from runs.pages.forms import LONGEST, read_json, read_number
from runs.pages.schema_parts import Part
from runs.values import AWKWARD, integer, line, readable

EMPTY: tuple[Any, ...] = (None, "", [], {})
FEW = 6  # options that are shown one by one
LONGEST_NUMBER = 400
SHOWN = {True: "Yes", False: "No", None: "Nothing (null)"}
HINTS = {"integer": "A whole number.", "number": "A number.", "json": "JSON."}
FORMATS = {
    "date-time": "A time with its zone: 2031-01-31T12:00:00Z.",
    "time": "A time of day with its zone: 12:00:00Z.",
    "duration": "A duration: PT90S, P1DT12H.",
    "email": "An e-mail address.",
    "uri": "A web address.",
    "uuid": "A UUID.",
}
KEYBOARDS = {"integer": "numeric", "number": "decimal", "email": "email", "uri": "url"}


class DateInput(forms.DateInput):
    input_type = "date"


def field_of(part: Part) -> forms.Field:
    """Asks for nothing by itself: whether it may be empty depends on what stands around it."""
    shown: dict[str, Any] = {"label": part.label, "help_text": hint_of(part), "required": False}
    if part.kind == "flag":
        return forms.BooleanField(**shown)
    if part.kind == "choice":
        return forms.CharField(widget=choice_widget(part), **shown)
    keyboard = KEYBOARDS.get(str(part.schema.get("format"))) or KEYBOARDS.get(part.kind, "text")
    keyboard = "decimal" if is_decimal(part) else keyboard
    widget: forms.Widget = forms.TextInput(attrs={"inputmode": keyboard})
    if part.kind in ("lines", "list", "json"):
        widget = forms.Textarea(attrs={} if part.kind == "lines" else {"spellcheck": "false"})
    elif part.kind == "date":
        widget = DateInput()
    elif part.schema.get("writeOnly") is True:
        widget = forms.PasswordInput()
    longest = LONGEST_NUMBER if part.kind in ("integer", "number") else LONGEST
    return forms.CharField(widget=widget, strip=False, max_length=longest, **shown)


def choice_widget(part: Part) -> forms.Widget:
    choices = [(json.dumps(option), worded(option)) for option in part.options]
    if part.required and len(choices) <= FEW:
        return forms.RadioSelect(choices=choices)
    return forms.Select(choices=[("", "Choose one" if part.required else "Left out"), *choices])


def worded(option: Any) -> str:
    return SHOWN[option] if option is None or isinstance(option, bool) else line(option)


def hint_of(part: Part) -> str:
    """What its schema says of it, what is expected, and what happens if it is left empty."""
    said = part.schema.get("description")
    told = [readable(said.strip())] if isinstance(said, str) and said.strip() else []
    told.append(FORMATS.get(str(part.schema.get("format")), "") or HINTS.get(part.kind, "") or either_told(part))
    if part.kind == "list":
        told.append("One a line." + options_told(part.schema.get("items")))
    if part.has_default and part.schema["default"] not in EMPTY:
        told.append(f"Default: {line(part.schema['default'])}.")
    if not part.required and part.kind != "flag":
        told.append("Optional.")
    elif part.nullable and part.kind not in ("choice", "json"):
        told.append("Left empty it is null.")
    return " ".join(text for text in told if text)


def either_told(part: Part) -> str:
    if not part.either:
        return ""
    if is_decimal(part):
        return "A number, kept exactly as it is written; or a text."
    number = "A number" if "number" in part.either else "A whole number"
    return f"{number}, or a text: digits that are meant as text stand in quotes."


def is_decimal(part: Part) -> bool:
    """A number or a text is how JSON schema says Decimal: a text keeps it exactly."""
    return set(part.either) == {"number", "string"}


def options_told(items: Any) -> str:
    named = items.get("enum") if isinstance(items, Mapping) else None
    return f" Each is one of {line(named)}." if isinstance(named, list) else ""


def written(part: Part, value: Any) -> str | None:
    """As it stands in the part's field; None if the field cannot say exactly this."""
    text = WRITE[part.kind](part, value)
    return text if text is None or len(text) <= LONGEST else None


def read(part: Part, text: str) -> Any:
    """What was meant. Raises ValidationError."""
    return READ[part.kind](part, text)


def write_text(part: Part, value: Any) -> str | None:
    fits = isinstance(value, str) and not re.search(r"[\r\n]", value) and not AWKWARD.search(value)
    return value if fits and (value.strip() or not value) else None


def write_lines(part: Part, value: Any) -> str | None:
    fits = isinstance(value, str) and "\r" not in value and not AWKWARD.search(value) and not value.startswith("\n")
    return value if fits and (value.strip() or not value) else None


def write_date(part: Part, value: Any) -> str | None:
    try:
        return value if date.fromisoformat(value).isoformat() == value else None
    except (TypeError, ValueError):
        return None


def write_number(part: Part, value: Any) -> str | None:
    wanted = (int,) if part.kind == "integer" else (int, float)
    if type(value) not in wanted or value != value or value in (float("inf"), float("-inf")):
        return None
    text = integer(value) if type(value) is int else repr(value)
    return text if len(text) <= LONGEST_NUMBER else None


def write_either(part: Part, value: Any) -> str | None:
    """Plain where that is read as the same, a text else in quotes."""
    if isinstance(value, str):
        plain = write_text(part, value)
        if is_decimal(part) or (plain is not None and read_either(part, plain) == value):
            return plain
        return json.dumps(value)
    text = None if is_decimal(part) else write_number(Part("number", (), {}, required=True), value)
    return text if text is not None and same_number(read_either(part, text), value) else None


def same_number(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def write_choice(part: Part, value: Any) -> str | None:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return text if text in [json.dumps(option) for option in part.options] else None


def write_flag(part: Part, value: Any) -> str | None:
    return json.dumps(value) if isinstance(value, bool) else None


def write_list(part: Part, value: Any) -> str | None:
    if not isinstance(value, list) or part.item is None:
        return None
    item = Part(part.item, (), {}, required=True)
    lines = [written(item, one) for one in value]
    found = [text for text in lines if text]
    return "\n".join(found) if len(found) == len(lines) else None


def write_json(part: Part, value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return json.dumps(value, indent=2, default=str) if AWKWARD.search(text) else text


def read_lines(part: Part, text: str) -> str:
    return text.replace("\r\n", "\n")  # browsers send a line's end as two characters


def read_either(part: Part, text: str) -> Any:
    """A number if it is one that JSON keeps exactly, what stands in double quotes, else the text as it is."""
    if is_decimal(part):
        return judged_decimal(part, text)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(said, str) or type(said) is int:
        return said
    exact = type(said) is float and isfinite(said) and Decimal(repr(said)) == Decimal(text.strip())
    return said if exact and "number" in part.either else text


def judged_decimal(part: Part, text: str) -> str:
    """The text as it is. If it is a number, what its type asks of numbers holds: the schema asks nothing of texts."""
    try:
        number = float(Decimal(text.strip()))
    except ArithmeticError:
        return text
    for branch in part.schema.get("anyOf", ()):
        if branch.get("type") == "number" and (faults := faults_of(branch, number)):
            raise ValidationError([f"{fault.message}." for fault in faults])
    return text


def read_choice(part: Part, text: str) -> Any:
    for option in part.options:
        if json.dumps(option) == text:
            return option
    raise ValidationError("Choose one of these.")


def read_list(part: Part, text: str) -> list[Any]:
    lines = [one for one in re.split(r"\r?\n", text) if one.strip()]
    if part.item == "text":
        return lines
    found, faults = [], []
    for at, one in enumerate(lines, start=1):
        try:
            found.append(read_number(one, whole=part.item == "integer"))
        except ValidationError as error:
            faults.append(f"Line {at}: {error.message}")
    if faults:
        raise ValidationError(faults[:5])
    return found


def read_whole(part: Part, text: str) -> Any:
    return read_number(text, whole=True)


Write = Callable[[Part, Any], str | None]
WRITE: Mapping[str, Write] = {
    "text": write_text, "lines": write_lines, "date": write_date, "integer": write_number, "number": write_number,
    "either": write_either, "choice": write_choice, "flag": write_flag, "list": write_list, "json": write_json,
}  # fmt: skip
READ: Mapping[str, Callable[[Part, str], Any]] = {
    "text": lambda part, text: text, "lines": read_lines, "date": lambda part, text: text, "integer": read_whole,
    "number": lambda part, text: read_number(text, whole=False), "choice": read_choice, "list": read_list,
    "json": lambda part, text: read_json(text), "either": read_either,
}  # fmt: skip


def told_at(part: Part, rest: Sequence[str | int], message: str) -> str:
    """A fault inside a field, with the place in it."""
    if not rest:
        return f"{message}."
    if part.kind == "list" and isinstance(rest[0], int):
        return f"Line {rest[0] + 1}: {message}."
    return f"{'.'.join(str(step) for step in rest)}: {message}."
