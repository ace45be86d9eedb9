"""An agent in whichever version MOVED_VERSION says: `HOLDFAST_AGENTS=tests.rig.moved`. What it charges tells which."""

import os
from typing import Any

from runs.sdk import Call, RunView, ToolContext, WaitFor, flow, tool
from tests.rig import wire
from tests.rig.tools import ORDER, SOON

VERSION = int(os.environ.get("MOVED_VERSION", "7"))


@tool(effect="keyed", probe=wire.find_by_key, timeout=5, retry=SOON)
def charge(ctx: ToolContext) -> Any:
    wire.begin(ctx)
    return wire.act(ctx, "charge", order_id=ORDER, amount_cents=VERSION)


@flow(name="moved", version=str(VERSION), tools=[charge])
def moved(run: RunView) -> Any:
    """Charges, waits for a signal, charges."""
    yield Call(charge)
    yield WaitFor("go")
    yield Call(charge)
    return VERSION


@flow(name="limited", version=str(VERSION), tools=[charge], limit=1)
def limited(run: RunView) -> Any:
    """One of its runs at a time."""
    yield Call(charge)
    yield WaitFor("go")
    return VERSION
