"""What is left of a run whose words were erased."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from journal.entries import Entry
from journal.erase import erase_entries
from runs.access import ensure_demo_users
from runs.queries import state_of
from runs.state import FOLDS, fold
from tests.rig.crew import Crew, crew, start
from tests.rig.fixtures import ledger
from tests.rig.ledger import Ledger

__all__ = ["crew", "ledger"]


@pytest.mark.parametrize("seqs", [None, [1], [2], [3], [4], [5]], ids=str)
@pytest.mark.parametrize("agent", ["keyed", "sleep"])
def test_a_run_that_was_erased_can_still_be_looked_at(
    crew: Crew, ledger: Ledger, agent: str, seqs: list[int] | None
) -> None:
    run_id = start(agent, {"seconds": 0} if agent == "sleep" else {"amount_cents": 7})
    crew.drive(run_id)
    before = state_of(run_id)
    erase_entries(run_id, seqs, actor="max", reason="asked for")
    state = state_of(run_id)
    assert state.slots.keys() == before.slots.keys() and not state.open and state.done is not None
    assert [slot.settled for slot in state.slots.values()] == [True] * len(before.slots)
    ensure_demo_users("four-words-of-the-demo")
    browser = Client()
    browser.force_login(User.objects.get(username="victor"))
    for address in (
        f"/runs/{run_id}",
        f"/runs/{run_id}?seq=1",
        f"/api/v1/runs/{run_id}/state",
        f"/api/v1/runs/{run_id}",
    ):
        assert browser.get(address).status_code == 200, address


@pytest.mark.parametrize("kind", FOLDS)
@pytest.mark.parametrize("step", [1, 2])
def test_an_erased_entry_of_any_kind_can_be_folded(kind: str, step: int) -> None:
    def entry(seq: int, kind: str, step: int | None, body: dict[str, Any]) -> Entry:
        return Entry(UUID(int=1), seq, kind, 1, step, None, 1, "worker", datetime(2026, 1, 1, tzinfo=UTC), body)

    first = entry(1, "TOOL_CALL", 1, {"tool": "t", "args": {}})
    if kind in ("START", "PLAN", "SIGNAL", "PIN", "CONTROL", "DONE"):
        step = 0
    elif kind not in ("TOOL_CALL", "TIMER", "ASK", "CHILD"):
        step = 1
    state = fold(UUID(int=1), [first, entry(2, kind, step or None, {"$": "erased", "digest": "0" * 64})])
    assert state.seq == 2 and state.slots[1].tool
