"""What an agent's author says of its model loop."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelLoop:
    """To be written by its room."""

    model: str
    prompt: str = ""
    timeout: float = 120.0
