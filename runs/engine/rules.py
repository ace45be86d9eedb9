"""What happens next to an unsettled step: one pure function, live and on resume alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Any

from runs.policies import Policy
from runs.short_ids import short_id
from runs.slots import Approval, Repeat, Slot, repeats_in_words
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
    """The approval on record, if any, is for something else than what would run now; `why`, in words.

    `repeats`: what relatives have done, or are about to, that is the same.
    """

    why: str = ""
    repeats: tuple[Repeat, ...] = ()


@dataclass(frozen=True, slots=True)
class Expire:
    """Nobody approved it in time. `deny`: the agent hears so; else somebody may ask for it anew."""

    deny: bool


@dataclass(frozen=True, slots=True)
class Remind:
    """It still waits for approval, for the `number`th time that somebody is to be told so."""

    number: int


@dataclass(frozen=True, slots=True)
class AwaitPerson:
    """A person has to approve, or to say what happened. `at`: when something is to be done all the same (POSIX)."""

    status: str
    why: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Bear:
    """Start the child."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A person has to resume the run before this step goes on; `repeats`: what relatives have started, the same."""

    why: str
    repeats: tuple[Repeat, ...]


@dataclass(frozen=True, slots=True)
class Withdraw:
    """It was surely not done, or is not waited for any more: settle it as cancelled."""

    why: str = "the run was cancelled"


Act = Send | Ask | WaitUntil | Fire | Join | RequestApproval | Expire | Remind | AwaitPerson | Bear | Hold | Withdraw


@dataclass(frozen=True, slots=True)
class Moment:
    """What the rules know beside the journal. Times in POSIX seconds of the database's clock."""

    now: float
    taken_over_at: float | None
    cancelling: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What an approval would be bound to if it were asked for now. `repeats`: it was asked for by this very slice, so
    that a tool that says something else each time cannot keep it going."""

    digest: str
    policy: Policy
    release: str
    reminders: int = 0
    repeats: bool = False


def next_wait(slot: Slot, moment: Moment, over: bool, ended: Mapping[str, Any] | None) -> Act:
    """A sleep, a wait for a signal, a question, a child. `over`: another move of the same First has succeeded.

    `ended`: how the child ended, once it has.
    """
    if slot.kind == "child":
        if ended is not None:
            return Join(ended)
        if over:
            return Withdraw("another came first")
        if slot.unborn:
            return Withdraw() if moment.cancelling else Bear()
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


def next_act(slot: Slot, tool: Tool, asked: Asked | None, moment: Moment, absent: bool = False) -> Act:
    """A call. `asked`: of one that needs approval, what that would be bound to now.

    `absent`: a probe has just said that the last attempt did not act.
    """
    doubtful = slot.in_doubt and not absent
    if not doubtful and moment.cancelling:
        return Withdraw()
    act = settle_doubt(slot, tool, moment) if doubtful else next_send(slot, tool, moment, absent)
    if asked is None or not isinstance(act, Send):
        return act
    missing = missing_approval(slot, asked, moment)
    if missing is not None and doubtful:  # nobody can approve or deny what may have happened
        why = missing.why if isinstance(missing, RequestApproval) else ""
        return unknown(slot, why or "it is not approved any more")
    return missing or act


def next_send(slot: Slot, tool: Tool, moment: Moment, absent: bool) -> Act:
    """Of a call whose last attempt, if there was one, surely did not act."""
    if not slot.attempts:
        return Send("approval" if slot.gate == "approval" or slot.approval is not None else "worker")
    if absent:
        return Send("resume")
    if slot.cleared:
        return execute_again(slot, tool, moment)
    last = slot.attempts[-1]
    if last.due is not None and last.due > moment.now and not last.hurried:
        return WaitUntil(last.due, f"{named(slot)} is tried again")
    return Send("approval" if slot.absent else "retry")


def execute_again(slot: Slot, tool: Tool, moment: Moment) -> Act:
    """Somebody says that it never happened. Whoever looked may have looked too early: the request can be on its way for
    as long as `max_in_flight`. A read does no harm twice, and a key that is remembered makes a second request safe."""
    remembers = moment.now - slot.attempts[0].at.timestamp() < tool.key_ttl
    if tool.effect == "read" or (tool.effect == "keyed" and remembers):
        return Send("operator")
    landed = slot.attempts[-1].at.timestamp() + tool.max_in_flight
    if landed > moment.now:
        return WaitUntil(landed, f"{named(slot)} may still be under way: its next send waits")
    return Send("operator")


def missing_approval(slot: Slot, asked: Asked, moment: Moment) -> Act | None:
    """What has to come before the call may be sent; None: it is approved, and for this."""
    approval = slot.approval
    if approval is None:
        return RequestApproval()
    match approval.verdict:
        case "requested":
            return undecided(slot, approval, asked, moment)
        case "granted":
            why = differs(slot, approval, asked, moment)
            return RequestApproval(why) if why else None
        case "edited":
            return RequestApproval(f"{approval.actor} changed the arguments")
        case "expired":
            if approval.renew is not None:
                return RequestApproval(f"it expired, and {approval.renew.actor} asked for it anew")
            why = f"{named(slot)} was not approved in time: it expired at {clock(approval.expires)}"
            return AwaitPerson("awaiting_approval", f"{why}; a retry asks for it anew")
        case other:
            return RequestApproval(f"its approval was {other}")


def undecided(slot: Slot, approval: Approval, asked: Asked, moment: Moment) -> Act:
    if approval.digest != asked.digest and not asked.repeats:
        return RequestApproval("the tool has changed since it was asked for")
    if approval.release and approval.release != asked.release and not asked.repeats:
        return RequestApproval("the run was pinned to another release since it was asked for")
    if approval.expires is not None and approval.expires <= moment.now:
        return Expire(approval.policy.on_expiry == "deny")
    due, every = approval.expires, approval.policy.remind_every
    if every is not None and approval.requested_at is not None:
        began = approval.requested_at.timestamp()
        if (number := int((moment.now - began) // every)) > asked.reminders:
            return Remind(number)
        due = min(began + (asked.reminders + 1) * every, due if due is not None else inf)
    return AwaitPerson("awaiting_approval", waits_for_approval(slot, approval), due)


def differs(slot: Slot, approval: Approval, asked: Asked, moment: Moment) -> str:
    """Why a grant does not hold for what would run now; an empty text: it does. One that was used does not expire."""
    if approval.digest != asked.digest:
        return "the arguments or the tool have changed since it was approved"
    if approval.policy != asked.policy:
        return "its policy has changed since it was approved"
    if approval.release and approval.release != asked.release:
        return "the run was pinned to another release since it was approved"
    used = bool(slot.attempts) and slot.attempts[-1].seq > approval.seq
    if approval.expires is not None and approval.expires <= moment.now and not used:
        return f"the approval expired at {clock(approval.expires)}, before the call could be sent"
    return ""


def waits_for_approval(slot: Slot, approval: Approval) -> str:
    said = f"{named(slot)} waits for approval"
    if approval.why:
        said += f"{'' if approval.first else ', anew'}: {approval.why}"
    elif approval.repeats:
        said += f": it is {repeats_in_words(approval.repeats)}"
    if approval.question is not None:
        return f"{said}: {approval.question.by} asks something first"
    if approval.grants and approval.policy.quorum > 1:
        return f"{said} ({len(approval.grants)} of {approval.policy.quorum} have approved)"
    return said


def named(slot: Slot) -> str:
    return f"{slot.tool} (step {slot.step})"


def clock(at: float | None) -> str:
    return datetime.fromtimestamp(at or 0.0, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


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
        return WaitUntil(landed, f"{named(slot)} may still be under way")
    if slot.undecided >= UNDECIDED_LIMIT:
        return unknown(slot, f"the tool could not say in {UNDECIDED_LIMIT} tries")
    return probe(slot, moment)


def probe(slot: Slot, moment: Moment) -> Act:
    if slot.undecided_at is not None:
        due = slot.undecided_at.timestamp() + PROBE_BACKOFF.wait(slot.undecided, slot.key)
        if due > moment.now:
            return WaitUntil(due, f"{named(slot)} is asked again")
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
    return WaitUntil(due, f"{named(slot)} is tried again")


def unknown(slot: Slot, why: str) -> Act:
    return AwaitPerson("needs_reconciliation", f"{named(slot)} may have happened: {why}")
