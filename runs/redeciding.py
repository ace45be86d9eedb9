"""A journal decided again without any effect, and told beside what is recorded. Pure.

What an agent decides is compared decision by decision, each made from the journal as it was then. A flow goes on with
the recorded results for as long as its moves have the same shape. What a model said is used and not asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Literal

from journal.entries import Entry, Kind
from journal.tags import Sealed
from runs.agents import Agent
from runs.asked_otherwise import asked_otherwise
from runs.compared import (
    Diverged,
    Records,
    alike,
    end_of,
    given_moves,
    recorded_end,
    recorded_moves,
    same_decision,
    same_end,
    shown,
)
from runs.engine import drafts
from runs.engine.drivers import driver_for
from runs.erased import ERASED
from runs.let_through import changed_way, way_of, way_recorded
from runs.loops.declared import ModelLoop
from runs.mistakes import difference, unknown_tool
from runs.moves import Call, Decided
from runs.secrets import SecretUnreadable, opened, struck, struck_text
from runs.slots import Decision, Slot
from runs.state import RunState, fold

Sort = Literal["decision", "arguments", "gate", "end", "missing_tool", "refused_arguments", "text"]
DECISIONS: frozenset[str] = frozenset({"decision", "arguments", "end"})  # what the agent's own code decides
SAID = ("plan", "thought")


@dataclass(frozen=True, slots=True)
class Divergence:
    """One thing that is decided otherwise now. `seq`: of the entry that recorded it; `step`: of its first move.

    `effect`: whether more than words would be other. `says`: in a sentence, for people.
    """

    seq: int
    step: int | None
    kind: Sort
    effect: bool
    recorded: Any
    attempted: Any
    says: str


@dataclass(slots=True)
class Redecided:
    """`compared` of `of` recorded decisions, the end among them, were made again. `stopped_at`: the entry at which
    it could not go on, with `stopped_why`."""

    divergences: list[Divergence] = field(default_factory=list)
    compared: int = 0
    of: int = 0
    stopped_at: int | None = None
    stopped_why: str = ""
    as_of_seq: int = 0

    @property
    def diverged(self) -> bool:
        """Whether more than words differ."""
        return any(divergence.effect for divergence in self.divergences)

    @property
    def first(self) -> Divergence | None:
        """The first in which more than words differ."""
        return next((divergence for divergence in self.divergences if divergence.effect), None)


class Stopped(Exception):
    """A flow cannot go on: the recorded results are those of other moves."""


Watch = Callable[[int], None]


def redecide(
    agent: Agent,
    entries: Sequence[Entry],
    *,
    at: int | None = None,
    watch: Watch = lambda seq: None,
    releases: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Redecided:
    """Decide a journal again. `entries`: whole, large values loaded; `at`: the last entry that is looked at.
    `releases`: contents by id of those that the run was pinned to, to tell whether its model would be asked otherwise.

    `watch` hears of each decision before the agent's code makes it, by the seq of what recorded it. Whatever that code
    raises is its decision, as it is for a worker; that it may not return is its caller's care.
    """
    whole = list(entries)
    seen, stopped_at, why = readable(whole, at)
    found = Redecided(stopped_at=stopped_at, stopped_why=why, as_of_seq=whole[-1].seq if at is None else at)
    state = fold(whole[0].run_id, seen)
    drop_incomplete(state, whole)
    found.of = count(state, seen) if stopped_at is None else count(fold(whole[0].run_id, whole[:at]), whole[:at])
    if not seen:
        return found
    told = Telling(agent, state, seen, watch, found)
    try:
        driver_for(agent, state, seen, told).decide_again(state, seen)
    except Stopped:
        pass
    except Diverged as other:  # an agent of another library is replayed whole: behind this nothing can be compared
        told.stops(other)
    if isinstance(agent.decide, ModelLoop):
        told.otherwise(releases)
    return told.whole()


def count(state: RunState, entries: Sequence[Entry]) -> int:
    """The decisions that are recorded, the end among them."""
    return sum(bool(made.steps) for made in state.decisions) + (end_of(entries) is not None)


def readable(entries: Sequence[Entry], at: int | None) -> tuple[list[Entry], int | None, str]:
    """The entries that can be decided from; and at which one that ends before `at`, and why."""
    for entry in entries[:at]:
        if entry.is_beyond:
            return list(entries[: entry.seq - 1]), entry.seq, f"this code cannot read the {entry.kind} there"
        if entry.body.get("$") == ERASED and entry.kind != Kind.NOTE:
            return list(entries[: entry.seq - 1]), entry.seq, f"the {entry.kind} there is erased"
    return list(entries[:at]), None, ""


def drop_incomplete(state: RunState, entries: Sequence[Entry]) -> None:
    """A decision of which a part is cut off, as by a cut through its append, is no decision yet."""
    last = state.decisions[-1] if state.decisions else None
    if last is None or not last.steps or state.seq >= len(entries):
        return
    if cuts(state.slots[last.steps[-1]], entries[state.seq], entries):
        state.decisions.pop()
        for step in last.steps:
            del state.slots[step]
            state.open.pop(step, None)


def cuts(last: Slot, following: Entry, entries: Sequence[Entry]) -> bool:
    """Whether another step of the same decision comes behind the cut: one append has one time, and no other PLAN."""
    for entry in entries[following.seq - 1 :]:
        if entry.recorded_at != last.at or entry.kind in (Kind.PLAN, Kind.DONE):
            return False
        if entry.step is not None and entry.step > last.step:
            return True
    return False


class Telling:
    """A judge that goes on behind a difference, and tells of each."""

    def __init__(self, agent: Agent, state: RunState, entries: Sequence[Entry], watch: Watch, found: Redecided) -> None:
        self.agent, self.state, self.entries, self.watch, self.found = agent, state, entries, watch, found
        self.asked: dict[int, Call] = {}  # calls that are decided now, by the step that records them

    def begins(self, seq: int) -> None:
        self.watch(seq)

    def decision(self, made: Decision, slots: Mapping[int, Slot], attempted: Decided) -> None:
        self.found.compared += 1
        recorded, given = recorded_moves(made, slots), given_moves(attempted)
        if not same_decision(recorded, given, made.join, attempted.join):
            given = [readable_beside(one, other) for one, other in zip_longest(recorded, given) if other is not None]
        first = slots[made.steps[0]]
        same_shape = made.join == attempted.join and same_shapes(recorded, given)
        if same_shape:
            self.asked |= {
                step: move
                for step, move in zip(made.steps, attempted.moves, strict=True)
                if isinstance(move, Call) and isinstance(move.args, Mapping)
            }
        if same_shape and made.join == "all":
            self._arguments(made, slots, recorded, given)
        elif (other := differing(recorded, given, made.join, attempted.join)) is not None:
            kind, says = other
            self._add(first.seq, first.step, kind, shown(recorded, made.join), shown(given, attempted.join),
                      says if given else no_moves(made))  # fmt: skip
        if same_shape:
            self._text(made, attempted, all(map(alike, recorded, given)))
        elif self.agent.flow is not None:
            self.found.stopped_at = first.seq
            self.found.stopped_why = "the flow makes other moves here; what follows answers the recorded ones"
            raise Stopped

    def _arguments(self, made: Decision, slots: Mapping[int, Slot], recorded: Records, given: Records) -> None:
        """Moves of the same shape, one by one."""
        for step, one, other in zip(made.steps, recorded, given, strict=True):
            if not alike(one, other):
                says = sentence([one], [other], "all", "all")
                self._add(slots[step].seq, step, "arguments", [one], [other], says)

    def end(self, done: Entry, attempted: Decided) -> None:
        self.found.compared += 1
        recorded, given = recorded_end(done), given_moves(attempted)
        if not same_end(recorded, given):
            given = [readable_beside(recorded, move) for move in given]
        if not same_end(recorded, given):
            said = sentence([recorded], given, "all", "all") if given else "The flow does not come to its end any more."
            self._add(done.seq, None, "end", [recorded], given, f"The run would end otherwise. {said}")

    def stops(self, other: Diverged) -> None:
        says = f"The agent's code asks for something else here: {difference(other.recorded, other.attempted)}."
        self.found.stopped_at, self.found.stopped_why = other.seq, "what follows answers what was asked for then"
        self._add(other.seq, None, "decision", other.recorded, other.attempted, says)

    def _text(self, made: Decision, attempted: Decided, same: bool) -> None:
        """Other words, for the same moves or not. What is recorded of a model's is what it said."""
        if made.by_model:
            return
        recorded = {name: self.entries[made.seq - 1].body.get(name) for name in SAID}
        given = drafts.said(attempted)
        now = {name: given.get(name) for name in SAID}
        if not alike(recorded, now):
            names = [name for name in SAID if recorded[name] != now[name]] or ["plan"]
            which = f"the {' and the '.join(names)} differ{'s' if len(names) == 1 else ''}"
            says = f"The same moves; {which}." if same else f"{which.capitalize()} too."
            self._add(made.seq, made.steps[0], "text", some(recorded), some(now), says)

    def diverged(self, other: Diverged) -> None:
        """The agent's code asks for something else than is recorded there."""
        slot = next((slot for slot in self.state.slots.values() if slot.seq == other.seq), None)
        says = f"The code asks for something else here: {difference(other.recorded, other.attempted)}."
        self._add(other.seq, slot.step if slot else None, "decision", other.recorded, other.attempted, says)
        self.found.stopped_at, self.found.stopped_why = other.seq, "its code goes another way from here on"

    def otherwise(self, releases: Mapping[str, Mapping[str, Any]]) -> None:
        """A request under another release is another request; what was answered to the recorded one stands."""
        found = asked_otherwise(self.agent.content, self.agent.release_id, releases, self.entries)
        if found is not None:
            seq, what = found
            self._add(seq, None, "text", None, None, f"The model would be asked otherwise from here on: {what}.")

    # -- how calls would be let through -------------------------------------------------------------------------------

    def whole(self) -> Redecided:
        """With what has become of the calls' tools, in the journal's order."""
        for slot in self.state.slots.values():
            if slot.kind == "call":
                self._call(slot)
        self.found.divergences.sort(key=lambda divergence: divergence.seq)
        return self.found

    def _call(self, slot: Slot) -> None:
        tool = self.agent.toolbox.get(slot.tool)
        if tool is None:
            if slot.gate != "invalid":
                said = unknown_tool(f"{self.agent.name}@{self.agent.version}", slot.tool, self.agent.toolbox)
                self._add(slot.seq, slot.step, "missing_tool", [slot.recorded], None, f"{said}.")
            return
        asked = self.asked.get(slot.step)
        if asked is None:  # not decided again, or otherwise
            return
        self.watch(slot.seq)
        now = way_of(self.agent, asked)
        then = way_recorded(slot, now["approval"])
        refused = now.get("refused")
        if refused and slot.gate != "invalid":
            self._add(slot.seq, slot.step, "refused_arguments", [slot.recorded], {"refused": refused},
                      f"{slot.tool} does not take these arguments any more: {refused}.")  # fmt: skip
        elif then != now and not (refused and slot.gate == "invalid"):
            self._add(slot.seq, slot.step, "gate", then, now, changed_way(slot.tool, then, now))

    def _add(self, seq: int, step: int | None, kind: Sort, recorded: Any, attempted: Any, says: str) -> None:
        told = Divergence(seq, step, kind, kind != "text", struck(recorded), struck(attempted), struck_text(says))
        self.found.divergences.append(told)


def readable_beside(recorded: Any, given: Any) -> Any:
    """What is decided now; a secret in it is taken for the recorded one where that was sealed under a key that this
    process does not have, as a pipeline's does not: nobody can compare them."""
    if isinstance(recorded, Sealed) and isinstance(given, Sealed) and recorded != given:
        return given if is_readable(recorded) else recorded
    if isinstance(recorded, dict) and isinstance(given, dict):
        return {name: readable_beside(recorded.get(name), value) for name, value in given.items()}
    if isinstance(recorded, list) and isinstance(given, list) and len(recorded) == len(given):
        return [readable_beside(*pair) for pair in zip(recorded, given, strict=True)]
    return given


def is_readable(sealed: Sealed) -> bool:
    try:
        opened(sealed)
    except SecretUnreadable:
        return False
    return True


def differing(recorded: Records, given: Records, join: str, given_join: str) -> tuple[Sort, str] | None:
    """In which way the decision is another, and a sentence that says how; None: it is the same."""
    if same_decision(recorded, given, join, given_join):
        return None
    kind: Sort = "arguments" if join == given_join and same_shapes(recorded, given) else "decision"
    return kind, sentence(recorded, given, join, given_join)


def same_shapes(recorded: Records, given: Records) -> bool:
    return list(map(shape, recorded)) == list(map(shape, given))


def some(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def shape(record: Mapping[str, Any]) -> tuple[str, Any]:
    """What a flow is given of a move has its meaning from this: the kind, and the tool, agent or signal."""
    kind = next(iter(record))
    return (kind, record[kind]) if kind in ("call", "spawn", "wait_for") else (kind, None)


def sentence(recorded: Records, given: Records, join: str, given_join: str) -> str:
    if join != given_join:
        wanted = {"first": "the first of its moves", "all": "all of its moves"}
        return f"The decision waited for {wanted[join]}, and waits for {wanted[given_join]} now."
    was, now = ", ".join(map(named, recorded)), ", ".join(map(named, given))
    if was != now:
        return f"Recorded is {was}; decided now is {now}."
    return f"{was[:1].upper()}{was[1:]}: {difference(recorded, given)}."


def named(record: Mapping[str, Any]) -> str:
    """A move as a sentence names it."""
    kind, what = shape(record)
    words = {"call": "a call of", "spawn": "a child of", "wait_for": "a wait for", "ask": "a question",
             "sleep": "a sleep", "until": "a sleep", "finish": "the end", "fail": "a failure"}  # fmt: skip
    return f"{words.get(kind, kind)} {what}" if what is not None else words.get(kind, kind)


def no_moves(made: Decision) -> str:
    if made.by_model:
        return "The model's answer is not in the journal."
    return "The agent's code decided this; under this release a model decides, which was not asked."
