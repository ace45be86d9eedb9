"""Holdfast's side of the benchmarks: flows of steps that do next to nothing."""

import os
import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from bench.tools import leave_line
from runs.sdk import Call, ToolContext, flow, tool


@tool(effect="keyed")
def noop(ctx: ToolContext, n: int) -> dict[str, str]:
    """Leaves a line and answers 200 bytes."""
    return leave_line(ctx.run_id, n)


@tool(effect="keyed")
def rest(ctx: ToolContext, n: int) -> dict[str, str]:
    """The same, and takes 50 ms."""
    answer = leave_line(ctx.run_id, n)
    time.sleep(0.05)
    return answer


@tool(effect="keyed")
def deadly(ctx: ToolContext, n: int, at: int, mark: str) -> dict[str, str]:
    """As noop, but the first time that step `at` is reached the process dies before it leaves a line."""
    if n == at and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return leave_line(ctx.run_id, n)


@flow(name="bench-noop", version="1", tools=[noop])
def steps_of_nothing(run: Any) -> Generator[Any, Any, Any]:
    for n in range(1, run.input["steps"] + 1):
        yield Call(noop, n=n)
    return run.input["steps"]


@flow(name="bench-rest", version="1", tools=[rest])
def steps_of_rest(run: Any) -> Generator[Any, Any, Any]:
    for n in range(1, run.input["steps"] + 1):
        yield Call(rest, n=n)
    return run.input["steps"]


@flow(name="bench-deadly", version="1", tools=[deadly])
def deadly_steps(run: Any) -> Generator[Any, Any, Any]:
    for n in range(1, run.input["steps"] + 1):
        yield Call(deadly, n=n, at=run.input["at"], mark=run.input["mark"])
    return run.input["steps"]
