"""What may answer a question: a JSON schema, judged without ever fetching what it refers to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs

from journal.encoding import problems


class SchemaRefused(ValueError):
    """No answer can be judged by this schema."""


def answer_fault(question: Mapping[str, Any], value: Any) -> str | None:
    """Why this is no answer to the question (the body of an ASK), else None: one sentence."""
    if lost := problems({"value": value}, "answer"):
        return f"{lost[0]} is of a type that the journal cannot keep."
    options = question.get("options")
    if options is not None and value not in options:
        return f"It is one of {', '.join(json.dumps(option, default=str) for option in options)}."
    try:
        fault = schema_fault(question["schema"], value)
    except SchemaRefused as error:
        return f"Its question's schema cannot be judged by: {error}."
    return f"{fault}." if fault else None


def schema_fault(schema: Mapping[str, Any], value: Any) -> str | None:
    """Why the schema refuses the value, else None. Raises SchemaRefused."""
    validator = validator_of(json.dumps(schema))
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        path = "".join(f".{part}" for part in error.instance_path)
        return f"answer{path}: {error.message}"
    except UnicodeEncodeError:
        return "answer: it is no whole Unicode text"
    except ValueError as error:  # of a type that JSON does not have
        return f"answer: {error}"
    return None


def check_options(schema: Mapping[str, Any], options: Sequence[Any]) -> None:
    """Raises ValueError for an option that the question's own type would refuse: nobody could choose it."""
    for option in options:
        if fault := schema_fault(schema, option):
            raise ValueError(f"Ask(options=): {option!r} is no answer of the question's type= ({fault})")


@lru_cache(maxsize=256)
def validator_of(schema: str) -> Any:
    """Raises SchemaRefused."""
    try:
        return jsonschema_rs.validator_for(json.loads(schema), validate_formats=True, retriever=_refuse)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise SchemaRefused(str(error).splitlines()[0]) from error


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} lies outside of the schema, and is not fetched")
