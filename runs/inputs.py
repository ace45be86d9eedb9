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


LEAST = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "null": None}
DEEPEST = 8


def least_input(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, depth: int = DEEPEST) -> Any:
    """A value with what the schema requires and nothing else. It may be refused: for a pattern, a length, a format."""
    root = schema if root is None else root
    reference = schema.get("$ref", "")
    if reference.startswith("#/$defs/") and depth:
        return least_input(root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {}), root, depth - 1)
    for word in ("default", "const"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word) and depth:
            return least_input(schema[word][0], root, depth - 1)
    if schema.get("type") == "object" or "properties" in schema:
        parts = {name: schema.get("properties", {}).get(name, {}) for name in schema.get("required", ())}
        return {name: least_input(part, root, depth - 1) if depth else None for name, part in parts.items()}
    return LEAST.get(str(schema.get("type")), {})
