"""The worker's part of an approval: what is asked for, under which policy, what expires, who is reminded.

Reminders are NOTEs, which no state is folded from: how many there were is counted beside the fold.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any
from uuid import UUID

from journal.entries import Draft, Entry, Kind
from runs.digests import approval_digest
from runs.engine.rules import Asked, clock, named
from runs.moves import some
from runs.policies import ANY_ONE, Policy
from runs.slots import Repeat, Slot
from runs.tools import Tool

SYSTEM = "system"


def asked_now(slot: Slot, tool: Tool, run_id: UUID, release: str, reminders: int, repeats: bool) -> Asked:
    """What an approval of the call would be bound to if it were asked for now."""
    digest = approval_digest(tool, slot.args, run_id, slot.step)
    return Asked(digest, policy_now(slot, tool), release, reminders, repeats)


def policy_now(slot: Slot, tool: Tool) -> Policy:
    """The tool's for these arguments. Where it asks nobody any more, or its predicate fails, the recorded one stays:
    what has once waited for a person is not sent without one."""
    before = slot.approval.policy if slot.approval is not None else ANY_ONE
    try:
        return tool.policy_for(deepcopy(slot.args)) or before
    except BaseException:  # an agent's code, like any other of it
        return before


def first_request(tool: Tool, run_id: UUID, step: int, args: dict[str, Any], policy: Policy, release: str,
                  now: float) -> Draft:  # fmt: skip
    """`now`: POSIX seconds."""
    return _request(tool, run_id, step, args, policy, release, now)


def request_anew(slot: Slot, tool: Tool, run_id: UUID, release: str, now: float, why: str,
                 repeats: Iterable[Repeat] = ()) -> Draft:  # fmt: skip
    """For the effective arguments. A person's that the tool refuses are dropped, and the request says so."""
    more: dict[str, Any] = some(repeats=[repeat.record for repeat in repeats] or None)
    args = slot.args
    changed = slot.edited if slot.approval is not None and slot.approval.verdict == "edited" else None
    if changed is not None and (wrong := tool.faults(args)):
        args, more = slot.asked_args, more | {"edit": "refused"}
        why = f"the arguments of {changed.by} do not fit ({'; '.join(wrong)}); these are the agent's own again"
    elif slot.edited is not None:
        more |= some(summary=tool.summary_of(deepcopy(args)))
    return _request(tool, run_id, slot.step, args, policy_now(slot, tool), release, now, why=why or None, **more)


def _request(tool: Tool, run_id: UUID, step: int, args: dict[str, Any], policy: Policy, release: str, now: float,
             **more: Any) -> Draft:  # fmt: skip
    body = {"verdict": "requested", "digest": approval_digest(tool, args, run_id, step), "policy": policy.content}
    body |= {"release": release} | some(
        expires=now + policy.ttl if policy.ttl is not None else None, fields=tool.fields_of(args), **more
    )
    return Draft(Kind.APPROVAL, body, step=step, decision=True, actor=SYSTEM)


def expired(slot: Slot, deny: bool) -> list[Draft]:
    """APPROVAL(expired), and for `deny` the outcome that the agent hears."""
    assert slot.approval is not None
    body = {"verdict": "expired", "digest": slot.approval.digest, "on_expiry": "deny" if deny else "park"}
    written = [Draft(Kind.APPROVAL, body, step=slot.step, decision=True, actor=SYSTEM)]
    if deny:
        why = f"nobody approved it in time: it expired at {clock(slot.approval.expires)}"
        seen = {"outcome": "expired", "error": why, "source": "worker"}
        written.append(Draft(Kind.OBS, seen, step=slot.step, settles=slot.step, decision=True))
    return written


def reminder(slot: Slot, number: int) -> Draft:
    """A decision: not written if somebody has decided meanwhile."""
    body = {"text": f"reminder {number}: {named(slot)} waits for approval", "reminder": number}
    return Draft(Kind.NOTE, body, step=slot.step, decision=True, actor=SYSTEM)


def count_reminder(counts: dict[int, int], entry: Entry) -> None:
    """Of the last request of each step. `counts`: by step."""
    if entry.step is None:
        return
    if entry.kind == Kind.NOTE and entry.actor == SYSTEM and "reminder" in entry.body:
        counts[entry.step] = entry.body["reminder"]
    elif entry.kind == Kind.APPROVAL and entry.body.get("verdict") == "requested":
        counts.pop(entry.step, None)
