"""Whatever a tool returns, takes or fails with: one call, a journal that keeps it, a run that ends or says why."""

import pytest

from journal.encoding import encode
from journal.verify import verify_run
from runs.queries import entries_of
from tests.rig.crew import Crew, journal, start
from tests.rig.ledger import Ledger
from tests.rig.values import VALUES


@pytest.mark.parametrize("agent", ["value", "argument", "refuse"])
def test_no_value_costs_a_second_call_or_stops_the_journal(crew: Crew, ledger: Ledger, agent: str) -> None:
    for name in sorted(VALUES):
        run_id = start(agent, {"name": name})
        run = crew.drive(run_id)
        parked = name == "huge int" and agent == "refuse"  # the tool itself fails to write the number down: unknown
        assert run.status in ("done", "failed", *["needs_reconciliation"] * parked), (name, run.status, run.reason)
        assert journal(run_id).count("TOOL_CALL:1") == 1 and "ATTEMPT:1" not in journal(run_id), name
        assert verify_run(run_id) == [], name
        assert b" at 0x" not in encode(entries_of(run_id)[-1].body), "no memory addresses"
