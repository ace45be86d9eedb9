"""An agent's own code under way: a coroutine on the process's loop that rests wherever it waits for the journal."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from pydantic_ai.durable_exec import (
    DurableOperation,
    DynamicToolsetCallToolParams,
    ModelRequestId,
    ToolsetCallToolParams,
    record_durable_unit,
)
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from runs.compared import Diverged
from runs.integrations.pydantic_ai.units import LIVE, Ident, Unit
from runs.loops.conversation import calls_in
from runs.loops.thread import submit

# The calls of a turn come within a few passes of the loop. One that takes longer, because its arguments' validator
# does, is made after the others.
PASSES = 25
STRAGGLERS = 0.05  # seconds
Answer = Callable[[Unit], Any]
NOT_YET = object()
MOST_THREADS = 256  # for what is no coroutine; as many as a worker has for calls


class LookFailed(Exception):
    """What the library wanted to know beside the model's answers and the calls' results cannot be found out."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """In place of what a unit comes to: there will never be anything."""

    why: str


class Live:
    """`waiting`: what it waits for. `answers`: what it was told, by unit. `denied`: reasons, by the call's id."""

    def __init__(self, begin: Callable[[], Awaitable[Any]]) -> None:
        self.waiting: dict[Ident, Unit] = {}
        self.answers: dict[Ident, tuple[Unit, Any]] = {}
        self.denied: dict[tuple[int, str], str] = {}
        self.diverged: Diverged | None = None
        self.requests = 0
        self._expected: set[str] = set()
        self._asks_first: set[tuple[int, str]] = set()
        self._count: Counter[tuple[str, int, str]] = Counter()
        self._begin = begin
        self._task: asyncio.Task[Any] | None = None
        self._stirred = asyncio.Event()

    # -- from the thread of a slice ---------------------------------------------------------------------------------

    def advance(self, answer: Answer, timeout: float) -> None:
        """Tell it what is known, until it has ended or waits for what is not. Raises TimeoutError, and Diverged."""
        future = submit(self._advance(answer))
        try:
            future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise
        if self.diverged is not None:
            raise self.diverged

    def close(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    @property
    def ended(self) -> bool:
        return self._task is not None and self._task.done()

    @property
    def failure(self) -> BaseException | None:
        """What the agent's run raised, once it has ended."""
        assert self._task is not None
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    def result(self) -> Any:
        """Of the agent's run, once it has ended well."""
        assert self._task is not None
        return self._task.result()

    # -- on the loop ------------------------------------------------------------------------------------------------

    async def _advance(self, answer: Answer) -> None:
        if self._task is None:
            token = LIVE.set(self)
            self._task = asyncio.get_running_loop().create_task(self._run())
            LIVE.reset(token)
        while True:
            await self._rest()
            told = False
            for unit in list(self.waiting.values()):
                try:
                    payload = answer(unit)
                except Diverged as diverged:
                    self.diverged = diverged
                    return
                if payload is not NOT_YET:
                    self._tell(unit, payload)
                    told = True
            if not told:
                return

    def _tell(self, unit: Unit, payload: Any) -> None:
        del self.waiting[unit.ident]
        self.answers[unit.ident] = (unit, payload)
        if unit.answered.done():  # what waited for it was cancelled
            return
        if isinstance(payload, Unanswered):
            unit.answered.set_exception(LookFailed(payload.why))
        else:
            unit.answered.set_result(payload)

    async def _run(self) -> Any:
        to_thread.current_default_thread_limiter().total_tokens = MOST_THREADS
        try:
            return await self._begin()
        finally:
            self._stirred.set()

    async def _rest(self) -> None:
        """Until it has ended, or all that it does is to wait for units."""
        deadline = asyncio.get_running_loop().time() + STRAGGLERS
        assert self._task is not None
        quiet, known = 0, -1
        while not self._task.done():
            open_units = [unit for unit in self.waiting.values() if not unit.answered.done()]
            if not open_units:
                self._stirred.clear()
                if not self._task.done():
                    await self._stirred.wait()
                quiet = 0
                continue
            quiet = quiet + 1 if len(self.answers) + len(self.waiting) == known else 0
            known = len(self.answers) + len(self.waiting)
            whole = not self._expected or any(unit.ident[0] != "call" for unit in open_units)
            if quiet >= PASSES and (whole or asyncio.get_running_loop().time() > deadline):
                self._expected.clear()  # what has not come by now was no call of a tool
                return
            await asyncio.sleep(0 if quiet < PASSES else 0.001)

    async def unit(self, operation: DurableOperation[Any, Any, Any], params: Any) -> Any:
        """What the unit comes to, once the journal says so."""
        if isinstance(operation.operation_id, ModelRequestId):
            self.requests += 1
            self._expected.clear()
            ident: Ident = ("model", self.requests, "", 0)
        elif isinstance(params, (ToolsetCallToolParams, DynamicToolsetCallToolParams)):
            self._expected.discard(params.ctx.tool_call_id or "")
            ident = self._numbered("call", params.ctx.tool_call_id or "")
        else:
            ident = self._numbered("unit", name_of(operation))
        unit = Unit(ident, asyncio.get_running_loop().create_future(), operation, params)
        payload = await self._offered(unit)
        record_durable_unit(executed=unit.performed)
        if ident[0] == "model":
            self._expected = {call["tool_call_id"] for call in calls_in(payload)}
        return payload

    def _numbered(self, kind: str, name: str) -> Ident:
        """It may come again after the same request: a call that was deferred, a look at the tools."""
        place = (kind, self.requests, name)
        self._count[place] += 1
        return (*place, self._count[place])

    async def _offered(self, unit: Unit) -> Any:
        unit.asks_first = unit.ident[0] == "call" and (unit.ident[1], unit.ident[2]) in self._asks_first
        self.waiting[unit.ident] = unit
        self._stirred.set()
        return await unit.answered

    async def deferred(self, requests: DeferredToolRequests) -> DeferredToolResults:
        """Calls that the library does not make by itself. One that needs approval is made, and waits for it in the
        journal; one that was denied is told so; what is done elsewhere is waited for by a signal with the call's id."""
        approvals: dict[str, Any] = {}
        for call in requests.approvals:
            place = (self.requests, call.tool_call_id)
            if place in self.denied:
                approvals[call.tool_call_id] = ToolDenied(self.denied[place])
            else:
                self._asks_first.add(place)
                approvals[call.tool_call_id] = ToolApproved()
        loop = asyncio.get_running_loop()
        waits = [Unit(self._numbered("wait", call.tool_call_id), loop.create_future()) for call in requests.calls]
        payloads = await asyncio.gather(*(self._offered(unit) for unit in waits))
        calls = {unit.ident[2]: payload for unit, payload in zip(waits, payloads, strict=True)}
        return DeferredToolResults(approvals=approvals, calls=calls)


def name_of(operation: DurableOperation[Any, Any, Any]) -> str:
    """Of a unit that is neither a request nor a tool's call: `desk.get_tools`."""
    identity = operation.operation_id
    of = getattr(identity, "toolset_id", None) or getattr(identity, "capability_id", None) or "model"
    does = getattr(identity, "operation", None) or type(identity).__name__
    return f"{of}.{does}"
