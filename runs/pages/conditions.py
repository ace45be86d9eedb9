"""What is said below the mast of every page while something holds work back: gates, and what other rooms tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from runs.access import Person
from runs.gates import gates_seen
from runs.models import Gate

MOST_GATES = 10


@dataclass(frozen=True, slots=True)
class Condition:
    """A line. `look`: glyph; `what`: the words in bold; `told`: how far it is, else it is said since when, and by whom.

    What changes each second stands in none of them: it would be read out each second. `gate`: for which it stands.
    `name` and `left`: of an operation under way, its scope, and how many runs it still waits for; None: not counted.
    """

    look: str
    what: str
    why: str
    since: datetime
    actor: str
    link: str
    act: str
    told: str = ""
    until: datetime | None = None
    gate: int | None = None
    name: str = ""
    left: int | None = None


type Teller = Callable[[Person | None], Sequence[Condition]]


@cache
def tellers() -> Sequence[Teller]:
    """Of rooms that this one does not know: HOLDFAST_CONDITIONS names them."""
    return [import_string(path) for path in settings.HOLDFAST_CONDITIONS]


def conditions(user: Person | None) -> list[Condition]:
    """Those that may concern runs which this one sees: operations first, then the newest gates that belong to none."""
    told = [line for teller in tellers() for line in teller(user)]
    known = {line.gate for line in told}
    gates = [gate for gate in gates_seen(user)[: MOST_GATES + len(known)] if gate.pk not in known]
    return told + [of_gate(gate) for gate in gates[:MOST_GATES]]


def of_gate(gate: Gate) -> Condition:
    return Condition(
        "held", f"Gate {gate.scope}", gate.reason, gate.created_at, gate.actor, "/gates", "Show", gate=gate.pk
    )
