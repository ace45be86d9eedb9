"""JSON as the API reads and writes it: strict in both directions, bounded on the way in."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from math import isfinite
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from pydantic import BaseModel

MAX_DEPTH = 64  # of lists and objects in a request body, one inside the other


class BodyRefused(Exception):
    """The body is not JSON that can be kept."""

    def __init__(self, why: str) -> None:
        super().__init__(why)


def strict_json(value: Any) -> bytes:
    """Times are ISO 8601 in UTC. Raises ValueError for NaN and infinities: those travel in their tagged form."""
    return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case UUID():
            return str(value)
        case BaseModel():
            return value.model_dump()
        case set() | frozenset():
            return sorted(value)
    raise TypeError(f"{type(value).__name__} has no place in an answer of the API")


class StrictRenderer(BaseRenderer):
    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        return strict_json(data)


class StrictParser(Parser):
    """Refuses what json.loads lets pass: NaN, infinities (1e999 too), a name given twice, nesting without end."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            body = json.loads(
                request.body.decode(), parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_object
            )
        except UnicodeDecodeError:
            raise BodyRefused("The body is not UTF-8 text.") from None
        except RecursionError:
            raise BodyRefused(f"The body is nested deeper than {MAX_DEPTH} levels.") from None
        except json.JSONDecodeError as error:
            raise BodyRefused(
                f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
            ) from None
        except ValueError:
            raise BodyRefused("The body has a number of more than 4300 digits.") from None
        if _deeper_than(body, MAX_DEPTH):
            raise BodyRefused(f"The body is nested deeper than {MAX_DEPTH} levels.")
        return body


def _refuse_constant(name: str) -> Any:
    raise BodyRefused(f"The body is not JSON: {name} is not a JSON value.")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise BodyRefused(f"The number {text[:40]} is too large for a double.")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BodyRefused(f"The name {twice[:80]!r} is given twice in one object.")
    return found


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return False
    return True


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [v for v in value.values() if isinstance(v, dict | list)]
    if isinstance(value, list):
        return [v for v in value if isinstance(v, dict | list)]
    return []
