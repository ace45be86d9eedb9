"""Durable units: what the library executes once, and is told from the journal ever after."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic_ai import ModelMessagesTypeAdapter
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    CapabilityOperationParams,
    DurableOperation,
    DynamicToolsetCallToolParams,
    ModelRequestParams,
    ToolsetCallToolParams,
    durable_unit_scope,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from runs.loops.providers import clients_of
from runs.loops.thread import submit
from runs.moves import Call

if TYPE_CHECKING:
    from runs.integrations.pydantic_ai.live import Live

# Model requests are numbered; all else is named after the request that it followed.
Ident = tuple[str, int, str, int]
LIVE: ContextVar[Live | None] = ContextVar("holdfast_live", default=None)
HEARING: ContextVar[Callable[[Any], None] | None] = ContextVar("holdfast_hearing", default=None)
PASSING = frozenset({"timestamp", "run_id", "conversation_id"})  # new in each replay, and nothing depends on it


@dataclass(eq=False)
class Unit:
    """One that the agent's code waits for. `asks_first`: nobody has approved it, and somebody has to. `performed`: what
    it comes to was found out in this life of the code."""

    ident: Ident
    answered: asyncio.Future[Any]
    operation: DurableOperation[Any, Any, Any] | None = None
    params: Any = None
    asks_first: bool = False
    performed: bool = False
    context: Context = field(default_factory=copy_context)

    def perform(self, params: Any = None, hearing: Callable[[Any], None] | None = None) -> Future[Any]:
        """Do what it does, now, on the loop. Called from a call's thread, whose context variables it gets as well."""
        self.performed = True
        context = self.context.copy()
        for variable, value in copy_context().items():
            if variable not in context:
                context.run(variable.set, value)
        context.run(LIVE.set, None)  # what is called within is part of this unit
        context.run(HEARING.set, hearing)
        return submit(self._in(context, self.params if params is None else params))

    async def _in(self, context: Context, params: Any) -> Any:
        return await asyncio.get_running_loop().create_task(self._body(params), context=context)

    async def _body(self, params: Any) -> Any:
        assert self.operation is not None
        with durable_unit_scope():
            return self.operation.result_codec.dump(await self.operation.handler(params))

    @property
    def tool(self) -> str:
        """Its name among the agent's tools: of a server's, after the server's id."""
        assert self.operation is not None
        identity: Any = self.operation.operation_id
        return (
            str(self.params.name)
            if identity.toolset_kind == "function"
            else named(identity.toolset_id, self.params.name)
        )

    # -- a tool's call ----------------------------------------------------------------------------------------------

    @cached_property
    def args(self) -> dict[str, Any]:
        """As JSON knows them: the model's own, unless something between has made others of them."""
        given = self.params.tool_args
        said = self._said()
        if said is not None and _same(self.checked(said), given):
            return said
        return dict(to_jsonable_python(given, fallback=str))

    def _said(self) -> dict[str, Any] | None:
        """The arguments as the model wrote them."""
        for message in reversed(self.params.ctx.messages):
            for part in message.parts:
                if getattr(part, "tool_call_id", None) == self.ident[2] and part.part_kind == "tool-call":
                    try:
                        return dict(part.args_as_dict(raise_if_invalid=True))
                    except ValueError:
                        return None
        return None

    def checked(self, args: dict[str, Any]) -> Any:
        """These arguments as its function takes them. Raises ValidationError."""
        tool = getattr(self.params, "tool", None)
        if tool is None:  # of a toolset that validates inside of the unit
            return args
        return tool.args_validator.validate_python(args, context=self.params.ctx.validation_context)

    def params_for(self, args: dict[str, Any] | None, approved: bool) -> Any:
        """`args`: a person's, in place of the agent's. The library's own timeout is ours: after it nobody knows
        whether the call acted, and the model must not be told that it failed."""
        params: ToolsetCallToolParams | DynamicToolsetCallToolParams = self.params
        if approved:
            params = replace(params, ctx=replace(params.ctx, tool_call_approved=True))
        if args is not None:
            params = replace(params, tool_args=self.checked(args))
        tool = getattr(params, "tool", None)
        if tool is not None and tool.tool_def.timeout is not None:
            params = replace(params, tool=replace(tool, tool_def=replace(tool.tool_def, timeout=None)))
        return params

    # -- what is neither a tool's call nor a request ------------------------------------------------------------------

    def aside(self, look_up: str) -> Call:
        """As a call: what a capability does has a tool of its own, all else asks the outside world for something."""
        if isinstance(self.params, CapabilityOperationParams):
            return Call.of(self.ident[2], dict(to_jsonable_python(self.params.arguments, fallback=str)))
        return Call(look_up, unit=self.ident[2])

    # -- a model request --------------------------------------------------------------------------------------------

    @cached_property
    def request(self) -> bytes:
        """What is asked, without what is new in each replay: for its digest and its size."""
        asked: ModelRequestParams = self.params
        parameters = JSON_CODEC.dump(ModelRequestParameters, asked.model_request_parameters)
        messages = ModelMessagesTypeAdapter.dump_python(asked.messages, mode="json")
        whole = [without_passing(messages), asked.model_settings, without_passing(parameters)]
        return json.dumps(whole, sort_keys=True, default=lambda value: type(value).__name__).encode()

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.request).hexdigest()

    @property
    def model(self) -> Model[Any]:
        found: Model[Any] = innermost(self.params.run_context.model)
        return found

    @property
    def client(self) -> str:
        """The packages, with their versions, that the request was written by."""
        return clients_of(self.model)


def innermost(model: Any) -> Any:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    return model


def named(toolset: str, tool: str) -> str:
    return f"{toolset}:{tool}"


def without_passing(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_passing(each) for name, each in value.items() if name not in PASSING}
    return [without_passing(each) for each in value] if isinstance(value, list) else value


def _same(mine: Any, theirs: Any) -> bool:
    try:
        return bool(mine == theirs)
    except (PydanticSerializationError, TypeError, ValueError):
        return False
