"""Labels, judged the same at every door. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from runs.texts import is_writable

MOST = 50
LONGEST = 200


def wrong_labels(labels: Mapping[str, str]) -> str | None:
    """A sentence that says what no label can be, else None."""
    if len(labels) > MOST:
        return f"A run has at most {MOST} labels, not {len(labels)}."
    for name, value in labels.items():
        said = f"Label {str(name)[:60]!r}:"
        if not isinstance(name, str) or not isinstance(value, str):
            return f"{said} names and values are texts, not {type(name).__name__} and {type(value).__name__}."
        if not 0 < len(name) <= LONGEST or len(value) > LONGEST:
            return f"{said} a name has 1 to {LONGEST} characters, a value at most {LONGEST}."
        if ":" in name or not is_writable(name + value):
            return f"{said} a name has no colon, and both are whole Unicode text without NUL."
    return None
