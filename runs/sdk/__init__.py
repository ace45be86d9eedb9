"""What the developers of agents import."""

from runs.agents import Agent, flow
from runs.brakes import Budget
from runs.limits import Limit, Rate
from runs.moves import Ask, Call, Fail, Finish, First, Sleep, Spawn, WaitFor, Won
from runs.outcomes import Absent, CallFailed, Found, PermanentError, TransientError, Undecided, UnknownOutcome
from runs.run_view import RunView
from runs.starting import start
from runs.tools import Retry, Tool, ToolContext, tool

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
    "start",
    "tool",
]
