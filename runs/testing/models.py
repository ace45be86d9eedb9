"""Models in tests: what a model loop's model answers, written down. No provider's client is loaded, nothing is sent.

All else is the real loop: which model is asked and when, how an answer is read and journaled, what goes back for a
correction, what the model is told next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from journal.encoding import canonical
from journal.entries import Entry, Kind
from runs.agents import Agent
from runs.compared import Judge
from runs.engine.asking import Line
from runs.engine.calls import finish
from runs.engine.drivers import Driver, ModelDriver
from runs.engine.loop import LoopAsking
from runs.loops.conversation import turns_of
from runs.loops.declared import FINAL_RESULT, WRAPPED, ModelLoop, is_wrapped
from runs.loops.errors import ModelFailed
from runs.loops.readable import plain
from runs.run_view import RunView
from runs.state import MODEL_ACTOR, RunState
from runs.testing.fakes import REAL, Each, NotFaked

if TYPE_CHECKING:
    from runs.loops.asking import Answer

CLIENT = "runs.testing"


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A call in an answer; `args` may be wrong, or a text that is no JSON."""

    tool: str
    args: Any


@dataclass(frozen=True, slots=True)
class Said:
    """Text; of a loop with `output=`, its result."""

    value: Any


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer. `finish`: stop, length, content_filter. `cost`: None is not known."""

    parts: Sequence[ToolCalled | Said]
    finish: str = "stop"
    input_tokens: int = 10
    output_tokens: int = 10
    cost: float | str | None = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer."""

    code: str
    says: str
    retry_after: float | None = None


def calls(tool: Any, /, *text: str, **args: Any) -> ToolCalled:
    """The model calls a tool, given itself or its name. `text`: the arguments as it wrote them, if they are no JSON."""
    return ToolCalled(str(getattr(tool, "name", tool)), text[0] if text else args)


def says(value: Any) -> Said:
    """The model says a text; of a loop with `output=`, this is the result that it gives. Alone it ends the run."""
    return Said(value)


def answer(*parts: ToolCalled | Said | str, **given: Any) -> Answered:
    """One answer of several parts, or with other tokens, cost or finish than it would have: `input_tokens=10`,
    `output_tokens=10`, `cost=0` (None: not known), `finish="stop"`, "length" or "content_filter"."""
    return Answered(tuple(part if isinstance(part, ToolCalled | Said) else Said(part) for part in parts), **given)


def fails(code: str = "overloaded", says: str = "", *, retry_after: float | None = None) -> Failed:
    """The request fails. `code`: as an ERROR names it: rate_limited, overloaded, server_error, unavailable,
    connection_lost, cut_stream, timeout, garbage, context_too_long, rejected, authentication, not_found, quota."""
    return Failed(code, says or code.replace("_", " "), retry_after)


Scripted = ToolCalled | Said | Answered | Failed | str | Sequence[ToolCalled | Said | str]
Script = Sequence[Scripted] | Callable[[RunView], Scripted]


def scripted(agents: Iterable[Agent], given: Any) -> list[Agent]:
    """The agents with their models replaced by what the test says. `given`: answers in order, or a function of the run;
    of several agents, by the agent's name. What is not given refuses to be asked."""
    if given is REAL:
        return list(agents)
    agents = list(agents)
    own = agents[0]
    by_name = given if isinstance(given, Mapping) else {own.name: given}
    for name, script in by_name.items():
        agent = next((agent for agent in agents if agent.name == name), None)
        if script is not None and (agent is None or not isinstance(agent.decide, ModelLoop)):
            raise ValueError(f"model= is given for {name!r}, which has no ModelLoop")
    return [_scripted(agent, by_name.get(agent.name)) for agent in agents]


def _scripted(agent: Agent, script: Any) -> Agent:
    loop = agent.decide
    if not isinstance(loop, ModelLoop) or (script is None and loop.object_of(loop.names[0]) is not None):
        return agent  # a model object of a test answers for itself
    script = list(script.behaviours) if isinstance(script, Each) else script
    if script is not None and not callable(script) and (isinstance(script, str) or not isinstance(script, Sequence)):
        raise TypeError(f"model= takes answers in order, or a function of the run, not {script!r}")
    if isinstance(script, Sequence):
        script = [as_answer(each) for each in script]
    given = {f.name: getattr(loop, f.name) for f in fields(ModelLoop)}
    return replace(agent, decide=ScriptedLoop(**given, script=script))


@dataclass(frozen=True, eq=False)
class ScriptedLoop(ModelLoop):
    """A loop whose model answers by a script. Its release is that of the loop."""

    script: Script | None = None
    journals: list[Callable[[Any], Sequence[Entry]]] = field(default_factory=list)  # one: where runs are read

    def driver(self, agent: Agent, state: RunState, entries: Sequence[Entry], judge: Judge) -> Driver:
        return ModelDriver(partial(ScriptedAsking, agent, self), judge)

    def next_answer(self, run_id: Any, view: RunView) -> Answered | Failed:
        """By how often the model was asked before: a request whose worker died is asked again, and answered alike."""
        entries = self.journals[0](run_id)
        before = sum(is_end_of_request(entry) for entry in entries)
        if self.script is None:
            raise NotFaked(f"the run asks its model, for which the test gives no answers: model=[…]. {_seen(view)}")
        if callable(self.script):
            return as_answer(finish(self.script(view)))
        if before >= len(self.script):
            had = f"{len(self.script)} answer" + "s" * (len(self.script) != 1)
            raise NotFaked(f"the run asks its model once more than the test gives answers ({had}). {_seen(view)}")
        return as_answer(self.script[before])


def is_end_of_request(entry: Entry) -> bool:
    return (entry.kind == Kind.PLAN and entry.actor == MODEL_ACTOR) or (entry.kind == Kind.ERROR and entry.step is None)


def as_answer(given: Any) -> Answered | Failed:
    if isinstance(given, Answered | Failed):
        return given
    parts = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    for part in parts:
        if not isinstance(part, ToolCalled | Said | str):
            raise TypeError(f"a model's answer is made of testing.calls(…) and testing.says(…), not {part!r}")
    return answer(*parts)


def _seen(view: RunView) -> str:
    last = turns_of(view._state)[-1]
    return f"The last that it was told: {last.content!r:.500}"


@dataclass(frozen=True, slots=True)
class NotSent:
    """In place of a request. `digest`: of what the model is told."""

    model: str
    digest: str
    size: int
    view: RunView
    run_id: UUID
    client: str = CLIENT


class ScriptedAsking(LoopAsking):
    """The loop's own way of asking, without a request: there is nobody to send it to."""

    loop: ScriptedLoop
    prepared: Any  # a NotSent

    def _prepared(self, state: RunState, model: str) -> Any:
        body = canonical([[turn.by, turn.id, turn.content, turn.outcome] for turn in turns_of(state)])
        return NotSent(model, hashlib.sha256(body).hexdigest(), len(body), RunView(state), state.run_id)

    def ask(self, line: Line) -> Any:
        given = self.loop.next_answer(self.prepared.run_id, self.prepared.view)
        if isinstance(given, Failed):
            raise ModelFailed(given.code, given.says, retry_after=given.retry_after)
        return self._as_if_answered(given)

    def _as_if_answered(self, given: Answered) -> Answer:
        number = sum(made.said is not None for made in self.prepared.view._state.decisions) + 1
        parts = [_part(self.loop, part, f"call-{number}-{at}") for at, part in enumerate(given.parts, 1)]
        provider, _, name = self.prepared.model.partition(":")
        stored = {"parts": parts, "model_name": name, "provider_name": provider, "finish_reason": given.finish,
                  "kind": "response", "state": "complete"}  # fmt: skip
        return cast("Answer", Stand(Response(given, name, provider), stored, self.prepared.model))

    def _failed(self, error: BaseException) -> ModelFailed:
        if not isinstance(error, ModelFailed):  # the test's own mistake
            raise error
        return error


def _part(loop: ModelLoop, part: ToolCalled | Said, id: str) -> dict[str, Any]:
    match part:
        case ToolCalled(tool, args):
            told = args if isinstance(args, str) else json.dumps(plain(args), ensure_ascii=False)
            return {"tool_name": tool, "args": told, "tool_call_id": id, "part_kind": "tool-call"}
        case Said(value):
            schema = loop.output_schema
            if schema is None or (isinstance(value, str) and not is_wrapped(schema)):
                return {"content": value, "part_kind": "text"}
            result = {WRAPPED: value} if is_wrapped(schema) else value
            return _part(loop, ToolCalled(FINAL_RESULT, result), id)


@dataclass(frozen=True, slots=True)
class Used:
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    details: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Price:
    total_price: Decimal


@dataclass(frozen=True, slots=True)
class Response:
    """What the loop asks of a provider's answer beside its parts."""

    given: Answered
    model_name: str
    provider_name: str

    @property
    def finish_reason(self) -> str:
        return self.given.finish

    @property
    def usage(self) -> Used:
        return Used(self.given.input_tokens, self.given.output_tokens)

    def cost(self) -> Price:
        if self.given.cost is None:
            raise LookupError("its price is not known")
        return Price(Decimal(str(self.given.cost)))


@dataclass(frozen=True, slots=True)
class Stand:
    """In place of an `Answer` that came from somewhere."""

    response: Response
    stored: dict[str, Any]
    model: str
    latency: float = 0.0
    request_id: str | None = None
