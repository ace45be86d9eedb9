"""How a run is let go when it can only wait: as what, why, until when, for which children. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from uuid import UUID

from runs.engine.projections import Park, open_intents
from runs.engine.rules import Act, AwaitPerson, WaitUntil
from runs.state import RunState

PEOPLE = ("held", "needs_reconciliation", "awaiting_approval")


def stopped_by(state: RunState) -> Park | None:
    """What its journal says against going on. A cancel overrules what people can lift."""
    if (beyond := state.beyond) is not None:
        why = f"entry {beyond.seq}, {beyond.kind} version {beyond.v}, was written by a newer worker: waits for one"
        return Park("waiting_for_version", why)
    if state.cancel is not None:
        return None
    if state.quarantined is not None:
        return Park("quarantined", state.quarantined.reason)
    if state.diverged is not None:
        return Park("held", f"diverged: {state.diverged.reason}")
    if state.braked is not None:
        return Park("held", f"brake: {state.braked.reason}")
    if state.held is not None:
        return Park("held", f"held by {state.held.actor}: {state.held.reason}")
    return None


def park_for(
    acts: Mapping[int, Act], state: RunState, now: float, reminders: Mapping[int, int] | None = None, asked_by: str = ""
) -> Park:
    """Held by a gate before needs a person before needs an approval before waits. A waiting sibling's time is kept.

    `now`: POSIX seconds. `reminders`: of requests for approval, by step. `asked_by`: who started the tree.
    """
    people = [act for act in acts.values() if isinstance(act, AwaitPerson)]
    people.sort(key=lambda act: PEOPLE.index(act.status))
    waits = sorted((act for act in acts.values() if isinstance(act, WaitUntil)), key=lambda act: act.at or inf)
    times = [act.at for act in acts.values() if isinstance(act, (WaitUntil, AwaitPerson)) and act.at]
    intents = open_intents(state, reminders, asked_by)
    first = any(state.slots[step].decided.join == "first" for step in acts)  # type: ignore[union-attr]
    wake = min(times, default=0.0)
    kept = Park("waiting", "", wake, intents, tuple(open_children(state)), first, open_signals(state))
    if people:
        said = dict.fromkeys(act.why for act in people)
        return replace(kept, status=people[0].status, reason="; ".join(said))
    return replace(kept, reason=reason_of(waits, now))


def open_children(state: RunState) -> list[UUID]:
    return [slot.child for slot in state.open.values() if slot.kind == "child" and slot.child]


def open_signals(state: RunState) -> str:
    return json.dumps(sorted({slot.signal for slot in state.open.values() if slot.kind == "signal"}))


def reason_of(waits: Sequence[WaitUntil], now: float) -> str:
    """What it waits for, soonest first, each said once; many children are counted."""
    said = list(dict.fromkeys(sentence(act, now) for act in waits))
    if len(said) > 3:
        return f"{said[0]}; and {len(said) - 1} more"
    return "; ".join(said)


def sentence(act: WaitUntil, now: float) -> str:
    if act.at is None:
        return act.why
    today = act.at - now < 43_200
    at = datetime.fromtimestamp(act.at, UTC).strftime("%H:%M:%S UTC" if today else "%Y-%m-%d %H:%M:%S UTC")
    return f"{act.why} {'at' if act.why.endswith('again') else 'until'} {at}"
