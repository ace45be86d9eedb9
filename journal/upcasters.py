"""Bodies in older shapes, lifted at read to the one that this code knows. What is stored never changes.

An upcaster takes a body of version v of its kind and returns that of v + 1. It is pure and total: it may meet a body
with fields that it does not know, which it keeps, and a top-level value that is a Pointer to the real one.
"""

from collections.abc import Callable
from typing import Any

from journal.entries import VERSIONS

type Body = dict[str, Any]
type Upcaster = Callable[[Body], Body]


def as_it_was(body: Body) -> Body:
    """The newer version only says more."""
    return body


UPCASTERS: dict[tuple[str, int], Upcaster] = {  # by kind and the version that it lifts from
    ("START", 1): as_it_was,
    ("CONTROL", 1): as_it_was,
}


def upcast(kind: str, v: int, body: Body) -> Body:
    """The body as of VERSIONS. One of an unknown kind, of a newer version, or erased stays as it is."""
    if body.get("$") == "erased":
        return body
    for version in range(v, VERSIONS.get(kind, v)):
        lift = UPCASTERS.get((kind, version))
        if lift is not None:
            body = lift(body)
    return body
