"""A model asked again at each of its decisions, to see what it would say today. It costs what asking costs. Pure but
for the asking itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from journal.entries import Entry, Kind
from runs.agents import Agent, FunctionModel
from runs.compared import Records, given_moves, shown
from runs.engine.asking import amounts
from runs.engine.calls import finish
from runs.engine.sealing import sealed_moves
from runs.loops.declared import ModelLoop
from runs.loops.readable import text_of
from runs.moves import as_decided
from runs.outcomes import describe
from runs.redeciding import Divergence, Watch, differing
from runs.run_view import RunView
from runs.secrets import struck, struck_text
from runs.slots import Decision
from runs.state import RunState

NOTHING = "an answer of which nothing could be made"


@dataclass(frozen=True, slots=True)
class Given:
    """What the model says now: the moves as they are journaled, and how they are joined."""

    moves: Records
    join: str
    usage: dict[str, Any]


Ask = Callable[[RunState], Given]


@dataclass(slots=True)
class AskedAgain:
    """`requests` that were made, `failed` of them without an answer; `usage`: the sum of what they reported."""

    requests: int = 0
    failed: int = 0
    usage: dict[str, float] = field(default_factory=dict)
    divergences: list[Divergence] = field(default_factory=list)


def ask_again(
    agent: Agent, entries: Sequence[Entry], *, at: int | None = None, watch: Watch = lambda seq: None
) -> AskedAgain:
    """The model is shown each time what it was shown then. An agent without a model is not asked."""
    asked = AskedAgain()
    ask = asking_of(agent)
    if ask is None:
        return asked
    seen = list(entries[:at])
    for made, state in requests(seen):
        watch(made.seq)
        asked.requests += 1
        try:
            given = ask(state)
        except BaseException as error:  # an agent's code, like any other of it
            asked.failed += 1
            says = struck_text(f"Asked again, the model gave no answer: {describe(error)}.")
            asked.divergences.append(Divergence(made.seq, None, "decision", True, struck(made.moves), None, says))
            continue
        for name, amount in amounts(given.usage).items():
            asked.usage[name] = asked.usage.get(name, 0) + amount
        asked.divergences += compared(made, given)
    return asked


def asking_of(agent: Agent) -> Ask | None:
    """How its model is asked outside of a run; None: it has none that could be."""
    match agent.decide:
        case FunctionModel() as model:
            return partial(asked_function, agent, model)
        case ModelLoop() as loop:
            return partial(asked_loop, agent, loop)
    return None


def asked_function(agent: Agent, model: FunctionModel, state: RunState) -> Given:
    moves, usage = finish(model.ask(RunView(state)))
    decided = sealed_moves(agent, as_decided(moves))
    return Given(given_moves(decided), decided.join, usage)


def asked_loop(agent: Agent, loop: ModelLoop, state: RunState) -> Given:
    """The same conversation, as this release would ask it; of the model that was asked then, if it still names it."""
    from runs.loops import answers, asking  # seconds to load, with the providers' clients: only where one is asked

    last = state.model_attempts[-1].told.get("model") if state.model_attempts else None
    if loop.context is None:
        state.context = None
    elif state.context is None:
        state.context = struck_text(str(loop.context(RunView(state))))
    prepared = asking.prepare(agent.content, state, last if last in loop.names else loop.names[0], loop)
    answer = asking.ask(prepared, time.monotonic() + loop.timeout)
    body = answers.plan_of(agent, loop, state, answer)
    return Given(body["moves"], "all", body["usage"])


def compared(made: Decision, given: Given) -> list[Divergence]:
    recorded, now = list(made.moves or []), given.moves
    if made.said is not None:  # the provider names its calls anew each time
        recorded, now = without_ids(recorded), without_ids(now)
    told = difference_of(made, recorded, now, given.join)
    if told is None:
        return []
    kind, says = told
    step = made.steps[0] if made.steps else None
    was, is_now = struck(shown(recorded, made.join)), struck(shown(now, given.join))
    return [Divergence(made.seq, step, kind, kind != "text", was, is_now, struck_text(f"Asked again: {says}"))]


def difference_of(made: Decision, recorded: Records, now: Records, join: str) -> Any:
    """The kind and a sentence; None: the model says the same. Of a text that ends a run only the words differ."""
    if not recorded or not now:
        first, second = (names(recorded), names(now)) if recorded or now else ("", "")
        return ("decision", f"Recorded is {first}; now it is {second}.") if first != second else None
    if made.said is not None and (is_text(recorded) and is_text(now)):
        return None if recorded == now else ("text", "The same end, in other words.")
    return differing(recorded, now, made.join, join)


def names(moves: Records) -> str:
    return ", ".join(text_of(move) for move in moves) or NOTHING


def is_text(moves: Records) -> bool:
    return len(moves) == 1 and isinstance(moves[0].get("finish"), str)


def without_ids(moves: Records) -> Records:
    return [{name: value for name, value in move.items() if name != "id"} for move in moves]


def requests(entries: Sequence[Entry]) -> Iterator[tuple[Decision, RunState]]:
    """Each decision of the model, with its run as it was when the request was made; good until the next one."""
    prefix = RunState(entries[0].run_id)
    asked = 0  # the seq of the last request
    for entry in entries:
        if entry.kind == Kind.PLAN and entry.body.get("moves") is not None and asked:
            for each in entries[prefix.seq : asked]:
                prefix.apply(each)
            prefix.committed_seq = asked
            body = entry.body
            said = body if "response" in body else None
            yield Decision(entry.seq, body["seen"], True, body["moves"], body.get("join", "all"), said=said), prefix
        if entry.kind == Kind.ATTEMPT and entry.step is None:
            asked = entry.seq
