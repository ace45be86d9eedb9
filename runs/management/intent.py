"""One intent as somebody signs for it: everything that binds the decision, nothing shortened."""

from __future__ import annotations

from collections.abc import Iterator

from journal.encoding import canonical
from runs.engine.rules import clock
from runs.errors import IntentNotFound
from runs.models import Run
from runs.queries import state_of
from runs.slots import Approval, Slot
from terminal.screen import Screen, Styled


def intent_of(run: Run, seq: int) -> Slot:
    """Raises IntentNotFound."""
    for slot in state_of(run.id).slots.values():
        if slot.seq == seq and slot.kind == "call":
            return slot
    raise IntentNotFound(f"(seq {seq})")


def digest_of(slot: Slot) -> str:
    """What an approval binds to now."""
    return slot.approval.digest if slot.approval else slot.digest


def tell_intent(screen: Screen, run: Run, slot: Slot) -> None:
    for name, value in facts(run, slot):
        screen.say(Styled(f"{name:<8}", "dim"), value)


def facts(run: Run, slot: Slot) -> Iterator[tuple[str, str]]:
    yield "run", f"{run.id}, {run.release}"
    yield "step", f"{slot.step} (seq {slot.seq}), {slot.state.replace('_', ' ')}"
    yield "tool", f"{slot.tool}, {slot.effect}"
    if slot.summary:
        yield "does", slot.summary
    approval = slot.approval
    if approval is not None and approval.fields is not None:
        yield "fields", canonical(approval.fields).decode()
    yield "args", canonical(slot.args).decode()
    if slot.edited is not None:
        yield "edited", f"by {slot.edited.by}; the agent asked for {canonical(slot.asked_args).decode()}"
    yield "key", slot.key
    yield "digest", digest_of(slot)
    if approval is not None and slot.state == "awaiting_approval":
        yield from waits_for(approval)
    for attempt in slot.attempts:
        said = attempt.error or ("no answer that says anything" if attempt.unknown_at else "no answer")
        yield f"send {attempt.number}", f"{attempt.at:%Y-%m-%d %H:%M:%S} UTC, {attempt.source}: {said}"


def waits_for(approval: Approval) -> Iterator[tuple[str, str]]:
    """Whose approval it waits for, until when, and what was said so far."""
    policy = approval.policy
    eyes = ", four eyes" if policy.four_eyes else ""
    yield "policy", f"{policy.quorum} of {policy.group}{eyes}"
    if approval.granted_by:
        yield "granted", ", ".join(approval.granted_by)
    if approval.why:
        yield "why" if approval.first else "anew", approval.why
    if approval.question is not None:
        yield "asked", f"{approval.question.by}: {approval.question.text}"
    if approval.expires is not None:
        yield "expires", f"{clock(approval.expires)}, then {'denied' if policy.on_expiry == 'deny' else 'parked'}"
