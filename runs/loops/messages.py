"""Turns as the messages of pydantic-ai, and a release as the parameters of its requests. Pure: nothing is generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, ToolDefinition
from pydantic_ai.durable_exec import JSON_CODEC
from pydantic_ai.messages import InstructionPart, ModelRequestPart, RetryInfo, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.native_tools import CodeExecutionTool, WebFetchTool, WebSearchTool, XSearchTool

from runs.loops.conversation import Turn, turns_of
from runs.loops.declared import FINAL_RESULT, UPDATE_PLAN, WRAPPED, is_wrapped
from runs.loops.readable import clean, cleaned
from runs.loops.sendable import id_of_call, name_of_tool, sendable

if TYPE_CHECKING:
    from runs.state import RunState

GO_ON = "Go on."
NOTHING = "[empty]"
NO_PERSON = "[Automatic, not written by a person] "
NATIVE_TOOLS = {
    "web_search": WebSearchTool, "web_fetch": WebFetchTool, "code_execution": CodeExecutionTool,
    "x_search": XSearchTool,
}  # fmt: skip
ITEMS = {"type": "array", "items": {"type": "string"}}
PLAN_TOOL = ToolDefinition(
    name=UPDATE_PLAN,
    description=(
        "Tell the people who watch this run where you are: what is done, what comes next (the current step first), and"
        " what you decided. Call it when you begin and whenever the plan changes, beside your other calls."
    ),
    parameters_json_schema={
        "type": "object", "properties": {"done": ITEMS, "next": ITEMS, "decided": ITEMS},
        "required": ["done", "next", "decided"], "additionalProperties": False,
    },
)  # fmt: skip


def messages_of(content: Mapping[str, Any], state: RunState, model: str | None = None) -> list[ModelMessage]:
    """`content`: the release's; `model`: which is told. The same journal gives the same messages, byte for byte once
    they are sent."""
    retries = int(content["model"].get("retries", 3))
    made: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    at = state.time_of(1)
    for turn in turns_of(state):
        at = turn.at
        if turn.by == "model":
            made += [
                *_request(made, parts, at),
                response_of(turn.content, own=model is None or turn.model in ("", model)),
            ]
            parts = []
        else:
            parts.append(_part(turn, retries))
    return [*made, *_request(made, parts, at)]


def _request(made: list[ModelMessage], parts: list[ModelRequestPart], at: datetime) -> list[ModelMessage]:
    """What was said before an answer. A provider that paused in the middle of one goes on where it stood."""
    last = made[-1] if made else None
    if not parts and isinstance(last, ModelResponse) and last.state == "suspended":
        return []
    return [ModelRequest(parts=parts or [_said(GO_ON, at)], timestamp=at)]


def response_of(stored: Mapping[str, Any], own: bool = True) -> ModelResponse:
    """A stored answer; `own`: told to the model that gave it. Without the URL that it came from: another gateway would
    get other bytes."""
    response: ModelResponse = JSON_CODEC.load(ModelResponse, cleaned(sendable(stored, own)))
    return replace(response, provider_url=None)


def _said(text: str, at: datetime) -> UserPromptPart:
    return UserPromptPart(content=text, timestamp=at)


def _part(turn: Turn, retries: int) -> ModelRequestPart:
    content = turn.content if turn.content.strip() else NOTHING  # Anthropic takes no blank text
    if turn.by == "person":
        return _said(content, turn.at)
    if turn.by == "loop":
        return _said(NO_PERSON + content, turn.at)
    # Why a call has to be made again is for the library's own records: it is not part of a request.
    cause = cast(Any, {"arguments": "validation_error", "output": "validation_error"}.get(turn.cause, "model_retry"))
    retry = RetryInfo(cause=cause, attempt=turn.attempt, max_retries=retries) if turn.outcome == "retried" else None
    return ToolReturnPart(
        tool_name=name_of_tool(turn.tool), content=content, tool_call_id=id_of_call(turn.id), timestamp=turn.at,
        outcome=turn.outcome, retry=retry,
    )  # fmt: skip


def parameters_of(content: Mapping[str, Any], context: str | None) -> ModelRequestParameters:
    """`context`: the part of the prompt that was made at run time."""
    model = content["model"]
    tools = [
        ToolDefinition(name=told["name"], description=told["doc"], parameters_json_schema=ordered(told["parameters"]))
        for told in content["tools"]
    ]
    prompt = [InstructionPart(content=clean(model["prompt"]), dynamic=False)] if model.get("prompt", "").strip() else []
    if context and context.strip():
        prompt.append(InstructionPart(content=clean(context), dynamic=True))
    schema = model.get("output")
    mode: Literal["text", "tool"] = "text" if schema is None else "tool"
    native = [NATIVE_TOOLS[name]() for name in sorted(model.get("native", ()))]
    return ModelRequestParameters(
        function_tools=[*tools, PLAN_TOOL], native_tools=native,
        output_mode=mode, output_tools=[] if schema is None else [final_tool(schema)],
        allow_text_output=schema is None, instruction_parts=prompt,
    )  # fmt: skip


def final_tool(schema: Mapping[str, Any]) -> ToolDefinition:
    shown: dict[str, Any] = ordered(schema)
    if is_wrapped(schema):
        definitions = {"$defs": shown.pop("$defs")} if "$defs" in shown else {}
        shown = {"type": "object", "properties": {WRAPPED: shown}, "required": [WRAPPED]} | definitions
    return ToolDefinition(
        name=FINAL_RESULT, kind="output", parameters_json_schema=shown,
        description="End the run with this result, once nothing is left to do. Call it alone.",
    )  # fmt: skip


def ordered(schema: Any) -> Any:
    """The schema in one order of keys, whoever stored it: jsonb forgets the declared one. Required fields come first,
    as they were declared; models fill in fields in that order. That a value is secret is no business of the model's."""
    if isinstance(schema, list):
        return [ordered(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: ordered(schema[name]) for name in sorted(schema) if name != "writeOnly"}
    named, needed = found.get("properties"), found.get("required")
    if isinstance(named, dict) and isinstance(needed, list):
        first = [name for name in needed if isinstance(name, str) and name in named]
        found["properties"] = {name: named[name] for name in dict.fromkeys([*first, *named])}
    return found
