"""What a provider would not take again of an answer to an agent of pydantic-ai, and an answer that is a refusal."""

from __future__ import annotations

import pytest

from demo.providers.turns import Call, call, turn
from journal.entries import Kind
from runs.queries import entries_of
from tests.integrations.test_journaled_wire import RESULT
from tests.rig.crew import Crew, start, state
from tests.rig.ledger import Ledger
from tests.rig.providers import Providers

LAST = turn(call("final_result", refunded=True, why="because"))
LOOK = '{"order": "o-1"}'


@pytest.mark.parametrize("agent", ["anthropic", "chat", "anthropic-plain"])
@pytest.mark.parametrize(
    "odd",
    [
        turn(Call("functions.lookup", LOOK), Call("n" * 5_000, LOOK)),
        turn(Call("lookup", LOOK, id="c" * 500), Call("lookup", LOOK, id="c" * 500)),
        turn(Call("lookup", LOOK, id="a b"), Call("lookup", '{"order": NaN}', id="a.b")),
    ],
    ids=["names", "ids", "numbers"],
)
def test_an_odd_answer_can_be_told_again(
    crew: Crew, ledger: Ledger, providers: Providers, agent: str, odd: object
) -> None:
    providers.script("desk", lambda asked: odd if len(providers.requests) == 1 else LAST)  # type: ignore[arg-type, return-value]
    run_id = start(agent, "Refund o-1")
    run = crew.drive(run_id)
    assert run.status == "done", run.reason
    assert (state(run_id).done or {})["result"] == RESULT
    assert [seen.status for seen in providers.requests] == [200, 200]


@pytest.mark.parametrize("agent", ["anthropic", "chat"])
def test_a_refusal_is_a_whole_answer(crew: Crew, ledger: Ledger, providers: Providers, agent: str) -> None:
    providers.script("desk", [LAST])
    providers.fault("content_filter", model="desk", times=None)
    run_id = start(agent, "Refund o-1")
    run = crew.drive(run_id)
    plans = [entry for entry in entries_of(run_id) if entry.kind == Kind.PLAN]
    errors = [entry.body for entry in entries_of(run_id) if entry.kind == Kind.ERROR]
    assert not errors and plans[0].body["finish"] == "content_filter", (run.status, run.reason, errors)
