"""The call under way: what a tool knows of it, as an argument or from wherever its code asks."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, overload
from uuid import UUID


class Cancelled:
    """Whether somebody asked to cancel the run; true for a call that is under way when it happens."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool knows of its call. `key` is the same at each attempt; `deadline` is POSIX seconds."""

    key: str
    run_id: UUID
    step: int
    attempt: int
    deadline: float
    cancelled: Cancelled
    scratch: dict[str, Any] = field(default_factory=dict)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("holdfast.tool"))


class NoCall(RuntimeError):
    """No tool's call is under way here. current_call() is for code that a run calls as a tool, in the thread or task of
    that call; code that others call too asks current_call(None), which gives None to them."""


_NOTHING: Any = object()
_under_way: ContextVar[ToolContext] = ContextVar("holdfast_call")


@overload
def current_call() -> ToolContext: ...
@overload
def current_call[T](default: T) -> ToolContext | T: ...
def current_call(default: Any = _NOTHING) -> Any:
    """The call of a tool that this code runs in, however deep; outside of one `default`.

    It holds in the call's own thread or task, in tasks that it makes and in `asyncio.to_thread`; a thread that it
    starts by itself has to be handed what it needs. Raises NoCall outside without a default.
    """
    call = _under_way.get(default)
    if call is _NOTHING:
        raise NoCall(" ".join((NoCall.__doc__ or "").split()))
    return call


@contextmanager
def under(call: ToolContext) -> Iterator[None]:
    """What runs in here is this call, for `current_call`."""
    token = _under_way.set(call)
    try:
        yield
    finally:
        _under_way.reset(token)


def made_under(call: ToolContext, function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    """The function's result; of an async one the coroutine, which finds its call wherever it is awaited."""
    with under(call):
        made = function(*args, **named)
    return _awaited_under(call, made) if inspect.iscoroutine(made) else made


async def _awaited_under(call: ToolContext, made: Coroutine[Any, Any, Any]) -> Any:
    with under(call):
        return await made
