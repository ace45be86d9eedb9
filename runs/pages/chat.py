"""A run as a conversation: who said what in order, what was called and what came of it. Pure, made from the entries.

A turn is an entry that somebody said something by; what settles it later is told in it, so that a turn changes in place
and new ones come at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal.entries import Entry, Kind
from runs.erased import ERASED
from runs.pages.heard import answers_of, missed_by, told_at
from runs.pages.said import Load, Said, said_in
from runs.slots import Attempt, Decision, Signal, Slot
from runs.state import MACHINES, MODEL_ACTOR, RunState

SPOKEN = (Kind.START, Kind.PLAN, Kind.TOOL_CALL, Kind.SIGNAL, Kind.DONE)
OUTCOMES = {  # glyph and word
    "succeeded": ("ok", "Done"), "failed": ("failed", "Failed"), "denied": ("cancelled", "Rejected"),
    "expired": ("waiting", "Expired"), "cancelled": ("cancelled", "Cancelled"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Turn:
    """`kind` picks the partial, `who` (person, model, tool, system) the side. `told`: what its looks were made from."""

    entry: Entry
    kind: str
    who: str
    told: tuple[Any, ...] = ()
    slot: Slot | None = None
    said: Said | None = None
    signal: Signal | None = None
    heard: int | None = None  # of a signal: the request that told the model of it
    glyph: str = ""
    word: str = ""
    then: str = ""  # of a request that failed: the model that was asked next, or ""

    @property
    def seq(self) -> int:
        return self.entry.seq

    @property
    def body(self) -> Mapping[str, Any]:
        return self.entry.body

    @property
    def template(self) -> str:
        return f"runs/chat/{self.kind}.html"


@dataclass(frozen=True, slots=True)
class Chat:
    """`asking`: the model request that has no answer yet."""

    turns: Sequence[Turn]
    asking: Attempt | None


def chat_of(shown: Sequence[Entry], state: RunState, load: Load, *, held: bool) -> Chat:
    """`shown`: a window of the journal. `held`: a live session drives the run, so an open call is under way."""
    signals = {signal.seq: signal for signal in state.signals}
    next_models = models_after(shown)
    turns = [
        turn
        for entry in shown
        if not entry.is_beyond and (turn := turn_of(entry, state, load, signals, next_models, held)) is not None
    ]
    return Chat(as_heard(turns, state), state.model_attempt if state.done is None else None)


def as_heard(turns: Sequence[Turn], state: RunState) -> list[Turn]:
    """What came while an answer was on its way stands behind it and the calls that it made: the model learned of it
    afterwards."""
    answers = answers_of(state)
    found: list[Turn] = []
    late: list[Turn] = []
    missed: Decision | None = None
    for turn in turns:
        by = missed_by(turn.seq, answers) if turn.kind == "signal" else None
        if late and by is not missed and not belongs(turn, missed):
            found, late = [*found, *late], []
        if by is None:
            found.append(turn)
        else:
            late.append(turn)
            missed = by
    return [*found, *late]


def belongs(turn: Turn, made: Decision | None) -> bool:
    """Whether it came before this answer, is it, or is a call that it made."""
    return made is not None and (turn.seq <= made.seq or (turn.slot is not None and turn.slot.decided is made))


def models_after(shown: Sequence[Entry]) -> Mapping[int, str]:
    """By the seq of a request's failure: the model that the next request asked."""
    found: dict[int, str] = {}
    asked = ""
    for entry in reversed(shown):
        if entry.step is None and entry.kind == Kind.ATTEMPT:
            asked = str(entry.body.get("model") or "")
        elif entry.step is None and entry.kind == Kind.ERROR:
            found[entry.seq] = asked
        elif entry.kind == Kind.PLAN:
            asked = ""
    return found


def turn_of(
    entry: Entry,
    state: RunState,
    load: Load,
    signals: Mapping[int, Signal],
    next_models: Mapping[int, str],
    held: bool,
) -> Turn | None:
    slot = state.slots.get(entry.step) if entry.step is not None else None
    if entry.body.get("$") == ERASED:
        return Turn(entry, "erased", "system") if entry.kind in SPOKEN else None
    match entry.kind:
        case Kind.START:
            return Turn(entry, "input", "person")
        case Kind.PLAN if "compaction" in entry.body:
            return Turn(entry, "compacted", "system")
        case Kind.PLAN:
            return decided(entry, load)
        case Kind.ATTEMPT if entry.step is None and entry.body.get("lost"):
            return Turn(entry, "lost", "system")
        case Kind.ERROR if entry.step is None:
            return failed(entry, state, next_models.get(entry.seq, ""))
        case Kind.TOOL_CALL | Kind.ASK | Kind.CHILD | Kind.TIMER if slot is not None and slot.seq == entry.seq:
            return step_turn(entry, slot, state, held)
        case Kind.SIGNAL:
            signal = signals.get(entry.seq)
            heard = told_at(signal, state) if signal is not None else None
            return Turn(entry, "signal", "person", (signal and signal.step, heard), signal=signal, heard=heard)
        case Kind.CONTROL | Kind.PIN:
            return Turn(entry, "control", "system")
        case Kind.NOTE if entry.actor not in MACHINES:
            return Turn(entry, "note", "person")
        case Kind.NOTE if "session" in entry.body:
            return Turn(entry, "taken", "system")
        case Kind.DONE:
            return Turn(entry, "end", "system")
    return None


def decided(entry: Entry, load: Load) -> Turn | None:
    """A script that says nothing is heard by its calls."""
    said = said_in(entry, load)
    by_model = entry.actor == MODEL_ACTOR
    return Turn(entry, "said", "model", said=said) if by_model or not said.empty else None


def failed(entry: Entry, state: RunState, then: str) -> Turn:
    """`then` is said where another model was asked."""
    same = then == str(entry.body.get("model") or "")
    waits = bool(state.model_attempts) and state.model_attempts[-1].error is not None
    last = waits and state.model_attempts[-1].seq < entry.seq and state.done is None
    return Turn(entry, "failed", "system", (then, last), then="" if same else then, word="waits" if last else "")


STEPS = {"call": "call", "ask": "ask", "child": "child", "sleep": "wait", "signal": "wait"}


def step_turn(entry: Entry, slot: Slot, state: RunState, held: bool) -> Turn:
    glyph, word = stands(slot, held, state.done is not None)
    approval = slot.approval
    signed = None if approval is None else (approval.verdict, approval.seq, len(approval.grants), approval.question)
    edited = slot.edited.seq if slot.edited is not None else 0
    last = slot.attempts[-1] if slot.attempts else None
    tries = (len(slot.attempts), last and last.error, last and last.due)
    told = (glyph, word, slot.obs_seq, signed, edited, tries, slot.child)
    who = "tool" if slot.kind in ("call", "child") else "model" if slot.kind == "ask" else "system"
    return Turn(entry, STEPS[slot.kind], who, told, slot=slot, glyph=glyph, word=word)


def stands(slot: Slot, held: bool, ended: bool) -> tuple[str, str]:
    """How a step stands, as a glyph and a word."""
    if slot.outcome is not None:
        return OUTCOMES.get(slot.outcome, ("off", slot.outcome))
    if ended:
        return ("reconcile", "Never answered") if slot.in_doubt else ("off", "Not sent")
    if slot.kind != "call":
        return {"ask": ("approval", "Waits for an answer"), "child": ("running", "Under way")}.get(
            slot.kind, ("waiting", "Waiting")
        )
    match slot.state:
        case "awaiting_approval":
            return "approval", "Waits for approval"
        case "in_doubt":
            return ("running", "Under way") if held else ("reconcile", "No result")
    return "waiting", "Not sent yet" if not slot.attempts else "Tried again"
