"""What a model has been told and has said, in order, recomputed from a run's state. Pure and light.

The journal is the truth, this is never stored: the same entries give the same turns, in whatever process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from runs.loops.compaction import left_out_of, shortened, told_of_left_out
from runs.loops.declared import FINAL_RESULT
from runs.loops.readable import text_of

if TYPE_CHECKING:
    from runs.slots import Decision, Signal, Slot
    from runs.state import RunState

MESSAGE = "message"  # the signal whose text is what a person says in the conversation
NOT_MADE = "This call was not made."
NOT_ENDED = "The run goes on: something came in before it ended."
Outcome = Literal["success", "failed", "denied", "interrupted", "retried"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said. `by`: person, model, tool (what came of a call) or loop (a correction without a call).

    `content`: text; of the model, its stored response. `seq`: the entry that it is told from, `at`: when that was
    written. `id`, `tool`, `outcome`, `step`: of a call's result; `cause` and `attempt`: of a correction; `model`: of an
    answer, which was asked for it.
    """

    by: Literal["person", "model", "tool", "loop"]
    seq: int
    at: datetime
    content: Any
    id: str = ""
    tool: str = ""
    outcome: Outcome = "success"
    step: int | None = None
    cause: str = ""
    attempt: int = 0
    model: str = ""


def turns_of(state: RunState, upto: int | None = None) -> list[Turn]:
    """The conversation; `upto`: only of entries up to this one."""
    last = state.seq if upto is None else upto
    answers = [made for made in state.decisions if made.said is not None and made.seq <= last and is_shown(made.said)]
    left_out, kept = left_out_of(state.compacted, answers)
    signals = [signal for signal in state.signals if signal.seq <= last]
    turns = [Turn("person", 1, state.time_of(1), text_of(state.input))]
    if left_out:
        turns.append(Turn("person", 1, state.time_of(1), told_of_left_out(state, left_out)))
    for made in kept:
        assert made.said is not None
        heard = [signal for signal in signals if signal.seq < made.said["asked"]]
        signals = signals[len(heard) :]
        turns += map(_signal, heard)
        asked = str(made.said.get("asked_model") or "")
        turns.append(Turn("model", made.seq, state.time_of(made.seq), made.said["response"], model=asked))
        turns += _results(state, made, last)
    return turns + [_signal(signal) for signal in signals]


def is_shown(said: dict[str, Any]) -> bool:
    """A refused answer is not: the next model would go on from the refusal."""
    return said.get("finish") != "content_filter" or bool(said.get("moves"))


def calls_in(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls of a stored response, in the model's order; not those that the provider ran itself."""
    return (part for part in response["parts"] if part.get("part_kind") == "tool-call")


def is_paused(response: dict[str, Any]) -> bool:
    """Whether the provider has stopped in the middle of an answer and wants to be asked to go on."""
    return response.get("state") == "suspended"


def _signal(signal: Signal) -> Turn:
    plain = signal.name == MESSAGE and isinstance(signal.payload, str)
    text = text_of(signal.payload) if plain else f"Signal {text_of(signal.name)}: {text_of(signal.payload)}"
    return Turn("person", signal.seq, signal.at, text)


def _results(state: RunState, made: Decision, last: int) -> Iterator[Turn]:
    """What came of each call, in the order of the calls, whatever came first."""
    assert made.said is not None
    replies = {reply["id"]: reply for reply in made.said.get("replies", ())}
    slots = {state.slots[step].id: state.slots[step] for step in made.steps}
    at = state.time_of(made.seq)
    for call in calls_in(made.said["response"]):
        id, tool = call["tool_call_id"], call["tool_name"]
        slot = slots.get(id)
        if id in replies:
            yield _reply(replies[id], made.seq, at)
        elif slot is None and ((made is state.decisions[-1] and state.done is not None) or "digest" in made.said):
            continue  # it ended the run; or it is an agent's of another library, which alone knows what it made of it
        elif slot is None:
            said = NOT_ENDED if tool == FINAL_RESULT else NOT_MADE
            yield Turn("tool", made.seq, at, said, id, tool, "interrupted")
        elif slot.obs_seq is not None and slot.obs_seq <= last:
            result = _result(slot, id)
            yield shortened(state.compacted, made, result)
    if (feedback := made.said.get("feedback")) is not None:
        yield Turn("loop", made.seq, at, text_of(feedback), cause="output", attempt=made.said.get("correction", 1))


def _reply(reply: dict[str, Any], seq: int, at: datetime) -> Turn:
    outcome: Outcome = "retried" if reply["outcome"] == "retried" else "success"
    return Turn(
        "tool", seq, at, text_of(reply["content"]), reply["id"], reply["tool"], outcome,
        cause=reply.get("cause", ""), attempt=reply.get("attempt", 0),
    )  # fmt: skip


def _result(slot: Slot, id: str) -> Turn:
    outcome, content = _told(slot)
    if slot.edited is not None:
        content = f"A person changed the arguments to {text_of(slot.edited.args)}. {content}"
    assert slot.obs_seq is not None and slot.obs_at is not None
    return Turn("tool", slot.obs_seq, slot.obs_at, content, id, slot.tool, outcome, slot.step)


def _told(slot: Slot) -> tuple[Outcome, str]:
    error = text_of(slot.error or "")
    match slot.outcome:
        case "succeeded":
            return "success", text_of(slot.result)
        case "denied":
            return "denied", f"A person refused this call. Reason: {error or 'none was given'}"
        case "expired":
            return "interrupted", f"Nobody approved this call in time, so it was not made. {error}".strip()
        case "cancelled":
            return "interrupted", f"This call was withdrawn and not made. {error}".strip()
        case _:
            return "failed", error or "It failed."
