"""How much a piece of code does, which is the same at each time however busy the machine is."""

import sys
import threading
from collections.abc import Callable
from typing import Any


def work_of(work: Callable[[], Any]) -> int:
    """Python's calls, resumptions, jumps and branches in this thread while `work` runs. What C does in one call is
    one."""
    watch, events = sys.monitoring, sys.monitoring.events
    counted = (events.CALL, events.PY_START, events.PY_RESUME, events.JUMP, events.BRANCH)
    own, count = threading.get_ident(), 0

    def see(*_: Any) -> None:
        nonlocal count
        count += threading.get_ident() == own

    watch.use_tool_id(watch.PROFILER_ID, "work")
    try:
        for event in counted:
            watch.register_callback(watch.PROFILER_ID, event, see)
        watch.set_events(watch.PROFILER_ID, sum(counted))
        work()
    finally:
        watch.set_events(watch.PROFILER_ID, 0)
        watch.free_tool_id(watch.PROFILER_ID)
    return count
