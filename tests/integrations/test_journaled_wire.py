"""Agents of pydantic-ai on PostgreSQL, asking providers over HTTP, whose worker dies at every point of a run.

A first walk writes down the points; then the run is done anew for each of them. A second worker takes over; what it
cannot know, a person settles by looking into the ledger. Each effect happens once, each answer is committed once, and
the model is asked in the very words of the undisturbed run.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest

from demo.providers.turns import call, turn
from journal import crash
from journal.entries import Kind
from recovery.commands import reconcile_intent
from runs.approvals import decide_approval
from runs.models import Run
from runs.queries import entries_of
from tests.crash.proof import assert_whole
from tests.rig.crew import CrashHere, Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers
from tests.rig.robot import APPROVERS

# A retry by the tool, a wrong argument and an unknown tool, three calls in a turn, an output that is refused.
TURNS = [
    turn("Let me see.", call("lookup", order="1")),
    turn(call("lookup", order="o-1"), call("refund", order="o-1", cents="many"), call("nothing")),
    turn(call("lookup", order="o-2"), call("refund", order="o-1", cents=500), call("mail", to="ann@b.example")),
    turn(call("final_result", refunded=True, why="ok")),
    turn(call("final_result", refunded=True, why="because")),
]
RESULT = {"refunded": True, "why": "because"}


def act_as_people(ledger: Ledger, run_id: UUID) -> None:
    """Approves what waits for it, and says of what is in doubt what the ledger knows."""
    for slot in state(run_id).unsettled():
        if slot.state == "awaiting_approval":
            assert slot.approval is not None
            decide_approval(
                run_id=run_id, seq=slot.seq, verdict="approve", digest=slot.approval.digest, note="", actor="ada",
                groups=APPROVERS,
            )  # fmt: skip
        elif slot.in_doubt:
            acted = bool(ledger.acted(slot.key))
            reconcile_intent(
                run_id=run_id, seq=slot.seq, verdict="happened" if acted else "never_happened", actor="olga",
                result="sent" if acted else None, evidence="looked into the ledger", attempt=len(slot.attempts),
            )  # fmt: skip


def walk(crew: Crew, ledger: Ledger, run_id: UUID, die_at: int | None) -> list[str]:
    """To the end, or until the point with this number is passed. The names of the points passed."""
    passed: list[str] = []

    def count(name: str) -> None:
        passed.append(name)
        if len(passed) - 1 == die_at:
            raise CrashHere

    crash.hook = count
    worker = crew.hire()
    try:
        for _ in range(4):
            if crew.drive(run_id, worker).status == "done":
                break
            act_as_people(ledger, run_id)
    except CrashHere:
        assert die_at is not None
    finally:
        crash.hook = None
    crew.lose(worker)
    return passed


def end(crew: Crew, ledger: Ledger, run_id: UUID) -> Run:
    for _ in range(6):
        if (run := crew.drive(run_id)).status == "done":
            return run
        act_as_people(ledger, run_id)
    raise AssertionError((run.status, run.reason, [(e.kind, e.body) for e in entries_of(run_id)]))


def asked_by_turn(providers: Providers) -> dict[int | None, set[str]]:
    found: dict[int | None, set[str]] = {}
    for seen in providers.requests:
        found.setdefault(seen.turn, set()).add(seen.body)
    return found


def assert_as_undisturbed(
    ledger: Ledger, providers: Providers, run: Run, bodies: dict[int | None, set[str]], said: str
) -> None:
    assert (state(run.id).done or {}).get("result") == RESULT, said
    assert_whole(run.id)
    steps = state(run.id).slots.values()
    assert [slot.tool for slot in steps] == ["lookup", "lookup", "lookup", "refund", "mail"], said
    for slot in steps:
        assert slot.effect == "read" or ledger.acted(slot.key) == 1, (said, slot)
    plans = Counter(e.body["asked"] for e in entries_of(run.id) if e.kind == Kind.PLAN and e.actor == "model")
    assert len(plans) == 5 and set(plans.values()) == {1}, said
    assert asked_by_turn(providers) == bodies, said
    attempts = [e for e in entries_of(run.id) if e.kind == Kind.ATTEMPT and e.step is None]
    assert len(providers.requests) <= len(attempts) <= 6, said
    assert sum("lost" in attempt.body for attempt in attempts) == len(attempts) - 5, said


@pytest.mark.parametrize("agent", ["anthropic", "anthropic-plain", "chat", "responses"])
def test_a_run_asks_its_provider_and_ends(crew: Crew, ledger: Ledger, providers: Providers, agent: str) -> None:
    providers.script("desk", TURNS)
    run_id = start(agent, "Refund o-1")
    run = end(crew, ledger, run_id)
    bodies = asked_by_turn(providers)
    assert {turn: len(asked) for turn, asked in bodies.items()} == {0: 1, 1: 1, 2: 1, 3: 1, 4: 1}
    assert_as_undisturbed(ledger, providers, run, bodies, agent)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "stride"), [("anthropic", 3), ("gated", 5), ("chat", 11), ("responses", 11), ("anthropic-plain", 11)]
)
def test_its_worker_dies_anywhere(crew: Crew, ledger: Ledger, providers: Providers, agent: str, stride: int) -> None:
    providers.script("desk", TURNS)
    run_id = start(agent, "Refund o-1")
    points = walk(crew, ledger, run_id, None)
    bodies = asked_by_turn(providers)
    assert_as_undisturbed(ledger, providers, end(crew, ledger, run_id), bodies, "undisturbed")
    assert len(points) > 60
    for number in range(0, len(points), stride):
        providers.forget()
        run_id = start(agent, "Refund o-1")
        walk(crew, ledger, run_id, number)
        said = f"{agent}: crash at point {number}, {points[number]}"
        assert_as_undisturbed(ledger, providers, end(crew, ledger, run_id), bodies, said)
