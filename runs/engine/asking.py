"""Who is asked for the next decision where a model decides it: when, how, and what the journal says of the answer.

The slice commits the ATTEMPT, lets `ask` run in a call's thread, and writes what `answer` makes of its end. Everything
that differs between a function, a model loop and an agent of another library is behind `Asking`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from journal.entries import Draft
from runs.agents import Agent, FunctionModel
from runs.engine import drafts
from runs.engine.calls import Ended, Returned, finish
from runs.engine.sealing import sealed_moves
from runs.model_turns import GiveUp, Later, Next, Ready
from runs.moves import as_decided
from runs.outcomes import describe
from runs.run_view import RunView
from runs.secrets import struck_text
from runs.tools import Cancelled, Retry

if TYPE_CHECKING:
    from runs.state import RunState

MODEL_RETRY = Retry()


Hear = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Line:
    """While an answer is under way. `deadline`: monotonic seconds. `hear(text, thinking)`: what has come so far."""

    deadline: float
    cancelled: Cancelled
    hear: Hear = lambda text, thinking: None


class Asking(Protocol):
    """One decision that a model is asked for. `timeout`: seconds."""

    @property
    def timeout(self) -> float: ...

    def next(self, state: RunState, now: float, epoch: int) -> Next:
        """What is to be done now. Once it is Ready, `ask` sends what it made ready."""

    def ask(self, line: Line) -> Any:
        """In a thread of its own; the end of it, an answer or an exception, goes to `answer`."""

    def answer(self, how: Ended, state: RunState, seen: int, now: float) -> Draft:
        """The PLAN, or the ERROR of the attempt. Raises nothing that a model can bring about."""


def given_up(state: RunState, now: float) -> Later | GiveUp | None:
    """Whether the failures so far allow another request at this moment; None: they do."""
    last = state.model_attempts[-1] if state.model_attempts else None
    if last is None or last.error is None:
        return None
    if len(state.model_attempts) >= MODEL_RETRY.attempts:
        return GiveUp(f"the model did not answer in {len(state.model_attempts)} attempts: {last.error}")
    if last.due is not None and not last.hurried and last.due > now:
        return Later(last.due, "the model is asked again")
    return None


class FunctionAsking:
    """A function says the moves and what they cost."""

    def __init__(self, agent: Agent, model: FunctionModel) -> None:
        self.agent, self.model = agent, model
        self.timeout = model.timeout
        self.view: RunView | None = None

    def next(self, state: RunState, now: float, epoch: int) -> Next:
        self.view = RunView(state)
        return given_up(state, now) or Ready()

    def ask(self, line: Line) -> Any:
        assert self.view is not None
        return finish(self.model.ask(self.view))

    def answer(self, how: Ended, state: RunState, seen: int, now: float) -> Draft:
        if isinstance(how, Returned):
            try:
                moves, usage = how.value
                return drafts.model_plan(seen, sealed_moves(self.agent, as_decided(moves)), amounts(usage))
            except (TypeError, ValueError) as fault:
                error = f"the model function has to return (moves, usage): {fault}"
        else:
            error = struck_text(describe(how.error))
        number = len(state.model_attempts)
        return drafts.failure(None, error, now + MODEL_RETRY.wait(number, f"{state.run_id}:model"))


def amounts(usage: object) -> dict[str, float]:
    """What can be added up. An answer that was paid for is not thrown away for the rest."""
    given = usage.items() if isinstance(usage, dict) else ()
    return {str(name): n for name, n in given if isinstance(n, (int, float)) and -1e300 < n < 1e300}
