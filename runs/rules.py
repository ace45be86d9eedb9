"""What happens next to an unsettled step: one pure function, live and on resume alike."""

from __future__ import annotations

from dataclasses import dataclass

from runs.state import Slot
from runs.tools import Retry, Tool

UNDECIDED_LIMIT = 3
PROBE_BACKOFF = Retry(backoff=2.0)


@dataclass(frozen=True, slots=True)
class Send:
    """Commit an ATTEMPT, then call the tool."""

    source: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the tool by key whether the effect was done."""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Not before this time (POSIX seconds)."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Fire:
    """The timer is due."""


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
    """The run is being cancelled and this was surely not done: settle it as cancelled."""


Act = Send | Ask | WaitUntil | Fire | RequestApproval | AwaitPerson | Withdraw


@dataclass(frozen=True, slots=True)
class Moment:
    """What the rules know beside the journal. Times in POSIX seconds of the database's clock."""

    now: float
    taken_over_at: float | None
    cancelling: bool


def next_act(slot: Slot, tool: Tool | None, digest: str, moment: Moment, absent: bool = False) -> Act:
    """`digest`: what an approval would be bound to if it were asked for now. `tool` is None for a sleep.

    `absent`: a probe has just said that the last attempt did not act.
    """
    if slot.kind == "sleep":
        if moment.cancelling:
            return Withdraw()
        due = float(slot.body["due"])
        return Fire() if due <= moment.now else WaitUntil(due, "sleeping")
    assert tool is not None
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
            return AwaitPerson("awaiting_approval", f"{slot.tool} (step {slot.step}) waits for approval")
    if not slot.attempts:
        return Send("approval" if slot.gate == "approval" else "worker")
    if absent:
        return Send("resume")
    if slot.cleared:
        return Send("operator")
    last = slot.attempts[-1]
    if last.due is not None and last.due > moment.now:
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
    last = slot.attempts[-1]
    if last.unknown_at is None:
        return Send("resume")
    due = last.unknown_at.timestamp() + tool.retry.wait(last.number, slot.key)
    return Send("retry") if due <= moment.now else WaitUntil(due, f"{slot.tool} (step {slot.step}) is tried again")


def unknown(slot: Slot, why: str) -> Act:
    return AwaitPerson("needs_reconciliation", f"{slot.tool} (step {slot.step}) may have happened: {why}")
