"""What the developers of agents import."""

from typing import TYPE_CHECKING, Any

from runs.agents import Agent, flow
from runs.brakes import Budget
from runs.limits import Limit, Rate
from runs.moves import Ask, Call, Fail, Finish, First, Sleep, Spawn, WaitFor, Won
from runs.once import KeyReused, once
from runs.outcomes import Absent, CallFailed, Found, PermanentError, TransientError, Undecided, UnknownOutcome
from runs.run_view import RunView
from runs.tools import Retry, Tool, ToolContext, tool

if TYPE_CHECKING:
    from runs.starting import start

__all__ = [
    "Absent",
    "Agent",
    "Ask",
    "Budget",
    "Call",
    "CallFailed",
    "Fail",
    "Finish",
    "First",
    "Found",
    "KeyReused",
    "Limit",
    "PermanentError",
    "Rate",
    "Retry",
    "RunView",
    "Sleep",
    "Spawn",
    "Tool",
    "ToolContext",
    "TransientError",
    "Undecided",
    "UnknownOutcome",
    "WaitFor",
    "Won",
    "flow",
    "once",
    "start",
    "tool",
]


def __getattr__(name: str) -> Any:
    """`start` alone needs Django's models: without them an agent can still be imported, and tested in memory."""
    if name == "start":
        from runs.starting import start

        return start
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
