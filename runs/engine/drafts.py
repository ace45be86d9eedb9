"""The entries that a worker writes: their bodies, which of them are decisions, which settle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any
from uuid import UUID

from journal.encoding import problems
from journal.entries import Draft, Kind
from runs.agents import Agent
from runs.digests import approval_digest, key_of
from runs.engine.approving import SYSTEM as SYSTEM
from runs.engine.approving import first_request
from runs.mistakes import cannot_keep, unknown_tool
from runs.moves import Ask, Call, Decided, Fail, Finish, Move, Sleep, Spawn, WaitFor, as_record, some
from runs.outcomes import describe
from runs.policies import Policy
from runs.secrets import SecretUnreadable, opened, seals_in
from runs.slots import Control, Slot
from runs.state import MODEL_ACTOR
from runs.tools import Tool
from runs.trees import Newborn

SIBLINGS_AT_ONCE = 16


def decision(seen: int, decided: Decided) -> Draft:
    """A scripted PLAN. Its moves are the entries that follow it."""
    return Draft(Kind.PLAN, {"seen": seen} | said(decided), decision=True)


def answered(seen: int, asked: int, body: dict[str, Any]) -> Draft:
    """The PLAN of a model in a conversation. `asked`: the ATTEMPT that it answers."""
    return Draft(Kind.PLAN, {"seen": seen, "asked": asked} | body, actor=MODEL_ACTOR)


def model_plan(seen: int, decided: Decided, usage: dict[str, Any]) -> Draft:
    """A model's PLAN holds its moves whole: it was paid for, and outlives a refusal of the calls that follow."""
    body = {"seen": seen, "moves": [as_record(move) for move in decided.moves], "usage": usage} | said(decided)
    return Draft(Kind.PLAN, body, actor=MODEL_ACTOR)


def said(decided: Decided) -> dict[str, Any]:
    """What a PLAN holds beside its moves: how they are joined, the agent's plan and thought."""
    body: dict[str, Any] = {} if decided.join == "all" else {"join": decided.join}
    for move in decided.moves:
        if move.plan is not None:
            body["plan"] = list(move.plan)
        if move.thought is not None:
            body["thought"] = move.thought
    return body


def steps(
    agent: Agent,
    run_id: UUID,
    first_step: int,
    moves: Sequence[Move],
    now: datetime,
    children: Mapping[int, Newborn],
    stopped: Callable[[str], bool],
    release: str = "",
    family: bool = False,
) -> list[Draft]:
    """Intents, timers, questions and children for these moves, steps handed out from `first_step`.

    `stopped`: whether a gate stops the tool of this name. `release`: that the run is pinned to. `family`: whether it
    has relatives, whose effects it might repeat.
    """
    drafts: list[Draft] = []
    for step, move in enumerate(moves, first_step):
        match move:
            case Call():
                crowded = step - first_step >= SIBLINGS_AT_ONCE
                first = waits_first(agent.toolbox.get(move.tool), crowded, stopped(move.tool), family)
                drafts += intent(agent, run_id, step, move, first, release, now)
            case Sleep():
                asked = {"seconds": move.seconds} if move.until is None else {"until": move.until}
                drafts.append(_opened(Kind.TIMER, {"verb": "set"} | asked, step, move.due(now)))
            case WaitFor():
                awaited = {"verb": "set", "signal": move.name} | some(timeout=move.timeout)
                drafts.append(_opened(Kind.TIMER, awaited, step, _after(now, move.timeout)))
            case Ask():
                question = {"question": move.question, "schema": move.schema}
                question |= some(options=move.options, timeout=move.timeout)
                drafts.append(_opened(Kind.ASK, question, step, _after(now, move.timeout)))
            case Spawn():
                drafts += spawned(step, move, children[step], family)
    return drafts


def _opened(kind: Kind, body: dict[str, Any], step: int, due: float | None) -> Draft:
    return Draft(kind, body | some(due=due), step=step, decision=True)


def _after(now: datetime, seconds: float | None) -> float | None:
    return None if seconds is None else now.timestamp() + seconds


def spawned(step: int, move: Spawn, child: Newborn, family: bool = False) -> list[Draft]:
    """CHILD, with the failure it is when the child cannot be started. In a family it is started by an entry of its own,
    once the relatives were looked at."""
    body: dict[str, Any] = {
        "verb": "spawned",
        "agent": move.agent,
        "input": move.input if child.input is None else child.input,
        "child": str(child.id) if child.id else None,
        "release": child.release,
    }
    if family and not child.refused:
        body |= {"child": None, "gate": "family"}
    if asked := move.asked:
        body["asked"] = asked
    drafts = [Draft(Kind.CHILD, body, step=step, decision=True)]
    if child.refused:
        drafts.append(child_ended(step, None, {"outcome": "failed", "error": child.refused}, decided=True))
    return drafts


def born(step: int, child: Newborn) -> Draft:
    """The child of a CHILD that was written before the relatives were looked at; or why it cannot be started."""
    if child.refused:
        return child_ended(step, None, {"outcome": "failed", "error": child.refused}, decided=True)
    body = {"verb": "born", "child": str(child.id), "release": child.release}
    return Draft(Kind.CHILD, body, step=step, decision=True)


def child_ended(step: int, child: UUID | None, how: Mapping[str, Any], decided: bool = False) -> Draft:
    """`how`: outcome, and result or error."""
    body = {"verb": "ended", "child": str(child) if child else None, **how}
    return Draft(Kind.CHILD, body, step=step, settles=step, decision=decided)


def answer_expired(step: int) -> Draft:
    return Draft(Kind.ANSWER, {"expired": True}, step=step, settles=step, decision=True, actor=SYSTEM)


def timer_fired(step: int) -> Draft:
    return Draft(Kind.TIMER, {"verb": "fired"}, step=step, decision=True)


def withdrawn(slot: Slot, why: str) -> Draft:
    """What was surely not done, or is not waited for any more. A wait is withdrawn by a decision: a signal or an answer
    that comes before it settles the wait."""
    body = {"outcome": "cancelled", "error": why, "source": "worker"}
    return observation(slot.step, body, decided=slot.kind != "call")


def intent(
    agent: Agent, run_id: UUID, step: int, call: Call, first: str | None, release: str, now: datetime
) -> list[Draft]:
    """TOOL_CALL, with the approval it asks for, or with the failure it is when it cannot be sent at all.

    `first`: what comes before it is sent, if nobody has to approve it.
    """
    tool = agent.toolbox.get(call.tool)
    wrong = faults(agent, call)
    policy: Policy | None = None
    if tool is not None and not wrong:
        try:
            policy = tool.policy_for(deepcopy(call.args))
        except BaseException as error:  # an agent's code, like any other of it
            wrong = [f"whether it needs approval cannot be said: its predicate raised {describe(error)}"]
    gate = "invalid" if wrong else "approval" if policy is not None else None
    digest = approval_digest(tool, call.args, run_id, step) if tool else ""
    body: dict[str, Any] = {
        "tool": call.tool,
        "args": call.args,
        "key": key_of(run_id, step),
        "effect": tool.effect if tool else "",
        "digest": digest,
        "gate": gate or first,
    }
    if call.id is not None:
        body["id"] = call.id
    if tool is not None and not wrong and (summary := tool.summary_of(deepcopy(call.args))) is not None:
        body["summary"] = summary
    drafts = [Draft(Kind.TOOL_CALL, body, step=step, decision=True)]
    if tool is not None and policy is not None:
        drafts.append(first_request(tool, run_id, step, call.args, policy, release, now.timestamp()))
    if wrong:
        drafts.append(observation(step, {"outcome": "failed", "error": "; ".join(wrong), "source": "worker"}, True))
    return drafts


def waits_first(tool: Tool | None, crowded: bool, stopped: bool, family: bool) -> str | None:
    """Why a call is not sent with its TOOL_CALL, though nobody has to approve it."""
    if family and tool is not None and tool.effect != "read":
        return "family"
    if tool is not None and tool.limited:
        return "limit"
    return "gate" if stopped else "siblings" if crowded else None


def faults(agent: Agent, call: Call) -> list[str]:
    """Why this call cannot be sent, one sentence each."""
    tool = agent.toolbox.get(call.tool)
    if tool is None:
        return [unknown_tool(agent.name, call.tool, agent.toolbox)]
    if problems(call.args):
        return cannot_keep(f"{call.tool}: the argument ", call.args)
    try:
        return tool.faults(opened(call.args) if any(seals_in(call.args)) else call.args)
    except SecretUnreadable as error:
        return [str(error)]


def compaction(seen: int, left_out: dict[str, Any]) -> Draft:
    """The decision that a model is not shown everything any more."""
    return Draft(Kind.PLAN, {"seen": seen, "compaction": left_out}, decision=True)


def model_attempt(number: int, told: dict[str, Any]) -> Draft:
    return Draft(Kind.ATTEMPT, {"attempt": number, "source": "model"} | told, decision=True)


def attempt(step: int, number: int, source: str, doubt: bool = False, digest: str | None = None) -> Draft:
    """`digest`: of a call that was approved, what it was approved as."""
    body = {"attempt": number, "source": source} | some(doubt=doubt or None, digest=digest)
    return Draft(Kind.ATTEMPT, body, step=step, decision=True)


def observation(step: int, body: dict[str, Any], decided: bool = False, actor: str = "worker") -> Draft:
    settles = None if body["outcome"] == "unknown" else step
    return Draft(Kind.OBS, body, step=step, settles=settles, decision=decided, actor=actor)


def failure(step: int | None, error: str, due: float, **told: Any) -> Draft:
    """An attempt that surely did not act, and when the next is due (POSIX seconds)."""
    return Draft(Kind.ERROR, {"error": error, "due": due} | some(**told), step=step)


def ending(move: Finish | Fail) -> Draft:
    body = {"result": move.value} if isinstance(move, Finish) else {"error": {"reason": move.reason}}
    return Draft(Kind.DONE, body, decision=True)


def cancelled(cancel: Control) -> Draft:
    """The end of a cancelled run, with the run whose cancel was the cause, if it was another's."""
    body = {"cancelled": cancel.reason} | some(cause=cancel.body.get("cause"))
    return Draft(Kind.DONE, body, decision=True)


def taken_over(epoch: int, taken_from: UUID, session: UUID | None) -> Draft:
    """Never folded: who held the run before, and who holds it now."""
    body = {"text": "taken over", "epoch": epoch, "from": str(taken_from), "session": str(session)}
    return Draft(Kind.NOTE, body, actor=SYSTEM)


def control(verb: str, reason: str, **more: Any) -> Draft:
    return Draft(Kind.CONTROL, {"verb": verb, "reason": reason} | more, actor=SYSTEM)
