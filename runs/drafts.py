"""The entries that a worker writes: their bodies, which of them are decisions, which settle."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any
from uuid import UUID

from journal.encoding import problems
from journal.entries import Draft, Kind
from runs.agents import Agent
from runs.digests import approval_digest, key_of
from runs.moves import Call, Fail, Finish, Move, Sleep, as_record
from runs.outcomes import describe
from runs.state import MODEL_ACTOR

SIBLINGS_AT_ONCE = 16
SYSTEM = "system"


def decision(seen: int, moves: Sequence[Move]) -> Draft:
    """A scripted PLAN. Its moves are the entries that follow it."""
    return Draft(Kind.PLAN, {"seen": seen} | _said(moves), decision=True)


def model_plan(seen: int, moves: Sequence[Move], usage: dict[str, Any]) -> Draft:
    """A model's PLAN holds its moves whole: it was paid for, and outlives a refusal of the calls that follow."""
    body = {"seen": seen, "moves": [as_record(move) for move in moves], "usage": usage} | _said(moves)
    return Draft(Kind.PLAN, body, actor=MODEL_ACTOR)


def _said(moves: Sequence[Move]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for move in moves:
        if move.plan is not None:
            said["plan"] = list(move.plan)
        if move.thought is not None:
            said["thought"] = move.thought
    return said


def steps(agent: Agent, run_id: UUID, first_step: int, moves: Sequence[Move], now: Any) -> list[Draft]:
    """Intents and timers for these moves, steps handed out from `first_step`."""
    drafts: list[Draft] = []
    for step, move in enumerate(moves, first_step):
        if isinstance(move, Call):
            drafts += intent(agent, run_id, step, move, crowded=step - first_step >= SIBLINGS_AT_ONCE)
        elif isinstance(move, Sleep):
            asked = {"seconds": move.seconds} if move.until is None else {"until": move.until}
            drafts.append(Draft(Kind.TIMER, {"verb": "set", "due": move.due(now)} | asked, step=step, decision=True))
    return drafts


def intent(agent: Agent, run_id: UUID, step: int, call: Call, crowded: bool) -> list[Draft]:
    """TOOL_CALL, with the approval it asks for, or with the failure it is when it cannot be sent at all."""
    tool = agent.toolbox.get(call.tool)
    wrong = faults(agent, call)
    asks = False
    if tool is not None and not wrong:
        try:
            asks = tool.needs_approval(deepcopy(call.args))
        except BaseException as error:  # an agent's code, like any other of it
            wrong = [f"whether it needs approval cannot be said: its predicate raised {describe(error)}"]
    gate = "invalid" if wrong else "approval" if asks else None
    digest = approval_digest(tool, call.args, run_id, step) if tool else ""
    body: dict[str, Any] = {
        "tool": call.tool,
        "args": call.args,
        "key": key_of(run_id, step),
        "effect": tool.effect if tool else "",
        "digest": digest,
        "gate": gate or ("siblings" if crowded else None),
    }
    if call.id is not None:
        body["id"] = call.id
    drafts = [Draft(Kind.TOOL_CALL, body, step=step, decision=True)]
    if gate == "approval":
        drafts.append(request_approval(step, digest))
    if wrong:
        drafts.append(observation(step, {"outcome": "failed", "error": "; ".join(wrong), "source": "worker"}, True))
    return drafts


def faults(agent: Agent, call: Call) -> list[str]:
    """Why this call cannot be sent, one sentence each."""
    tool = agent.toolbox.get(call.tool)
    if tool is None:
        return [f"{agent.name} has no tool {call.tool!r}; it has {', '.join(sorted(agent.toolbox)) or 'none'}"]
    lost = problems({"args": call.args}, "call")
    return [f"{path} cannot be journaled: give JSON values, dates, decimals or bytes" for path in lost] or tool.faults(
        call.args
    )


def request_approval(step: int, digest: str) -> Draft:
    return Draft(Kind.APPROVAL, {"verdict": "requested", "digest": digest}, step=step, decision=True, actor=SYSTEM)


def attempt(step: int | None, number: int, source: str) -> Draft:
    return Draft(Kind.ATTEMPT, {"attempt": number, "source": source}, step=step, decision=True)


def observation(step: int, body: dict[str, Any], decided: bool = False, actor: str = "worker") -> Draft:
    settles = None if body["outcome"] == "unknown" else step
    return Draft(Kind.OBS, body, step=step, settles=settles, decision=decided, actor=actor)


def failure(step: int | None, error: str, due: float) -> Draft:
    """An attempt that surely did not act, and when the next is due (POSIX seconds)."""
    return Draft(Kind.ERROR, {"error": error, "due": due}, step=step)


def ending(move: Finish | Fail) -> Draft:
    body = {"result": move.value} if isinstance(move, Finish) else {"error": {"reason": move.reason}}
    return Draft(Kind.DONE, body, decision=True)


def taken_over(epoch: int, taken_from: UUID, session: UUID | None) -> Draft:
    """Never folded: who held the run before, and who holds it now."""
    body = {"text": "taken over", "epoch": epoch, "from": str(taken_from), "session": str(session)}
    return Draft(Kind.NOTE, body, actor=SYSTEM)


def control(verb: str, reason: str, **more: Any) -> Draft:
    return Draft(Kind.CONTROL, {"verb": verb, "reason": reason} | more, actor=SYSTEM)
