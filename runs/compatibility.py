"""Whether an open run may go on under another release: judged by its journal, decided again under it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal
from uuid import UUID

from journal.entries import Entry, Kind
from runs.agents import Agent
from runs.compared import done_of
from runs.digests import approval_digest
from runs.erased import ERASED
from runs.let_through import way_of
from runs.loops.declared import ModelLoop
from runs.moves import Call
from runs.redeciding import DECISIONS, Divergence, Redecided, Watch, redecide
from runs.slots import Slot
from runs.state import RunState, fold

Verdict = Literal["compatible", "fork needed", "refused"]
COMPATIBLE: Verdict = "compatible"
FORK_NEEDED: Verdict = "fork needed"
REFUSED: Verdict = "refused"


@dataclass(frozen=True, slots=True)
class Reason:
    """Something that whoever moves the run has to know. `code`: for programs; `says`: in a sentence.

    `verdict`: what it makes of the move; "compatible" for what is only told.
    """

    seq: int | None
    code: str
    says: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """The worst verdict of its reasons. `as_of_seq`: the journal's end when it was judged."""

    verdict: Verdict
    first_divergence: Divergence | None
    reasons: list[Reason]
    as_of_seq: int
    decided: Redecided


def judge(
    agent: Agent,
    entries: Sequence[Entry],
    *,
    watch: Watch = lambda seq: None,
    releases: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Judgement:
    """`entries`: whole, large values loaded. `releases`: as `redecide` takes them.

    refused: the run is over, is another agent's, has a call in doubt, entries that this code cannot read, or an
    unsettled call that could not be made as it is recorded. fork needed: a recorded decision would be another.
    """
    state = fold(entries[0].run_id, entries)
    reasons = list(obstacles(agent, state, entries))
    if any(reason.code in ("agent", "over", "unreadable", "erased") for reason in reasons):
        return Judgement(REFUSED, None, reasons, entries[-1].seq, Redecided(as_of_seq=entries[-1].seq))
    reasons += unsettled(agent, state)
    reasons += unheard(agent, state)
    decided = redecide(agent, entries, watch=watch, releases=releases)
    known = {(reason.seq, reason.code) for reason in reasons}
    reasons += [reason for reason in told_of(decided) if (reason.seq, reason.code) not in known]
    reasons.sort(key=lambda reason: reason.seq or 0)
    first = next((each for each in decided.divergences if each.kind in DECISIONS), None)
    return Judgement(worst(reasons), first, reasons, entries[-1].seq, decided)


def worst(reasons: Sequence[Reason]) -> Verdict:
    verdicts = {reason.verdict for reason in reasons}
    return REFUSED if REFUSED in verdicts else FORK_NEEDED if FORK_NEEDED in verdicts else COMPATIBLE


def obstacles(agent: Agent, state: RunState, entries: Sequence[Entry]) -> Iterator[Reason]:
    """What forbids the move whatever the agent decides."""
    if entries[0].body.get("$") == ERASED:
        yield Reason(1, "erased", "Its START is erased.", REFUSED)
        return
    if state.agent != agent.name:
        yield Reason(1, "agent", f"It is a run of {state.agent}, not of {agent.name}.", REFUSED)
    if agent.durability == "stateless":
        yield Reason(1, "agent", f"{agent.name}@{agent.version} is stateless: it keeps no journal.", REFUSED)
    done = done_of(entries)
    if done is not None:
        yield Reason(done.seq, "over", "The run has ended.", REFUSED)
    for entry in entries:
        if entry.is_beyond:
            yield Reason(entry.seq, "unreadable", f"Its worker cannot read this {entry.kind}.", REFUSED)
            return
        if entry.body.get("$") == ERASED and entry.kind != Kind.NOTE:
            yield Reason(entry.seq, "erased", f"This {entry.kind} is erased.", REFUSED)
            return


def unsettled(agent: Agent, state: RunState) -> Iterator[Reason]:
    """Calls that the target would have to make, or to settle, as they are recorded."""
    for slot in state.open.values():
        if slot.kind == "call":
            yield from open_call(agent, state.run_id, slot)
    for record in state.pending_moves:
        if "call" in record and record["call"] not in agent.toolbox:
            seq = state.decisions[-1].seq
            yield Reason(seq, "missing tool", f"The model has asked for {record['call']}, which is missing.", REFUSED)


def open_call(agent: Agent, run_id: UUID, slot: Slot) -> Iterator[Reason]:
    tool = agent.toolbox.get(slot.tool)
    if slot.in_doubt:
        says = f"The call of {slot.tool} is in doubt: reconcile it first."
        yield Reason(slot.seq, "in doubt", says, REFUSED)
    if tool is None:
        says = f"{slot.tool} is unsettled, and {agent.name}@{agent.version} has no such tool."
        yield Reason(slot.seq, "missing tool", says, REFUSED)
        return
    call = Call(slot.tool, id=slot.id, **slot.args)
    now = way_of(agent, call)
    if "refused" in now:
        says = f"{slot.tool} is unsettled, and does not take its arguments: {now['refused']}."
        yield Reason(slot.seq, "refused arguments", says, REFUSED)
    elif slot.gate != "approval" and now["approval"] is not None:
        says = f"{slot.tool} is unsettled and was recorded without approval, which it needs now: let it settle first."
        yield Reason(slot.seq, "approval needed", says, REFUSED)
    elif slot.approval is not None and slot.approval.digest != approval_digest(tool, slot.args, run_id, slot.step):
        says = f"What was asked or approved of {slot.tool} does not hold any more: approval is asked for anew."
        yield Reason(slot.seq, "approval void", says, COMPATIBLE)


def unheard(agent: Agent, state: RunState) -> Iterator[Reason]:
    """A model loop goes on from what its model has said: answers of which the journal has only the moves are none that
    it could be shown."""
    first = next((made for made in state.decisions if made.by_model and made.said is None), None)
    if isinstance(agent.decide, ModelLoop) and first is not None:
        says = f"{agent.name}@{agent.version} is a model loop, and what the model said here is not in the journal."
        yield Reason(first.seq, "no conversation", says, FORK_NEEDED)


def told_of(decided: Redecided) -> Iterator[Reason]:
    """Other decisions need a fork; changed ways of calls that are settled are told."""
    for each in decided.divergences:
        if each.kind in DECISIONS:
            yield Reason(each.seq, each.kind, each.says, FORK_NEEDED)
        elif each.kind != "text":
            yield Reason(each.seq, each.kind.replace("_", " "), each.says, COMPATIBLE)
        elif each.step is None:
            yield Reason(each.seq, "asked otherwise", each.says, COMPATIBLE)
