"""What a person says of an intent in doubt."""

from __future__ import annotations

import json
from typing import Any

from django import forms

VERDICTS = [
    ("probe", "Ask the tool"),
    ("happened", "It happened"),
    ("never_happened", "It never happened"),
    ("abort", "Abort"),
]


class ReconcileForm(forms.Form):
    verdict = forms.ChoiceField(choices=VERDICTS)
    evidence = forms.CharField(
        max_length=10_000, error_messages={"required": "Write how you know. It is kept in the journal with your name."}
    )
    result = forms.CharField(max_length=100_000, required=False)
    attempt = forms.IntegerField(min_value=1, required=False)

    def clean_result(self) -> Any:
        """JSON as the tool returned it; nothing means that the result is not known."""
        text = self.cleaned_data["result"]
        try:
            return json.loads(text, parse_constant=_refuse) if text else None
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError("This is not JSON. Write the result as the tool returned it.") from error


def _refuse(word: str) -> None:
    raise ValueError(word)
