"""Tools of every effect class; each effect lands in the ledger under the call's key."""

import os
import signal
import time
from typing import Any, NoReturn

from runs.sdk import PermanentError, Retry, ToolContext, TransientError, tool
from tests.rig import wire
from tests.rig.values import VALUES

SOON = Retry(attempts=5, backoff=0.05)
ORDER = "o-1"


@tool(effect="read", timeout=5, retry=SOON)
def look(ctx: ToolContext, amount_cents: int = 1) -> Any:
    wire.begin(ctx)
    return wire.send("GET", f"/orders/{ORDER}", **{"X-Reference": ctx.key})


@tool(effect="keyed", timeout=5, retry=SOON)
def charge(ctx: ToolContext, amount_cents: int = 1) -> Any:
    wire.begin(ctx)
    return wire.act(ctx, "charge", order_id=ORDER, amount_cents=amount_cents)


@tool(effect="keyed", probe=wire.find_by_key, timeout=5, retry=SOON)
def refund(ctx: ToolContext, amount_cents: int = 1) -> Any:
    wire.begin(ctx)
    return wire.act(ctx, "refund", order_id=ORDER, amount_cents=amount_cents)


@tool(effect="probed", probe=wire.find_by_key, timeout=5, max_in_flight=0.1, retry=SOON)
def transfer(ctx: ToolContext, amount_cents: int = 1) -> Any:
    wire.begin(ctx)
    return wire.act(ctx, "transfer", to="savings", amount_cents=amount_cents)


@tool(effect="unkeyed", timeout=5, max_in_flight=0.3, retry=SOON)
def letter(ctx: ToolContext, amount_cents: int = 1) -> Any:
    wire.begin(ctx)
    return wire.act_unkeyed(ctx, "mail", to="a@b.example", subject=str(amount_cents), body="")


BY_EFFECT = {"read": look, "keyed": charge, "keyed-probe": refund, "probed": transfer, "unkeyed": letter}
# The same five functions behind a person's approval.
GATED = {
    effect: tool(
        effect=plain.effect,
        probe=plain.probe,
        approval=True,
        timeout=plain.timeout,
        max_in_flight=plain.max_in_flight,
        retry=plain.retry,
        name=f"gated_{plain.name}",
    )(plain.function)
    for effect, plain in BY_EFFECT.items()
}


@tool(effect="keyed", probe=wire.find_by_key, timeout=5, retry=SOON, limit=1)
def limited(ctx: ToolContext, amount_cents: int = 1) -> Any:
    """One at a time, over all runs."""
    wire.begin(ctx)
    return wire.act(ctx, "refund", order_id=ORDER, amount_cents=amount_cents)


@tool(effect="keyed", probe=wire.find_by_key, timeout=5, retry=SOON)
def retried(ctx: ToolContext, failures: int, retry_after: float | None = None) -> Any:
    """Surely does nothing the first `failures` times."""
    if wire.begin(ctx) <= failures:
        raise TransientError("not yet", retry_after=retry_after)
    return wire.act(ctx, "refund", order_id=ORDER, amount_cents=1)


@tool(effect="keyed", probe=wire.find_by_key, timeout=120)
def slow(ctx: ToolContext, seconds: float) -> Any:
    """Acts at once, answers after `seconds`, or sooner when the run is being cancelled."""
    wire.begin(ctx)
    done = wire.act(ctx, "refund", order_id=ORDER, amount_cents=1)
    _pass_time(ctx, seconds)
    return done


@tool(effect="unkeyed", timeout=120)
def slow_letter(ctx: ToolContext, seconds: float) -> Any:
    wire.begin(ctx)
    sent = wire.act_unkeyed(ctx, "mail", to="a@b.example", subject="slow", body="")
    _pass_time(ctx, seconds)
    return sent


@tool(effect="unkeyed", timeout=120)
def hesitant_letter(ctx: ToolContext, seconds: float) -> Any:
    """Waits first, and only then acts."""
    wire.begin(ctx)
    _pass_time(ctx, seconds)
    return wire.act_unkeyed(ctx, "mail", to="a@b.example", subject="hesitant", body="")


@tool(effect="keyed", probe=wire.find_by_key, timeout=1, retry=SOON)
def hasty(ctx: ToolContext, amount_cents: int = 1) -> Any:
    """Gives up after one second: for services that answer too late."""
    wire.begin(ctx)
    return wire.act(ctx, "refund", order_id=ORDER, amount_cents=amount_cents)


@tool(effect="unkeyed", timeout=1)
def hasty_letter(ctx: ToolContext, amount_cents: int = 1) -> Any:
    wire.begin(ctx)
    return wire.act_unkeyed(ctx, "mail", to="a@b.example", subject=str(amount_cents), body="")


@tool(effect="read", timeout=5, retry=SOON)
def deadly(ctx: ToolContext) -> NoReturn:
    """Kills its own process, every time."""
    wire.begin(ctx)
    _die()


@tool(effect="keyed", probe=wire.find_by_key, timeout=5, retry=SOON)
def act_and_die(ctx: ToolContext, times: int = 1) -> Any:
    """Acts, then kills its own process the first `times` times."""
    called = wire.begin(ctx)
    done = wire.act(ctx, "refund", order_id=ORDER, amount_cents=1)
    if called <= times:
        _die()
    return done


@tool(effect="unkeyed")
def value(ctx: ToolContext, name: str) -> Any:
    """A Python value by name. Unkeyed, so that a second call would be as wrong as it can be."""
    wire.begin(ctx)
    return VALUES[name]()


@tool(effect="unkeyed")
def echo(ctx: ToolContext, value: Any) -> str:
    """Takes a value of any kind as its argument; answers its type."""
    wire.begin(ctx)
    return type(value).__name__


@tool(effect="unkeyed")
def refuse(ctx: ToolContext, name: str) -> NoReturn:
    """Fails for good, with a value of this name as the reason."""
    wire.begin(ctx)
    raise PermanentError(str(VALUES[name]()))


def _pass_time(ctx: ToolContext, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not ctx.cancelled:
        time.sleep(0.05)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")
