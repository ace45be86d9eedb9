"""A worker drives runs to their end, in this process, on the real database."""

import pytest

from runs.queries import entries_of
from tests.rig.crew import Crew, journal, start, state
from tests.rig.ledger import Ledger


@pytest.mark.parametrize("agent", ["read", "keyed", "keyed-probe", "probed", "unkeyed"])
def test_a_flow_of_one_call_ends_with_its_result(crew: Crew, ledger: Ledger, agent: str) -> None:
    run_id = start(agent, {})
    run = crew.drive(run_id)
    assert run.status == "done", [e.body for e in entries_of(run_id)]
    assert journal(run_id) == ["START", "PLAN", "TOOL_CALL:1", "OBS:1", "DONE"]
    assert state(run_id).slots[1].key == f"{run_id}:1"
