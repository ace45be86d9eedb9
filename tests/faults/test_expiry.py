"""An approval expires when it is due, wherever the clocks of worker, sweeper and database are."""

import psycopg
import pytest

from runs.queries import entries_of
from runs.registry import agents, announce
from tests.faults.test_time_zones import EXACT, process
from tests.rig.crew import start
from tests.rig.fleet import Fleet
from tests.rig.ledger import Ledger


@pytest.mark.slow
@pytest.mark.parametrize("on_expiry", ["deny", "park"])
def test_an_approval_expires_when_it_is_due_wherever_the_clocks_are(
    fleet: Fleet, ledger: Ledger, settings: object, on_expiry: str
) -> None:
    settings.HOLDFAST_AGENTS = ("tests.runs.policed",)  # type: ignore[attr-defined]
    agents.cache_clear()
    announce()
    fleet.environment |= {"HOLDFAST_AGENTS": "tests.runs.policed", "HOLDFAST_SWEEP_SECONDS": "2"}
    with psycopg.connect(fleet.dsn, autocommit=True) as conn:
        conn.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone TO %L', current_database(),"
                     " 'Asia/Shanghai'); END $$")  # fmt: skip
    with process(fleet, "America/New_York", "worker", "--name", "york"), process(fleet, "Asia/Kathmandu", "sweep"):
        fleet.until(lambda: fleet.ask("SELECT 1 FROM runs_workersession"), "the worker registers")
        run_id = start("pays", {"amount_cents": 2, "policy": {"ttl": 4, "on_expiry": on_expiry}})

        def verdicts() -> dict[str, float]:
            found = [e for e in entries_of(run_id) if e.kind == "APPROVAL"]
            return {e.body["verdict"]: e.recorded_at.timestamp() for e in found}

        fleet.until(lambda: "expired" in verdicts(), "it expires")
    (asked,) = (e for e in entries_of(run_id) if e.kind == "APPROVAL" and e.body["verdict"] == "requested")
    assert asked.body["expires"] == pytest.approx(asked.recorded_at.timestamp() + 4, abs=1)
    assert 0 <= verdicts()["expired"] - asked.body["expires"] < EXACT
    assert ledger.acted(f"{run_id}:1") == 0
