"""What is found wrong, risky or needless in a declaration, and where that stands."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`says` is one sentence that names the thing; `place` is file:line; `fix` is what to do."""

    level: Level
    id: str
    says: str
    place: str
    fix: str

    def __str__(self) -> str:
        return f"{self.says} ({self.place}). {self.fix}"


def place_of(function: Any, offset: int = 0) -> str:
    """file:line, as short as it can be."""
    try:
        function = inspect.unwrap(function)
        file = inspect.getsourcefile(function) or "?"
        line = inspect.getsourcelines(function)[1] + offset
    except (OSError, TypeError):
        return getattr(sys.modules.get(getattr(function, "__module__", "")), "__file__", None) or "place unknown"
    return f"{file}:{line}"
