"""What the developers of agents import."""

from runs.agents import Agent, flow
from runs.moves import Call, Fail, Finish, Sleep
from runs.outcomes import Absent, CallFailed, Found, PermanentError, TransientError, Undecided, UnknownOutcome
from runs.starting import start
from runs.state import RunView
from runs.tools import Retry, Tool, ToolContext, tool

__all__ = [
    "Absent",
    "Agent",
    "Call",
    "CallFailed",
    "Fail",
    "Finish",
    "Found",
    "PermanentError",
    "Retry",
    "RunView",
    "Sleep",
    "Tool",
    "ToolContext",
    "TransientError",
    "Undecided",
    "UnknownOutcome",
    "flow",
    "start",
    "tool",
]
