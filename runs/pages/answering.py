"""The form of an answer, made from the question's JSON schema and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.pages.schema_forms import SchemaForm
from runs.slots import Slot


def answer_form(slot: Slot, data: Mapping[str, Any] | None = None, as_json: bool = False) -> SchemaForm:
    """Of a question with options these alone are offered; whether its type allows one is for the command to say."""
    options = slot.body.get("options")
    schema = {"enum": list(options)} if options is not None else slot.body.get("schema") or {}
    return SchemaForm(schema, data, as_json=as_json and options is None)
