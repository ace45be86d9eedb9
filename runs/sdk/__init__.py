"""What the developers of agents import."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async

from runs.agents import Agent, flow
from runs.brakes import Budget
from runs.calling import NoCall, current_call
from runs.limits import Limit, Rate
from runs.moves import Ask, Call, Fail, Finish, First, Sleep, Spawn, WaitFor, Won
from runs.once import KeyReused, once
from runs.outcomes import Absent, CallFailed, Found, PermanentError, TransientError, Undecided, UnknownOutcome
from runs.policies import Policy
from runs.run_view import RunView
from runs.secrets import Secret
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
    "KeyReused",
    "Limit",
    "NoCall",
    "PermanentError",
    "Policy",
    "Rate",
    "Retry",
    "RunView",
    "Secret",
    "Sleep",
    "Spawn",
    "Tool",
    "ToolContext",
    "TransientError",
    "Undecided",
    "UnknownOutcome",
    "WaitFor",
    "Won",
    "astart",
    "current_call",
    "flow",
    "once",
    "start",
    "tool",
]


def start(
    agent: str,
    input: Any = None,
    *,
    request_key: str | None = None,
    release: str | None = None,
    labels: Mapping[str, str] | None = None,
    deadline: float | datetime | None = None,
    priority: int = 0,
) -> UUID:
    """Start a run; its id. Safe inside a transaction: the run goes out when that commits.

    `request_key`: the same key with the same agent, input, release and labels gives the same run. `deadline`: seconds
    from now, or a time, at which the run is cancelled if it has not ended. `priority`: 0 to 9, higher ones first.
    """
    from runs.starting import start_run  # Django's models: an agent that starts runs is still imported without them

    run, _ = start_run(
        agent=agent, input=input, actor="sdk", request_key=request_key, release=release, labels=labels,
        deadline=deadline, priority=priority,
    )  # fmt: skip
    return run.id


async def astart(agent: str, input: Any = None, **given: Any) -> UUID:
    """`start`, for async code. It takes the same."""
    return await sync_to_async(start)(agent, input, **given)
