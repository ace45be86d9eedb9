"""The library's interface for engines like ours: each durable unit of a run comes to `Bound`."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic_ai import RunContext
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    DurableOperation,
    DurableOperationBackend,
    EventStreamHandlerId,
    ToolsetValidateToolArgumentsId,
)
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition

from runs.integrations.pydantic_ai.units import HEARING, LIVE


class Bound:
    """One operation of the library. Outside of a run of ours, and within another unit, it is never called."""

    def __init__(self, operation: DurableOperation[Any, Any, Any]) -> None:
        self._operation = operation

    @property
    def operation(self) -> DurableOperation[Any, Any, Any]:
        return self._operation

    async def __call__(self, params: Any, *, config: object | None = None) -> Any:
        live = LIVE.get()
        assert live is not None
        if isinstance(self._operation.operation_id, EventStreamHandlerId):
            return None  # our own handler, which has nothing to do with what is no part of an answer
        payload = await live.unit(self._operation, params)
        return self._operation.result_codec.load(payload)


class Backend(DurableOperationBackend[None]):
    """Arguments' validators of the agent's own run where the agent's code runs, again at each replay."""

    def __init__(self, bound: list[Any]) -> None:
        self._bound = bound

    def bind(self, operation: DurableOperation[Any, Any, Any]) -> Any:
        self._bound.append(operation.operation_id)
        return Bound(operation)

    def config_for_tool(
        self, operation: DurableOperation[Any, Any, Any], *, tool: object | None, tool_name: str
    ) -> Literal[False] | None:
        return False if isinstance(operation.operation_id, ToolsetValidateToolArgumentsId) else None

    def registrations(self) -> Sequence[Any]:
        return ()


class Durability(BaseDurabilityCapability[Any]):
    """Given to a run of the agent, beside whatever capabilities it has."""

    engine_spec = DurabilityEngineSpec(
        engine_name="Holdfast",
        durable_unit_noun="step",
        durable_container_noun="run",
        codec=JSON_CODEC,
        toolset_lifecycles={"function": "enter-always", "mcp": "enter-in-durable-unit", "dynamic": "enter-never"},
    )

    def __init__(self, *, name: str, event_stream_handler: Any = None) -> None:
        super().__init__(name=name, event_stream_handler=event_stream_handler)
        self.operations: list[Any] = []  # identities of what was bound, of the copy that is bound to an agent too

    @property
    def in_durable_context(self) -> bool:
        return LIVE.get() is not None

    def get_durable_operation_backend(self) -> DurableOperationBackend[Any]:
        return Backend(self.operations)

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """What needs approval is called like any other tool: the call is gated in the journal, beside its siblings."""
        if LIVE.get() is None:
            return tool_defs
        return [replace(each, kind="function") if each.kind == "unapproved" else each for each in tool_defs]

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        live = LIVE.get()
        return None if live is None else await live.deferred(requests)


async def hear(ctx: RunContext[Any], events: AsyncIterable[Any]) -> None:
    """An answer while it arrives."""
    heard = HEARING.get()
    async for event in events:
        if heard is not None:
            heard(event)
