"""An agent in as many versions as are deployed: the version, and who executes, come from the environment."""

import os
import time
from collections.abc import Generator
from typing import Any

from bench.tools import leave_line
from runs.sdk import Call, ToolContext, flow, tool

VERSION = os.environ.get("BENCH_VERSION", "1")


@tool(effect="keyed", timeout=20)
def work(ctx: ToolContext, n: int) -> dict[str, Any]:
    """Leaves a line, takes a quarter of a second, and tells which version's code it was."""
    leave_line(ctx.run_id, n)
    time.sleep(0.25)
    return {"version": VERSION, "key": ctx.key}


@flow(name="deployed", version=VERSION, tools=[work])
def deployed(run: Any) -> Generator[Any, Any, Any]:
    seen = set()
    for n in range(1, run.input["steps"] + 1):
        done = yield Call(work, n=n)
        seen.add(done["version"])
    return sorted(seen)
