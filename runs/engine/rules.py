"""What happens next to an unsettled step: one pure function, live and on resume alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.short_ids import short_id
from runs.slots import Slot
from runs.tools import Retry, Tool

UNDECIDED_LIMIT = 3
PROBE_BACKOFF = Retry(backoff=2.0)


@dataclass(frozen=True, slots=True)
class Send:
    """Commit an ATTEMPT, then call the tool. `doubt`: an earlier one may have acted; the key makes this one safe."""

    source: str
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the tool by key whether the effect was done."""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Not before this time (POSIX seconds); None: not before something comes from outside."""

    at: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Fire:
    """The timer is due: the sleep is over, or nothing came in time."""


@dataclass(frozen=True, slots=True)
class Join:
    """The child has ended."""

    how: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RequestApproval:
    """The approval on record, if any, is for something else than what would run now."""


@dataclass(frozen=True, slots=True)
class AwaitPerson:
    """A person has to approve, or to say what happened."""

    status: str
    why: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """It was surely not done, or is not waited for any more: settle it as cancelled."""

    why: str = "the run was cancelled"


Act = Send | Ask | WaitUntil | Fire | Join | RequestApproval | AwaitPerson | Withdraw


@dataclass(frozen=True, slots=True)
class Moment:
    """What the rules know beside the journal. Times in POSIX seconds of the database's clock."""

    now: float
    taken_over_at: float | None
    cancelling: bool


def next_wait(slot: Slot, moment: Moment, over: bool, ended: Mapping[str, Any] | None) -> Act:
    """A sleep, a wait for a signal, a question, a child. `over`: another move of the same First has succeeded.

    `ended`: how the child ended, once it has.
    """
    if slot.kind == "child":
        if ended is not None:
            return Join(ended)
        if over:
            return Withdraw("another came first")
        if slot.child is None:
            return Join({"outcome": "failed", "error": "it was never started"})
        child = f"its child {slot.tool} {short_id(slot.child)}"
        cancelling = f"is being cancelled, once {child} has ended"
        return WaitUntil(None, cancelling if moment.cancelling else f"waits for {child}")
    if over or moment.cancelling:
        return Withdraw("another came first" if over else "the run was cancelled")
    if slot.due is not None and slot.due <= moment.now:
        return Fire()
    return WaitUntil(slot.due, waits_for(slot))


def waits_for(slot: Slot) -> str:
    match slot.kind:
        case "signal":
            return f"waits for the signal {slot.signal}"
        case "ask":
            return f"asks: {slot.body['question']}"
        case _:
            return "sleeping"


def next_act(slot: Slot, tool: Tool, digest: str, moment: Moment, absent: bool = False) -> Act:
    """A call. `digest`: what an approval would be bound to if it were asked for now.

    `absent`: a probe has just said that the last attempt did not act.
    """
    if slot.in_doubt and not absent:
        return settle_doubt(slot, tool, moment)
    if moment.cancelling:
        return Withdraw()
    if slot.gate == "approval":
        approval = slot.approval
        if approval is None or (approval.verdict == "granted" and approval.digest != digest):
            return RequestApproval()
        if approval.verdict == "requested":
            if approval.digest != digest:
                return RequestApproval()
            anew = ", anew: the tool has changed since the call was decided" if approval.digest != slot.digest else ""
            return AwaitPerson("awaiting_approval", f"{slot.tool} (step {slot.step}) waits for approval{anew}")
    if not slot.attempts:
        return Send("approval" if slot.gate == "approval" else "worker")
    if absent:
        return Send("resume")
    if slot.cleared:
        return Send("operator")
    last = slot.attempts[-1]
    if last.due is not None and last.due > moment.now and not last.hurried:
        return WaitUntil(last.due, f"{slot.tool} (step {slot.step}) is tried again")
    return Send("retry")


def settle_doubt(slot: Slot, tool: Tool, moment: Moment) -> Act:
    """The effect classes' rules for an intent whose last attempt may or may not have acted."""
    if slot.probe_asked and tool.probe is not None:
        return Ask()
    match tool.effect:
        case "read":
            return Withdraw() if moment.cancelling else again(slot, tool, moment)
        case "keyed":
            return settle_keyed(slot, tool, moment)
        case "probed":
            return settle_probed(slot, tool, moment)
        case _:
            return unknown(slot, "nobody can be asked")


def settle_keyed(slot: Slot, tool: Tool, moment: Moment) -> Act:
    if tool.probe is not None and slot.undecided < UNDECIDED_LIMIT:
        return probe(slot, moment)
    if moment.cancelling:
        return unknown(slot, "the run is being cancelled, so it is not sent again to find out")
    if slot.attempts[-1].refused:
        return unknown(slot, "it was refused when it was sent again, which says nothing of the attempt before")
    if moment.now - slot.attempts[0].at.timestamp() >= tool.key_ttl:
        return unknown(slot, "the key may be forgotten by now")
    return again(slot, tool, moment)


def settle_probed(slot: Slot, tool: Tool, moment: Moment) -> Act:
    last = slot.attempts[-1].at.timestamp()
    landed = max(last, moment.taken_over_at or 0.0) + tool.max_in_flight
    if landed > moment.now:
        return WaitUntil(landed, f"{slot.tool} (step {slot.step}) may still be under way")
    if slot.undecided >= UNDECIDED_LIMIT:
        return unknown(slot, f"the tool could not say in {UNDECIDED_LIMIT} tries")
    return probe(slot, moment)


def probe(slot: Slot, moment: Moment) -> Act:
    if slot.undecided_at is not None:
        due = slot.undecided_at.timestamp() + PROBE_BACKOFF.wait(slot.undecided, slot.key)
        if due > moment.now:
            return WaitUntil(due, f"{slot.tool} (step {slot.step}) is asked again")
    return Ask()


def again(slot: Slot, tool: Tool, moment: Moment) -> Act:
    """Send again under the same key: at once after a crash, with backoff after an answer that said nothing."""
    last, doubt = slot.attempts[-1], tool.effect == "keyed"
    if last.hurried or (last.unknown_at is None and last.due is None):
        return Send("resume", doubt)
    due = last.due or 0.0
    if last.unknown_at is not None:
        due = last.unknown_at.timestamp() + tool.retry.wait(last.number, slot.key)
    if due <= moment.now:
        return Send("retry", doubt)
    return WaitUntil(due, f"{slot.tool} (step {slot.step}) is tried again")


def unknown(slot: Slot, why: str) -> Act:
    return AwaitPerson("needs_reconciliation", f"{slot.tool} (step {slot.step}) may have happened: {why}")
