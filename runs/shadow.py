"""A model asked again at each of its decisions, to see what it would say today. It costs what asking costs. Pure but
for the asking itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from journal.entries import Entry, Kind
from runs.agents import Agent, FunctionModel
from runs.compared import given_moves, shown
from runs.engine.asking import amounts
from runs.engine.calls import finish
from runs.engine.sealing import sealed_moves
from runs.moves import Decided, as_decided
from runs.outcomes import describe
from runs.redeciding import Divergence, Watch, differing
from runs.run_view import RunView
from runs.secrets import struck, struck_text
from runs.slots import Decision
from runs.state import RunState


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
    model = agent.decide
    if not isinstance(model, FunctionModel):
        return asked
    seen = list(entries[:at])
    for made, view in requests(seen):
        watch(made.seq)
        asked.requests += 1
        try:
            moves, usage = finish(model.ask(view))
            attempted = sealed_moves(agent, as_decided(moves))
        except BaseException as error:  # an agent's code, like any other of it
            asked.failed += 1
            says = struck_text(f"Asked again, the model gave no answer: {describe(error)}.")
            asked.divergences.append(Divergence(made.seq, None, "decision", True, struck(made.moves), None, says))
            continue
        for name, amount in amounts(usage).items():
            asked.usage[name] = asked.usage.get(name, 0) + amount
        asked.divergences += compared(made, attempted)
    return asked


def compared(made: Decision, attempted: Decided) -> list[Divergence]:
    recorded, given = list(made.moves or []), given_moves(attempted)
    told = differing(recorded, given, made.join, attempted.join)
    if told is None:
        return []
    kind, says = told
    step = made.steps[0] if made.steps else None
    was, now = struck(shown(recorded, made.join)), struck(shown(given, attempted.join))
    return [Divergence(made.seq, step, kind, True, was, now, struck_text(f"Asked again: {says}"))]


def requests(entries: Sequence[Entry]) -> Iterator[tuple[Decision, RunView]]:
    """Each decision of the model, with its run as it was when the request was made; good until the next one."""
    prefix = RunState(entries[0].run_id)
    asked = 0  # the seq of the last request
    for entry in entries:
        if entry.kind == Kind.PLAN and entry.body.get("moves") is not None and asked:
            for each in entries[prefix.seq : asked]:
                prefix.apply(each)
            prefix.committed_seq = asked
            body = entry.body
            yield Decision(entry.seq, body["seen"], True, body["moves"], body.get("join", "all")), RunView(prefix)
        if entry.kind == Kind.ATTEMPT and entry.step is None:
            asked = entry.seq
