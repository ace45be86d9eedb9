"""What the fold takes for the body of an erased entry: its step and its place stay known, what was said does not.

Only ended runs are erased, so nothing is decided from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journal.entries import Entry, Kind

ERASED = "erased"

_BODIES: Mapping[str, dict[str, Any]] = {
    Kind.START: {"agent": "", "input": None, "release": "", "code": ""},
    Kind.PLAN: {"seen": 0},
    Kind.TOOL_CALL: {"tool": ERASED, "args": {}},
    Kind.ATTEMPT: {"attempt": 0, "source": ""},
    Kind.ERROR: {"error": ERASED},
    Kind.ANSWER: {"value": None},
    Kind.SIGNAL: {"name": ERASED},
    Kind.APPROVAL: {"verdict": ERASED},
    Kind.RECONCILE: {"verdict": ERASED},
    Kind.CONTROL: {"verb": ERASED},
    Kind.PIN: {"release": ""},
}


def without_body(entry: Entry, begins: bool) -> Entry:
    """`begins`: whether its step has no entry before it."""
    match entry.kind:
        case Kind.OBS:
            body: dict[str, Any] = {"outcome": "unknown" if entry.settles is None else ERASED}
        case Kind.TIMER:
            body = {"verb": "set", "seconds": 0} if begins else {"verb": "fired"}
        case Kind.CHILD:
            body = {"verb": "spawned", "agent": ERASED} if begins else {"verb": "ended", "outcome": ERASED}
        case kind:
            body = _BODIES.get(kind, {})
    return replace(entry, body=body)
