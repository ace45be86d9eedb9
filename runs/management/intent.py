"""One intent as somebody signs for it: everything that binds the decision, nothing shortened."""

from __future__ import annotations

from collections.abc import Iterator

from journal.encoding import canonical
from runs.errors import IntentNotFound
from runs.models import Run
from runs.queries import state_of
from runs.slots import Slot
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
    yield "args", canonical(slot.args).decode()
    yield "key", slot.key
    yield "digest", digest_of(slot)
    for attempt in slot.attempts:
        said = attempt.error or ("no answer that says anything" if attempt.unknown_at else "no answer")
        yield f"send {attempt.number}", f"{attempt.at:%Y-%m-%d %H:%M:%S} UTC, {attempt.source}: {said}"
