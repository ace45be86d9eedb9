"""Policies: who has to agree to a call, how many of them, by when, and what becomes of it if nobody does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Literal

OnExpiry = Literal["park", "deny"]
LONGEST = 10 * 366 * 86_400.0
LEAST_BETWEEN_REMINDERS = 1.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Who approves a call: `quorum` different members of `group`; with `four_eyes` none of them is who started the
    run (or the run that spawned it) or who edited the call.

    `ttl`: seconds after which what nobody decided expires. `on_expiry`: "park", and somebody may ask for it anew by a
    retry; or "deny", and the agent hears that it expired. `remind_every`: seconds between two reminders.
    """

    group: str = "approver"
    quorum: int = 1
    four_eyes: bool = True
    ttl: float | None = None
    on_expiry: OnExpiry = "park"
    remind_every: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.group, str) or not self.group or "\0" in self.group:
            raise ValueError(f"Policy(group=) is the name of a group of users, like 'approver', not {self.group!r}")
        if type(self.quorum) is not int or self.quorum < 1:
            raise ValueError(f"Policy(quorum=) is how many have to agree: a whole number from 1, not {self.quorum!r}")
        if type(self.four_eyes) is not bool:
            raise ValueError(f"Policy(four_eyes=) is True or False, not {self.four_eyes!r}")
        if self.on_expiry not in ("park", "deny"):
            raise ValueError(f"Policy(on_expiry=) is 'park' or 'deny', not {self.on_expiry!r}")
        if self.ttl is not None and not _seconds(self.ttl, above=0.0):
            raise ValueError(f"Policy(ttl=) is a number of seconds above zero, up to ten years, not {self.ttl!r}")
        if self.on_expiry == "deny" and self.ttl is None:
            raise ValueError("Policy(on_expiry='deny') needs ttl=: without it nothing ever expires")
        if self.remind_every is not None and not _seconds(self.remind_every, LEAST_BETWEEN_REMINDERS - 1e-9):
            raise ValueError(
                f"Policy(remind_every=) is a number of seconds from {LEAST_BETWEEN_REMINDERS:g} on, up to ten years,"
                f" not {self.remind_every!r}"
            )

    @property
    def content(self) -> dict[str, Any]:
        """As a release, a request and the digest hold it."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> Policy:
        """From a request's record; what an earlier version did not record is as with `approval=True`. A record that
        cannot be read asks for four eyes, and never expires."""
        if record is None:
            return ANY_ONE
        known = {field.name for field in fields(cls)}
        try:
            return cls(**{name: value for name, value in record.items() if name in known})
        except (ValueError, TypeError):
            return cls()


def _seconds(given: object, above: float) -> bool:
    return type(given) in (int, float) and isfinite(given) and above < given <= LONGEST  # type: ignore[arg-type,operator]


# approval=True: any one approver, who may have started the run, at any time.
ANY_ONE = Policy(four_eyes=False)
