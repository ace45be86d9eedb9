"""The library's tools as tools of ours: name, schema, effect class. They do what the agent's own code waits for.

A toolset whose tools are only known at run time (an MCP server's, a dynamic one's) has one entry, `desk:*`, that says
how a tool of it is treated which `effects=` does not name.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from journal.encoding import canonical
from runs.answer_types import SchemaRefused, faults_of
from runs.compared import Diverged
from runs.integrations.pydantic_ai.driver import driver_of
from runs.integrations.pydantic_ai.results import ASKS_FIRST, FAILED, as_result
from runs.outcomes import NeedsApproval, PermanentError, TransientError, describe
from runs.tools import Tool, ToolContext

ANYTHING: dict[str, Any] = {"type": "object", "additionalProperties": True}


@dataclass(eq=False)
class JournaledTool(Tool):
    """`schema`: of its arguments, as the model is shown it. `said`: what the model is told of it."""

    schema: Mapping[str, Any] = field(default_factory=lambda: ANYTHING)
    said: str = ""

    @cached_property
    def contract(self) -> dict[str, Any]:
        return super().contract | {"parameters": json.loads(json.dumps(self.schema)), "doc": self.said}

    def faults(self, args: dict[str, Any]) -> list[str]:
        try:
            return [fault.told("arguments") for fault in faults_of(self.schema, args)]
        except SchemaRefused:  # it is the library's business then
            return []

    @cached_property
    def digest(self) -> bytes:
        functions = (self.plain, self.probe, self.approval, self.canonical)
        code = [_source(f) for f in functions if callable(f)]
        return hashlib.sha256(canonical([self.contract, code])).digest()

    @cached_property
    def _model(self) -> tuple[Any, dict[str, str]]:
        return create_model(self.name, __config__=ConfigDict(extra="allow")), {}

    @cached_property
    def _result(self) -> None:
        return None


def performing(name: str, schema: Mapping[str, Any], original: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The function of such a tool. `original`: the agent's, whose source counts as its code."""

    def call(ctx: ToolContext, **args: Any) -> Any:
        return perform(ctx, args)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature_of(schema)  # type: ignore[attr-defined]
    if original is not None:
        call.__wrapped__ = original  # type: ignore[attr-defined]
        call.__module__ = original.__module__
    return call


def signature_of(schema: Mapping[str, Any]) -> Signature:
    """As of a function that takes these arguments by name: limits and fakes know them by it."""
    required = schema.get("required", ())
    parameters = [Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=ToolContext)]
    for name, said in schema.get("properties", {}).items():
        default = Parameter.empty if name in required else said.get("default")
        if name.isidentifier() and name != "ctx":
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default))
    if schema.get("additionalProperties", True):
        parameters.append(Parameter("others", Parameter.VAR_KEYWORD))
    return Signature(parameters)


def perform(ctx: ToolContext, args: dict[str, Any]) -> Any:
    """In a call's thread. What the agent's tool raises is judged like what any tool raises."""
    driver = driver_of(ctx.run_id)
    try:
        unit = driver.unit_of(ctx.step) if driver is not None else None
    except (TimeoutError, Diverged) as error:  # nothing was sent; what is wrong shows when the next step is decided
        raise TransientError(f"the agent's code does not come to this call: {describe(error)}") from error
    if driver is None or unit is None:
        raise TransientError("the agent's code does not wait for this call")
    if unit.ident[0] == "unit":
        return unit.perform().result()
    slot = driver.history.state.slots[ctx.step]
    approved = slot.approval is not None and slot.approval.verdict == "granted"
    if unit.asks_first and not approved:
        raise NeedsApproval("the agent says that it needs approval")
    try:
        params = unit.params_for(args if slot.edited is not None else None, approved)
    except ValidationError as error:
        raise PermanentError(f"the arguments do not fit: {error}") from error
    payload = unit.perform(params).result()
    match payload["kind"]:
        case kind if kind == ASKS_FIRST:
            raise NeedsApproval(_why(payload))
        case kind if kind == FAILED:
            raise PermanentError(payload["message"])
    return as_result(payload)


def _why(payload: Mapping[str, Any]) -> str:
    told = payload.get("metadata")
    if isinstance(told, dict) and len(told) == 1 and isinstance(text := next(iter(told.values())), str):
        return text
    return f"the tool asks for it: {json.dumps(told, default=str)}" if told else "the tool asks for it"


def _source(function: object) -> str:
    try:
        return inspect.getsource(function)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__qualname__)
