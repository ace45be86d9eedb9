"""Brakes: what a run may spend before a person has to look at it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from journal.encoding import canonical
from runs.moves import Call, Move

if TYPE_CHECKING:
    from runs.state import RunState


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may spend. Over it, the run is held; `resume` gives all of it once more from there.

    `steps`: calls and waits. `tokens`, `cost`: summed over the model's usage (`tokens`, or `input_tokens` and
    `output_tokens`, cached ones and reasoning among them; `cost`). A request whose price is not known holds a run that
    has a budget of `cost`. `seconds`: since the start, waits included; looked at when the run decides, so that a run
    that waits is not woken for it. `identical_calls`: the same tool with the same arguments, directly one after the
    other.
    """

    steps: int | None = None
    tokens: float | None = None
    cost: float | None = None
    seconds: float | None = None
    identical_calls: int | None = 5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not (isinstance(value, (int, float)) and value > 0):
                raise ValueError(f"Budget({name}=) is a number above zero")

    @property
    def content(self) -> dict[str, Any]:
        """As a release holds it: what is bounded."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Spent:
    """What had been spent when somebody gave the budget once more."""

    steps: int = 0
    tokens: float = 0.0
    cost: float = 0.0
    at: float | None = None
    unpriced: int = 0  # requests of which nobody knows what they cost


@dataclass(frozen=True, slots=True)
class Brake:
    reason: str
    limit: float
    used: float


def spent(state: RunState, now: float) -> Spent:
    """Everything since the start. `now`: POSIX seconds."""
    return Spent(len(state.slots), state.tokens, state.usage.get("cost", 0), now, state.unpriced)


def over(state: RunState, budget: Budget | None, now: float, moves: Sequence[Move] = ()) -> Brake | None:
    """Why `moves` may not be made (or the model not be asked, without moves). A run may always end."""
    if budget is None:
        return None
    so_far, before = spent(state, now), state.budget_from
    began = before.at if before.at is not None else state.time_of(1).timestamp()
    made = 0 if let_go_on(state, so_far) else len(moves)
    used = {
        "steps": so_far.steps - before.steps + made,
        "tokens": so_far.tokens - before.tokens,
        "cost": so_far.cost - before.cost,
        "seconds": now - began,
    }
    for name, amount in used.items():
        limit = getattr(budget, name)
        if limit is not None and amount > limit:
            return Brake(f"its budget of {limit:g} {name} is spent", limit, amount)
    if budget.cost is not None and (unknown := so_far.unpriced - before.unpriced):
        asked = "a request" if unknown == 1 else f"{unknown} requests"
        reason = f"what {asked} to the model cost is not known, and its budget is {budget.cost:g} cost"
        return Brake(reason, budget.cost, used["cost"])
    return _repeats(state, budget, moves) if made else None


def let_go_on(state: RunState, so_far: Spent) -> bool:
    """Whether somebody gave the budget anew and nothing was called since: what was decided then is made, however much
    it is at once."""
    before = state.budget_from
    last = state.slots[so_far.steps].seq if so_far.steps else 0
    return before.at is not None and so_far.steps == before.steps and state.resumed_seq > last


def _repeats(state: RunState, budget: Budget, moves: Sequence[Move]) -> Brake | None:
    limit = budget.identical_calls
    if limit is None:
        return None
    steps = range(len(state.slots), max(state.budget_from.steps, len(state.slots) - limit), -1)
    recent = [(slot.tool, slot.asked_args) if slot.kind == "call" else None for slot in (state.slots[s] for s in steps)]
    row = [(move.tool, move.args) if isinstance(move, Call) else None for move in reversed(moves)] + recent
    for at, last in enumerate(row[: max(1, len(moves))]):
        if last is None:
            continue
        same = sum(1 for _ in takewhile(lambda other: _alike(last, other), row[at:]))  # noqa: B023
        if same > limit:
            return Brake(f"it called {last[0]} with the same arguments {same} times in a row", limit, same)
    return None


def _alike(one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]] | None) -> bool:
    if other is None or one[0] != other[0] or one[1].keys() != other[1].keys():
        return False
    return one[1] == other[1] or canonical(one[1]) == canonical(other[1])
