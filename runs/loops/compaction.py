"""What a model is not shown any more, once its conversation has become too long: a journaled decision. Pure.

Two levels. "results": what older calls gave is left out, that they were made is not. "turns": older answers are left
out whole, and a list of the calls in them stands in their place, so that no model repeats an effect that it forgot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runs.loops.readable import text_of

if TYPE_CHECKING:
    from runs.loops.conversation import Turn
    from runs.slots import Decision
    from runs.state import RunState

RESULTS, TURNS = "results", "turns"
KEPT = 4  # answers at the end that stay whole
SHORT = 400  # characters: a result that is shorter saves nothing
LONGEST_LINE = 200


def next_compaction(state: RunState, answers: Sequence[Decision], refused: bool) -> dict[str, Any] | None:
    """The next one, or None: nothing more can be left out. `answers`: all in the conversation; `refused`: the provider
    does not take it as it is, so that every bit counts. Each one invalidates the provider's cache: without need it is
    not repeated before some answers have come."""
    now = state.compacted
    since = now["before"] if now is not None else 0
    for kept in (KEPT, 1) if refused else (KEPT,):
        older = answers[:-kept]
        fresh = [made for made in older if made.seq >= since]
        if not older or (fresh and now is not None and not refused and len(fresh) < KEPT):
            continue
        if (now is None or now["level"] == RESULTS) and _long_results(state, fresh):
            return _compaction(answers, len(older), RESULTS, _long_results(state, older))
        if fresh or (now is not None and now["level"] == RESULTS):
            return _compaction(answers, len(older), TURNS, len(older))
    return None


def _compaction(answers: Sequence[Decision], older: int, level: str, left_out: int) -> dict[str, Any]:
    return {"before": answers[older].seq, "level": level, "left_out": left_out, "answered": answers[-1].seq}


def _long_results(state: RunState, answers: Sequence[Decision]) -> int:
    """How many results are worth leaving out."""
    slots = (state.slots[step] for made in answers for step in made.steps)
    return sum(len(text_of(slot.result if slot.error is None else slot.error)) > SHORT for slot in slots)


def left_out_of(
    compacted: dict[str, Any] | None, answers: Sequence[Decision]
) -> tuple[Sequence[Decision], Sequence[Decision]]:
    """Those that are not shown at all, and the others."""
    if compacted is None or compacted["level"] != TURNS:
        return [], answers
    kept = [made for made in answers if made.seq >= compacted["before"]]
    return answers[: len(answers) - len(kept)], kept


def shortened(compacted: dict[str, Any] | None, made: Decision, turn: Turn) -> Turn:
    """A result, or what is shown in its place."""
    if compacted is None or made.seq >= compacted["before"] or len(turn.content) <= SHORT:
        return turn
    return replace(turn, content=f"[left out to save room: {len(turn.content)} characters]")


def told_of_left_out(state: RunState, left_out: Sequence[Decision]) -> str:
    """What stands in the place of whole answers: each call that was made, its outcome, and the plan as it was."""
    lines = ["[Earlier parts of this conversation are left out to save room. These calls were made in them:]"]
    for made in left_out:
        for step in made.steps:
            slot = state.slots[step]
            line = f"{slot.tool} {text_of(slot.args)}: {slot.outcome or 'not settled'}"
            lines.append(f"- {line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + '…'}")
    plans = [made.said["plan"] for made in left_out if made.said is not None and "plan" in made.said]
    if plans:
        lines.append(f"Your plan was: {text_of(plans[-1])}")
    return "\n".join(lines)
