"""What may answer a question: a JSON schema, judged without ever fetching what it refers to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from journal.encoding import problems

MOST_FAULTS = 50
LONGEST_FAULT = 400


class SchemaRefused(ValueError):
    """No answer can be judged by this schema."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at one place of a value: names and positions from its root. It never repeats the value."""

    path: tuple[str | int, ...]
    message: str

    def told(self, root: str) -> str:
        """`input.order_id: It is missing`"""
        return f"{root}{''.join(f'.{part}' for part in self.path)}: {self.message}"


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


def faults_of(schema: Mapping[str, Any], value: Any) -> list[Fault]:
    """Every place at which the schema refuses the value, at most 50. Raises SchemaRefused."""
    validator = validator_of(json.dumps(schema), masked=True)
    try:
        return [fault for error in islice(validator.iter_errors(value), MOST_FAULTS) for fault in faults_in(error)]
    except UnicodeEncodeError:
        return [Fault((), "It is no whole Unicode text")]
    except ValueError as error:  # of a type that JSON does not have
        return [Fault((), str(error)[:LONGEST_FAULT])]


def faults_in(error: jsonschema_rs.ValidationError) -> Iterator[Fault]:
    """At the place where a person would mend it: a name that is missing, a name that is one too many."""
    place, kind = tuple(error.instance_path), error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        yield Fault((*place, str(kind.property)), "It is missing")
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        yield from (Fault((*place, name), "There is no such field") for name in kind.unexpected[:MOST_FAULTS])
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AnyOf) and (branch := only_branch(kind.context, place)):
        for inner in branch:
            yield from faults_in(inner)
    else:
        yield Fault(place, error.message[:LONGEST_FAULT])


def only_branch(context: Sequence[Sequence[Any]], place: tuple[str | int, ...]) -> Sequence[Any]:
    """Of "this or null" the faults of this, of "a number or a text" at `place` those of the one that was given; nothing
    where there is more than one way to be right."""
    kind = jsonschema_rs.ValidationErrorKind.Type
    real = [branch for branch in context if not any(is_null(e) for e in branch if isinstance(e.kind, kind))]
    if len(real) == 1 and len(context) == 2:
        return real[0]
    fits = [b for b in real if not any(isinstance(e.kind, kind) and tuple(e.instance_path) == place for e in b)]
    return fits[0] if len(fits) == 1 else ()


def is_null(error: Any) -> bool:
    return list(error.kind.types) == ["null"]


def check_options(schema: Mapping[str, Any], options: Sequence[Any]) -> None:
    """Raises ValueError for an option that the question's own type would refuse: nobody could choose it."""
    for option in options:
        if fault := schema_fault(schema, option):
            raise ValueError(f"Ask(options=): {option!r} is no answer of the question's type= ({fault})")


@lru_cache(maxsize=256)
def validator_of(schema: str, masked: bool = False) -> Any:
    """Masked, it says "It" where it would repeat the value. Raises SchemaRefused."""
    try:
        return jsonschema_rs.validator_for(
            json.loads(schema), validate_formats=True, retriever=_refuse, mask="It" if masked else None
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise SchemaRefused(str(error).splitlines()[0]) from error


def _refuse(address: str) -> Any:
    raise ValueError(f"{address} lies outside of the schema, and is not fetched")
