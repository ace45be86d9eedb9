import pytest
from runs.queries import entries_of
from tests.rig.crew import crew as crew, start, journal, state
from tests.rig.fixtures import ledger as ledger
from tests.rig.values import VALUES

CASES = [("retry", {"failures": 2}), ("slow", {"seconds": 0.1}), ("slow-unkeyed", {"seconds": .1}), ("hesitant-unkeyed", {"seconds": .1}),
 ("hasty", {}), ("hasty-unkeyed", {}), ("refuse", {"name": "nul"}), ("approval", {"effect": "keyed"}), ("siblings", {"effects": ["keyed","unkeyed","read"]}),
 ("mixed", {}), ("chain", {"steps": 5, "effect": "probed"}), ("sleep", {"seconds": 0.3}), ("decide", {"effect": "keyed"}), ("model", {"effect": "unkeyed"}),
 *[("value", {"name": n}) for n in VALUES], *[("argument", {"name": n}) for n in VALUES]]

@pytest.mark.parametrize(("agent","input"), CASES, ids=str)
def test_smoke(crew, ledger, agent, input):
    r = start(agent, input)
    run = crew.drive(r)
    print("\nXX", agent, input, run.status, run.reason, [ (e.kind, str(e.body)[:90]) for e in entries_of(r)][-1:])
    print("calls", ledger.calls(f"{r}:1"), "model", ledger.model_requests(r), "effects", len(ledger.effects()))
