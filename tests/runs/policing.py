"""A run that waits for approval under a policy, and the people who say something about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from journal.entries import Entry, Kind
from runs.approvals import answer_question, decide_approval
from runs.models import Run
from runs.queries import entries_of
from runs.registry import agents, announce
from runs.slots import Slot
from tests.rig.crew import Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.robot import APPROVERS


@pytest.fixture
def desk(crew: Crew, settings: Any) -> Iterator[Crew]:
    """A crew that serves the agents of tests.runs.policed."""
    settings.HOLDFAST_AGENTS = ("tests.runs.policed",)
    agents.cache_clear()
    announce()
    yield crew
    agents.cache_clear()


def asks(desk: Crew, agent: str = "pays", amount_cents: int = 400, **policy: Any) -> UUID:
    """A run whose call waits for approval under this policy."""
    run_id = start(agent, {"amount_cents": amount_cents, "policy": policy or None})
    run = desk.advance(run_id)
    assert run.status == "awaiting_approval", (run.status, run.reason)
    return run_id


def the_slot(run_id: UUID) -> Slot:
    """The call that waits for somebody, or the last one."""
    found = state(run_id)
    asked = [slot for slot in found.unsettled() if slot.approval is not None and slot.approval.open]
    return next(iter([*asked, *found.unsettled()]), None) or found.slots[len(found.slots)]


def say(run_id: UUID, verdict: str = "approve", actor: str = "ada", **given: Any) -> Run:
    slot = the_slot(run_id)
    given = {"groups": APPROVERS, "note": "as ordered", "digest": slot.approval.digest if slot.approval else ""} | given
    return decide_approval(run_id=run_id, seq=slot.seq, verdict=verdict, actor=actor, **given)


def edit(run_id: UUID, actor: str = "ada", **changes: Any) -> Run:
    return say(run_id, "edit", actor, args=the_slot(run_id).args | changes)


def reply(run_id: UUID, text: str = "yes", actor: str = "olga") -> Run:
    return answer_question(run_id=run_id, seq=the_slot(run_id).seq, text=text, actor=actor)


def approvals(run_id: UUID) -> list[Entry]:
    return [entry for entry in entries_of(run_id) if entry.kind == Kind.APPROVAL]


def verdicts(run_id: UUID) -> list[str]:
    return [entry.body["verdict"] for entry in approvals(run_id)]


def listed(run_id: UUID) -> dict[str, Any]:
    """What the run's row says of its only intent."""
    (record,) = Run.objects.get(id=run_id).intents
    return dict(record)


def sent(ledger: Ledger, run_id: UUID, step: int = 1) -> list[int]:
    """The amounts that were really charged."""
    return [effect["args"]["amount_cents"] for effect in ledger.effects(f"{run_id}:{step}")]


def result(run_id: UUID) -> Any:
    done = state(run_id).done
    assert done is not None
    return done["result"]
