"""What is always true of a run, and what is true of one that has ended."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any
from uuid import UUID

from journal.entries import Entry, Kind
from journal.verify import verify_run
from runs.engine.projections import Park, open_intents
from runs.engine.slice import Slice
from runs.models import ENDED, Permit, Run
from runs.queries import entries_of
from runs.slots import Slot
from runs.state import RunState, fold
from tests.machine.talker import judge_conversation, judge_end_of_talk, talker
from tests.machine.world import WORLD
from tests.rig.crew import told
from tests.rig.script import gave

TIME = re.compile(r"datetime\.datetime\([^)]*\)")
OUR_OWN_FAULTS = ("the worker failed", "diverged", "the agent's code raised")
NEVER_ACTED = ("failed", "denied", "expired", "cancelled")


def snapshot(state: RunState) -> dict[str, Any]:
    """All that is folded, without times: a worker guesses them until its append is answered."""
    return {name: TIME.sub("T", repr(value)) for name, value in vars(state).items() if name != "committed_seq"}


class WatchedSlice(Slice):
    """After each slice the state in memory is what the journal folds to."""

    def drive(self) -> Park | None:
        park = super().drive()
        if park is not None and not self.pending:
            entries = [entry for entry in entries_of(self.run_id) if entry.seq <= self.seen]
            compare(snapshot(self.state), snapshot(fold(self.run_id, entries)), f"after a slice of {self.run_id}")
        return park


def compare(one: dict[str, Any], other: dict[str, Any], about: str) -> None:
    unlike = {name: (one[name], other[name]) for name in one if one[name] != other[name]}
    if unlike:
        WORLD.wrong.append(f"{about}: {unlike}")


def judge(run: Run, last_epoch: int) -> None:
    """At any time."""
    entries = entries_of(run.id)
    about = told(run)
    assert [e.seq for e in entries] == list(range(1, len(entries) + 1)), about
    assert verify_run(run.id) == [], about
    assert run.epoch >= last_epoch, about
    judge_entries(entries, about)
    state = fold(run.id, entries)
    judge_row(run, state, about)
    judge_effects(state, about)
    judge_tree(run, state, about)
    if run.agent == talker.name:
        judge_conversation(run.id, entries, about)


def judge_entries(entries: Sequence[Entry], about: object) -> None:
    settled = [e.settles for e in entries if e.settles is not None]
    assert len(settled) == len(set(settled)), about
    epochs = [e.epoch for e in entries if e.actor == "worker"]
    assert epochs == sorted(epochs), about
    kinds = [e.kind for e in entries]
    assert kinds.count(Kind.START) == 1 and kinds.count(Kind.DONE) <= 1, about
    if Kind.DONE in kinds:
        assert set(kinds[kinds.index(Kind.DONE) + 1 :]) <= {Kind.NOTE}, about
    for cut in (len(entries) // 3, 2 * len(entries) // 3):
        state = fold(entries[0].run_id, entries[:cut])
        for entry in entries[cut:]:
            state.apply(entry)
        compare(snapshot(state), snapshot(fold(entries[0].run_id, entries)), f"cut at {cut}")


def judge_row(run: Run, state: RunState, about: object) -> None:
    """The row follows the journal; who does not move says why."""
    assert not any(fault in run.reason for fault in OUR_OWN_FAULTS), about
    assert (run.status in ENDED) == (state.done is not None), about
    if state.done is not None:
        how = {"result": "done", "error": "failed", "cancelled": "cancelled"}
        assert run.status == next(how[name] for name in state.done if name in how), about
        assert run.ended_at is not None and run.session_id is None, about
        return
    if run.session_id is None and run.status not in ("queued", "running"):
        assert run.reason, about
    at_rest = run.session_id is None and run.as_of_seq == state.seq and run.status not in ("queued", "running")
    if not at_rest:
        return
    assert [i["step"] for i in run.intents] == [i["step"] for i in _intents(state)], about
    doubtful = [slot for slot in state.unsettled() if slot.in_doubt]
    match run.status:
        case "awaiting_approval":
            assert any(slot.state == "awaiting_approval" for slot in state.unsettled()), about
        case "needs_reconciliation":
            assert doubtful, about
        case "held":
            assert state.held is not None or run.reason.startswith("gate tool:"), about
        case "quarantined":
            assert state.quarantined is not None and run.crashes >= 3, about
        case "waiting":
            ways = (run.wake_at, run.awaits, Permit.objects.filter(run=run).exists(), state.unsettled())
            assert any(ways), about


def _intents(state: RunState) -> list[dict[str, Any]]:
    import json

    found: list[dict[str, Any]] = json.loads(open_intents(state))
    return found


def judge_effects(state: RunState, about: object) -> None:
    """No effect twice; what is settled is so in the world too."""
    for slot in state.slots.values():
        if slot.kind != "call" or slot.effect == "read":
            continue
        acted = WORLD.acts[slot.key]
        assert acted <= 1, (slot, about)
        if slot.outcome == "succeeded":
            assert acted == 1, (slot, about)
        judge_approval(slot, about)
        if slot.outcome in NEVER_ACTED:
            assert acted == 0, (slot, about)


def judge_approval(slot: Slot, about: object) -> None:
    """Nothing that waits for people acts before as many as it takes have agreed to what was sent."""
    approval = slot.approval
    if (slot.gate != "approval" and approval is None) or not slot.attempts:
        return
    assert approval is not None, (slot, about)
    if approval.verdict == "granted":
        assert len(set(approval.granted_by)) >= approval.policy.quorum, (slot, about)
        if approval.policy.four_eyes:
            assert not set(approval.granted_by) & set(slot.editors), (slot, about)
    if slot.edited is not None:
        WORLD.tally["edited"] += 1
        assert slot.edited.seq < slot.attempts[0].seq, (slot, about)
    if slot.outcome == "succeeded" and slot.key in WORLD.sent:
        assert WORLD.sent[slot.key] == slot.args.get("n", 0), (slot, about)


def judge_tree(run: Run, state: RunState, about: object) -> None:
    """Each child once; signals in order, each once."""
    own = [slot for slot in state.slots.values() if slot.seq > state.copied_to]
    spawned = [slot.child for slot in own if slot.kind == "child" and slot.child]
    assert [child.id for child in Run.objects.filter(parent=run).order_by("parent_step")] == spawned, about
    taken = [(signal.name, signal.step) for signal in state.signals if signal.step is not None]
    assert len({step for _, step in taken}) == len(taken), about
    for name in {name for name, _ in taken}:
        steps = [step for other, step in taken if other == name]
        assert steps == sorted(steps), about


def judge_families(runs: Sequence[Run]) -> None:
    """What two relatives both did was done by one of them with somebody's word, who was told of the other's."""
    families: dict[UUID, list[tuple[RunState, list[Entry]]]] = defaultdict(list)
    for run in runs:
        if run.lineage is not None:
            entries = entries_of(run.id)
            families[run.lineage].append((fold(run.id, entries), entries))
    for family in families.values():
        for (one, its), (other, others) in combinations(family, 2):
            for mine, theirs in product(one.slots.values(), other.slots.values()):
                if not shared(mine, other) and not shared(theirs, one) and repeats(mine, theirs):
                    WORLD.tally["repeated"] += 1
                    knew = (other.run_id, theirs.step) in told_of(its, mine.step)
                    knew |= (one.run_id, mine.step) in told_of(others, theirs.step)
                    assert knew, (mine, theirs, told(Run.objects.get(id=one.run_id)))


def shared(slot: Slot, other: RunState) -> bool:
    """Whether the other has it too: copied from there, or to there. What the agent does twice by itself is its own."""
    there = other.slots.get(slot.step)
    return "copied_from" in slot.body or (there is not None and there.key == slot.key)


def repeats(mine: Slot, theirs: Slot) -> bool:
    """Whether both were done, and are the same but for their keys."""
    if mine.kind != "call" or theirs.kind != "call" or mine.effect == "read" or mine.key == theirs.key:
        return False
    same = mine.tool == theirs.tool and mine.args == theirs.args
    return same and bool(WORLD.acts[mine.key] and WORLD.acts[theirs.key])


def told_of(entries: Sequence[Entry], step: int) -> set[tuple[UUID, int]]:
    """Which effects of relatives somebody was told of who granted this call."""
    found: set[tuple[UUID, int]] = set()
    asked: set[tuple[UUID, int]] = set()
    for entry in entries:
        if entry.kind == Kind.APPROVAL and entry.step == step:
            if entry.body["verdict"] == "requested":
                asked = {(UUID(repeat["run"]), repeat["step"]) for repeat in entry.body.get("repeats", ())}
            elif entry.body["verdict"] == "granted":
                found |= asked
    return found


def judge_end(run: Run) -> None:
    """Of a run that has ended."""
    state = fold(run.id, entries_of(run.id))
    about = told(run)
    WORLD.tally[run.status] += 1
    for slot in state.slots.values():
        WORLD.tally[f"{slot.kind} {slot.outcome}"] += 1
    assert not Permit.objects.filter(run=run).exists(), about
    if state.done is None or "result" not in state.done:
        return
    slots, expected = list(state.slots.values()), []
    if run.agent == talker.name:
        judge_end_of_talk(state, slots, about)
        return
    for statement in state.input:
        width = len(statement[1]) if statement[0] in ("all", "first") else 1
        expected.append(gave(statement, slots[:width]))
        slots = slots[width:]
    assert state.done["result"] == expected and not slots, about
