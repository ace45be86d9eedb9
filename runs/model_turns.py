"""What can come next where a model has the next word. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ready:
    """It can be asked now. `told`: what the ATTEMPT says beside its number."""

    told: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Later:
    """It is asked again at this time (POSIX seconds)."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nobody can say any more what comes next: the run fails."""

    reason: str


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """Asking again is of no use before somebody has looked."""

    reason: str


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """It is shown less from here on. The body of that decision."""

    body: dict[str, Any]


Next = Ready | Later | GiveUp | NeedsPerson | LeaveOut
