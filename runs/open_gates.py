"""The gates in force, as a worker last heard of them. Pure: who runs agents in memory has them too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def names_of(worker: str, pool: str) -> tuple[str, ...]:
    """What a session answers to: its own name; a child of a prefork pool, named `W-<pid>`, also to `W`."""
    whole, _, pid = worker.rpartition("-")
    return (worker, whole) if pool == "prefork" and whole and pid.isdecimal() else (worker,)


@dataclass(frozen=True, slots=True)
class OpenGates:
    """Reasons by scope. `heard_at`: what was committed before it is among them (POSIX seconds, database's clock)."""

    reasons: Mapping[str, str] = field(default_factory=dict)
    heard_at: float = 0.0

    def over(self, *scopes: str) -> str | None:
        """The first of these scopes that has a gate, with its reason: `gate tool:refund: look first`."""
        if not self.reasons:
            return None
        scope = next((scope for scope in scopes if scope in self.reasons), None)
        return None if scope is None else f"gate {scope}: {self.reasons[scope]}"

    def over_runs_of(self, agent: str, version: str) -> str | None:
        """What stops every run of this release, wherever it is."""
        return self.over("all", f"agent:{agent}", f"release:{agent}@{version}")

    def over_place(self, names: Iterable[str], region: str) -> str | None:
        """What stops every run at a worker of these names, or of its region: they may go on elsewhere."""
        return self.over(*(f"worker:{name}" for name in names), f"region:{region}")
