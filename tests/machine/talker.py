"""An agent that runs a program of calls in a conversation: each statement is one answer of its model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from pydantic_ai import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.messages import ModelRequest, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from journal.encoding import canonical
from journal.entries import Entry, Kind
from runs.loops.exact import exact
from runs.loops.messages import messages_of
from runs.sdk import Agent
from runs.sdk.models import ModelLoop
from runs.slots import Slot
from runs.state import RunState
from tests.machine.world import TOOLS, WORLD

END = "All is done."


def speak(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    WORLD.heard.add(digest_of(messages))
    first = messages[0]
    assert isinstance(first, ModelRequest) and isinstance(first.parts[0], UserPromptPart)
    program = json.loads(str(first.parts[0].content))
    said = sum(isinstance(message, ModelResponse) for message in messages)
    if said >= len(program):
        return ModelResponse(parts=[TextPart(END)])
    names = names_in(program[said])
    return ModelResponse(parts=[ToolCallPart(name, {}, f"{said}-{place}") for place, name in enumerate(names)])


def names_in(statement: Any) -> list[str]:
    """The tools that a statement calls."""
    return [each[1] for each in (statement[1] if statement[0] == "all" else [statement])]


def digest_of(messages: Sequence[ModelMessage]) -> str:
    """Of what a model is told; not of when."""
    return hashlib.sha256(
        canonical(timeless(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")))
    ).hexdigest()


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: timeless(each) for name, each in value.items() if name not in ("timestamp", "instructions")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


talker = Agent(
    name="talker", version="1", tools=tuple(TOOLS.values()),
    decide=ModelLoop(FunctionModel(speak, model_name="talks"), prompt="Run the program.", stream=False),
)  # fmt: skip


def judge_conversation(run_id: UUID, entries: Iterable[Entry], about: object) -> None:
    """The journal up to each request leads to what the model was told by it, and each answer was to one of those."""
    loop = talker.decide
    assert isinstance(loop, ModelLoop)
    state, asked = RunState(run_id), dict[int, str]()
    for entry in entries:
        state.apply(entry)
        if entry.kind == Kind.ATTEMPT and entry.step is None and (run_id, entry.seq) not in WORLD.judged:
            asked[entry.seq] = digest_of(messages_of(talker.content, state))
            assert exact(talker.content, state, loop.names[0], loop).digest == entry.body["digest"], (entry, about)
        elif entry.kind == Kind.PLAN and entry.body.get("asked") in asked:
            assert asked[entry.body["asked"]] in WORLD.heard, (entry, about)
            WORLD.judged.add((run_id, entry.body["asked"]))
            WORLD.tally["answered"] += 1


def judge_end_of_talk(state: RunState, slots: Sequence[Slot], about: object) -> None:
    assert state.done is not None and state.done["result"] == END, about
    assert [slot.tool for slot in slots] == [name for each in state.input for name in names_in(each)], about
