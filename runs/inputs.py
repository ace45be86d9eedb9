"""What an agent takes as its input: judged by the schema of its type wherever a run is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from runs.answer_types import Fault, SchemaRefused, faults_of
from runs.errors import InputRefused
from runs.secrets import opened


def input_faults(schema: Mapping[str, Any] | None, value: Any) -> list[Fault]:
    """What is wrong with it, place by place; nothing where the agent takes anything."""
    if schema is None:
        return []
    try:
        return faults_of(schema, as_json(opened(value)))
    except SchemaRefused as error:
        return [Fault((), f"The schema of the agent's input cannot be judged by: {error}")]


def as_json(value: Any) -> Any:
    """Dates, Decimals and the like as JSON writes them: so a type's schema knows them."""
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, UnicodeError, ValueError):
        return value


def check_input(schema: Mapping[str, Any] | None, value: Any) -> None:
    """Raises InputRefused naming each place."""
    if faults := input_faults(schema, value):
        raise refused_input(faults)


def input_refusal(schema: Mapping[str, Any] | None, value: Any) -> str:
    """Why the agent does not take it, in one sentence; empty if it does."""
    faults = input_faults(schema, value)
    return str(refused_input(faults)) if faults else ""


def refused_input(faults: Sequence[Fault]) -> InputRefused:
    return InputRefused([(".".join(["input", *map(str, fault.path)]), fault.message) for fault in faults])
