"""When the model of a conversation was told of a signal, as `runs.loops.conversation` tells it. Pure."""

from __future__ import annotations

from bisect import bisect_right

from runs.slots import Decision, Signal
from runs.state import RunState


def answers_of(state: RunState) -> list[Decision]:
    """The answers that a conversation is made of."""
    return [made for made in state.decisions if made.said is not None and isinstance(made.said.get("asked"), int)]


def told_at(signal: Signal, state: RunState) -> int | None:
    """The request (seq of its ATTEMPT) that told the model of it first: one that was answered, or that is open."""
    asked = [made.said["asked"] for made in answers_of(state) if made.said is not None]
    place = bisect_right(asked, signal.seq)
    if place < len(asked):
        return int(asked[place])
    return next((attempt.seq for attempt in state.model_attempts if attempt.seq > signal.seq), None)


def missed_by(seq: int, answers: list[Decision]) -> Decision | None:
    """The answer that was on its way when the signal came, so that it does not know of it."""
    place = bisect_right(answers, seq, key=lambda made: made.seq)
    made = answers[place] if place < len(answers) else None
    return made if made is not None and made.said is not None and made.said["asked"] < seq else None
