"""In which order a person is asked for the fields of a schema whose declared order is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def required_first(schema: Any) -> Any:
    """The schema with its objects' fields in order: jsonb forgets the declared one, but not that of `required`."""
    if isinstance(schema, list):
        return [required_first(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: required_first(inner) for name, inner in schema.items()}
    named, needed = found.get("properties"), found.get("required")
    if isinstance(named, dict) and isinstance(needed, list):
        first = [name for name in needed if isinstance(name, str) and name in named]
        found["properties"] = {name: named[name] for name in dict.fromkeys([*first, *named])}
    return found
