"""More agents: `HOLDFAST_AGENTS=tests.rig.agents,tests.faults.agents`."""

import time
from typing import Any

from runs.sdk import Agent, Call, Finish, RunView
from runs.sdk.models import FunctionModel
from tests.rig import tools, wire


def ponder(state: RunView) -> tuple[Any, dict[str, Any]]:
    """The first answer of a run takes longer than anybody lives; the next ones come at once."""
    if wire.count(f"model {state.id}") == 1:
        time.sleep(60)
    return (Call(tools.refund) if state.last is None else Finish(state.last.result)), {"tokens": 10}


ponders = Agent(name="ponders", version="1", tools=(tools.refund,), decide=FunctionModel(ponder))
