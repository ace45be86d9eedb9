"""Scenarios: who answers under which model's name."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from demo.providers.asked import Asked
from demo.providers.turns import BadScript, Turn, Turnlike, as_turn, call, think, turn

type Decide = Callable[[Asked], Turnlike]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Turns in order, or a function of the request. `context`: the longest input it takes, in tokens."""

    turns: tuple[Turn, ...] = ()
    decide: Decide | None = None
    context: int | None = None

    @classmethod
    def parse(cls, wanted: Mapping[str, Any]) -> Self:
        """From JSON: {"turns": [turn …], "context"?: tokens}. Raises BadScript."""
        turns, context = wanted.get("turns"), wanted.get("context")
        if not isinstance(turns, list) or not turns:
            raise BadScript("`turns` is a list of turns.")
        if context is not None and type(context) is not int:
            raise BadScript("`context` is a number of tokens.")
        return cls(tuple(Turn.parse(turn) for turn in turns), None, context)

    def turn(self, asked: Asked) -> Turn:
        """The answer to this request. Raises BadScript when there is none."""
        if self.decide is not None:
            return as_turn(self.decide(asked))
        if asked.turn >= len(self.turns):
            raise BadScript(f"The scenario {asked.model} has {len(self.turns)} turns; this request is for one more.")
        return self.turns[asked.turn]


def scenario(wanted: Scenario | Decide | Sequence[Turnlike], *, context: int | None = None) -> Scenario:
    if isinstance(wanted, Scenario):
        return wanted
    if callable(wanted):
        return Scenario(decide=wanted, context=context)
    return Scenario(tuple(as_turn(each) for each in wanted), context=context)


class Scenarios:
    """By model's name. For many threads."""

    def __init__(self, known: Mapping[str, Scenario] | None = None) -> None:
        self._lock = threading.Lock()
        self._known = dict(KNOWN if known is None else known)

    def __getitem__(self, model: str) -> Scenario | None:
        with self._lock:
            return self._known.get(model)

    def register(self, model: str, scenario: Scenario) -> None:
        with self._lock:
            self._known[model] = scenario

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._known)


def echo(asked: Asked) -> Turnlike:
    """Says the latest thing it was told."""
    return asked.latest[-1].text if asked.latest else ""


KNOWN = {
    "scripted-hello": scenario([turn(think("A greeting is asked for."), "Hello. How can I help?")]),
    "scripted-echo": scenario(echo),
    "scripted-three-calls": scenario(
        [
            turn("Let me look.", *(call("lookup", order_id=f"o-{number}") for number in (1, 2, 3))),
            "All three are there.",
        ]
    ),
}  # fmt: skip
