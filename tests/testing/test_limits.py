"""Limits, rates and gates hold in memory as elsewhere."""

from typing import Any

from runs import testing
from runs.sdk import Call, Limit, Rate, RunView, flow, tool
from tests.testing.agents import FAKES, Moves, away, desk


@tool(effect="keyed", limit=Limit(1), rate=Rate(2, per=10))
def rare(ctx: Any, n: int) -> None:
    away()


@flow(name="eager", version="1", tools=[rare])
def eager(run: RunView) -> Moves:
    return (yield [Call(rare, n=n) for n in range(3)])


def test_limits_and_rates_hold_in_memory() -> None:
    run = testing.start(eager, tools={"rare": lambda n: n}).finish()
    assert run.result == [0, 1, 2]
    sent = [slot.attempts[-1].at for slot in run.calls]
    assert (sent[2] - sent[0]).total_seconds() >= 10


def test_a_gate_holds_a_run_in_memory() -> None:
    run = testing.start(desk, "o-1", tools=FAKES)
    run.memory.gates["tool:refund"] = "look first"
    assert run.rest().status == "held" and "gate tool:refund: look first" in run.reason
    run.assert_calls(["look_up", "refund"])
    assert run.world.of("refund") == []


@tool(effect="keyed", limit=Limit(2))
def crowded(ctx: Any, n: int) -> None:
    away()


@flow(name="crowd", version="1", tools=[crowded])
def crowd(run: RunView) -> Moves:
    return (yield [Call(crowded, n=n) for n in range(3)])


def test_no_permit_is_lost_with_its_worker() -> None:
    for agent, name in ((crowd, "crowded"), (eager, "rare")):
        report = testing.crash_everywhere(agent, tools={name: lambda n: n}, same_result=True)
        assert len(report.points) > 10
