"""What deciding a journal again has found, as it is kept and shown: the same for page, API and command. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypedDict

from journal.encoding import tagged
from journal.entries import Entry
from recovery.models import Purpose
from runs.agents import Agent
from runs.compatibility import Reason, judge
from runs.edits import edited
from runs.redeciding import DECISIONS, Divergence, Redecided, Watch, redecide
from runs.shadow import AskedAgain, ask_again
from runs.state import RunState, fold
from runs.usage import tokens_of

SAME, DIVERGED, INCOMPLETE = "same", "diverged", "incomplete"
MOST_DIVERGENCES = 500
LARGEST = 16_384  # characters of JSON of one recorded or attempted value
BEGINNING = 2_000


class Told(TypedDict):
    """A `runs.redeciding.Divergence`, its values in the journal's tagged form."""

    seq: int
    step: int | None
    kind: str
    effect: bool
    recorded: Any
    attempted: Any
    says: str


class ReasonTold(TypedDict):
    """A `runs.compatibility.Reason`."""

    seq: int | None
    code: str
    says: str
    verdict: str


class ModelTold(TypedDict):
    """What asking the model again has given and cost. Its answers differ by nature: they make no verdict."""

    requests: int
    failed: int
    tokens: float
    cost: float
    usage: dict[str, float]
    divergences: list[Told]


class Result(TypedDict):
    """`verdict`: same, diverged, incomplete (what could be compared is the same); of a pin compatible, fork needed or
    refused. `first`: the seq of the first divergence that the verdict is of. `more`: divergences that are not listed.
    """

    verdict: str
    agent: str
    version: str
    release: str
    code: str
    recorded_release: str
    recorded_code: str
    as_of_seq: int
    compared: int
    of: int
    stopped_at: int | None
    stopped_why: str
    first: int | None
    divergences: list[Told]
    more: int
    reasons: list[ReasonTold]
    calls: int
    model: ModelTold | None


def decided_again(
    agent: Agent,
    entries: Sequence[Entry],
    purpose: str = Purpose.REPLAY,
    *,
    at: int | None = None,
    edits: Sequence[Mapping[str, Any]] = (),
    asks_model: bool = False,
    watch: Watch = lambda seq: None,
    releases: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Result:
    """`entries`: whole, large values loaded. `releases`: as `redecide` takes them. Raises CannotEdit."""
    whole = edited(entries, edits) if edits else list(entries)
    state = fold(whole[0].run_id, whole[:at])
    if purpose == Purpose.PIN:
        judged = judge(agent, whole, watch=watch, releases=releases)
        first = judged.first_divergence
        return told(agent, state, judged.decided, judged.verdict, first.seq if first else None, judged.reasons)
    found = redecide(agent, whole, at=at, watch=watch, releases=releases)
    counting = [each for each in found.divergences if counts(each.kind, each.effect, purpose)]
    verdict = DIVERGED if counting else INCOMPLETE if found.stopped_at is not None else SAME
    result = told(agent, state, found, verdict, counting[0].seq if counting else None, ())
    if asks_model:
        result["model"] = model_told(ask_again(agent, whole, at=at, watch=watch))
    return result


def counts(kind: str, effect: bool, purpose: str) -> bool:
    """A fork needs the same decisions; how settled calls would be let through now is only told."""
    return kind in DECISIONS if purpose == Purpose.FORK else effect


def told(
    agent: Agent, state: RunState, found: Redecided, verdict: str, first: int | None, reasons: Sequence[Reason]
) -> Result:
    return Result(
        verdict=verdict,
        agent=agent.name,
        version=agent.version,
        release=agent.release_id,
        code=agent.code_digest,
        recorded_release=state.release_id,
        recorded_code=state.code,
        as_of_seq=found.as_of_seq,
        compared=found.compared,
        of=found.of,
        stopped_at=found.stopped_at,
        stopped_why=found.stopped_why,
        first=first,
        divergences=[divergence_told(each) for each in found.divergences[:MOST_DIVERGENCES]],
        more=max(0, len(found.divergences) - MOST_DIVERGENCES),
        reasons=[
            ReasonTold(seq=each.seq, code=each.code, says=column_text(each.says), verdict=each.verdict)
            for each in reasons[:MOST_DIVERGENCES]
        ],
        calls=sum(slot.kind == "call" and slot.outcome is not None for slot in state.slots.values()),
        model=None,
    )


def divergence_told(each: Divergence) -> Told:
    return Told(
        seq=each.seq, step=each.step, kind=each.kind, effect=each.effect,
        recorded=shown(each.recorded), attempted=shown(each.attempted), says=column_text(each.says),
    )  # fmt: skip


def model_told(asked: AskedAgain) -> ModelTold:
    return ModelTold(
        requests=asked.requests,
        failed=asked.failed,
        tokens=tokens_of(asked.usage),
        cost=asked.usage.get("cost", 0.0),
        usage={column_text(name): amount for name, amount in asked.usage.items()},
        divergences=[divergence_told(each) for each in asked.divergences[:MOST_DIVERGENCES]],
    )


def shown(value: Any) -> Any:
    """In the journal's tagged form, as a JSON column keeps it; what is very large is told by its beginning."""
    plain = column_json(tagged(value))
    text = json.dumps(plain, ensure_ascii=False)
    if len(text) <= LARGEST:
        return plain
    return {"$": "cut", "characters": len(text), "begins": text[:BEGINNING]}


def column_json(value: Any) -> Any:
    match value:
        case str():
            return column_text(value)
        case dict():
            return {column_text(name): column_json(item) for name, item in value.items()}
        case list():
            return [column_json(item) for item in value]
    return value


def column_text(text: str) -> str:
    """PostgreSQL keeps neither U+0000 nor half a character."""
    return text.replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")
