"""What people write in the console, checked for shape only; the commands judge the rest."""

from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite
from typing import Any

from django import forms

REASON = {"required": "Write a reason. It is kept in the journal with your name."}
LONGEST = 100_000
QUOTED = 24  # characters of what was written, from the place on that is no JSON


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=2000, error_messages=REASON, widget=forms.Textarea)


class CancelForm(ReasonForm):
    """It cannot be undone: the short id of the run is typed."""

    confirm = forms.CharField(
        label="Type the run's id", max_length=60,
        error_messages={"required": "Type the run's id, as it stands in the title."},
    )  # fmt: skip

    def __init__(self, *given: Any, short: str = "", **more: Any) -> None:
        super().__init__(*given, **more)
        self.short = short
        self.fields["confirm"].help_text = f"{short}: so that it is this run that ends."

    def clean_confirm(self) -> str:
        if str(self.cleaned_data["confirm"]).strip().lower() != self.short:
            raise forms.ValidationError(f"This is not {self.short}.")
        return self.short

    def clean(self) -> dict[str, Any]:
        return {name: given for name, given in (super().clean() or {}).items() if name != "confirm"}


class NoteForm(forms.Form):
    text = forms.CharField(
        label="Note", max_length=10_000, widget=forms.Textarea, error_messages={"required": "Write the note."}
    )


class JsonField(forms.CharField):
    """JSON as people write it; nothing is null. NaN and the like are refused: they are no JSON."""

    def __init__(self, **given: Any) -> None:
        super().__init__(max_length=LONGEST, widget=forms.Textarea(attrs={"spellcheck": "false"}), **given)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return read_json(text) if text else None


def read_json(text: str) -> Any:
    """Raises ValidationError, which points at the place."""
    try:
        return json.loads(text, parse_constant=refuse_constant, parse_float=exact_float)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(no_json(error)) from error
    except RecursionError as error:
        raise forms.ValidationError("This is not JSON that can be read: it is nested too deep.") from error
    except ValueError as error:
        raise forms.ValidationError(f"This is not JSON: {error}.") from error


def exact_float(text: str) -> float:
    """An amount is never rounded without a word. Raises ValidationError."""
    number = float(text)
    if not isfinite(number) or Decimal(repr(number)) != Decimal(text):
        shown = text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
        raise forms.ValidationError(f"{shown} has more digits than a number keeps: it would become {number!r}.")
    return number


def no_json(error: json.JSONDecodeError) -> str:
    """Where it stops being JSON, with what stands there."""
    there = error.doc[error.pos :].split("\n", 1)[0].strip()
    quoted = f"“{there[:QUOTED]}{'…' if len(there) > QUOTED else ''}”" if there else "the end"
    said = error.msg[:1].lower() + error.msg[1:]
    place = f"line {error.lineno}, column {error.colno}, at {quoted}"
    return f"This is not JSON: {place}: {said}. Texts stand in double quotes."


def refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


def read_number(text: str, *, whole: bool) -> int | float:
    """A number as it was written: whole ones of any size, others with a point. Raises ValidationError."""
    try:
        number = json.loads(text, parse_constant=refuse_constant, parse_float=exact_float)
    except (ValueError, RecursionError):
        number = None
    if type(number) not in ((int,) if whole else (int, float)):
        example = "12" if whole else "12.5"
        raise forms.ValidationError(f"This is not a {'whole ' if whole else ''}number. Write it as {example}.")
    return number  # type: ignore[no-any-return]


class SignalForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=200,
        strip=False,
        error_messages={"required": "Name the signal that the run waits for."},
    )
    payload = JsonField(label="Payload", required=False, help_text="JSON. Left empty it is null.")
    signal_id = forms.CharField(
        label="Id", max_length=200, required=False, empty_value=None,
        help_text="Optional. The same id again changes nothing, so a repeated click is safe.",
    )  # fmt: skip


class GateForm(ReasonForm):
    scope = forms.CharField(
        label="Scope", max_length=200, help_text="all, agent:X, release:X@V, worker:W, region:R or tool:T",
        error_messages={"required": "Name what is to be stopped."},
    )  # fmt: skip
    field_order = ("scope", "reason")
