"""The agent's tools tell the engine the truth: "not done" only when it is known."""

import time
import uuid
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from demo.agents.refund_desk import BOOKKEEPING, lookup_order, mail, refund, refund_desk
from runs.moves import as_record
from runs.sdk import Absent, Call, CallFailed, Found, PermanentError, ToolContext, TransientError, Undecided
from runs.tools import Cancelled
from tests.rig.ledger import Ledger


@pytest.fixture
def ctx() -> ToolContext:
    run_id = uuid.uuid4()
    return ToolContext(f"{run_id}:2", run_id, 2, 1, time.time() + 20, Cancelled())


def probe(ctx: ToolContext) -> Any:
    assert refund.probe is not None
    return refund.probe(ctx, order_id="o-7", amount_cents=600)


def test_a_refund_sent_twice_under_its_key_is_one_refund(ledger: Ledger, ctx: ToolContext) -> None:
    first = refund(ctx, order_id="o-7", amount_cents=600)
    again = refund(ctx, order_id="o-7", amount_cents=600)
    assert (first["id"], first["replayed"], again["id"], again["replayed"]) == (again["id"], False, first["id"], True)
    assert refund.result_fault(again) is None
    assert ledger.acted(ctx.key) == 1


def test_the_probe_finds_by_key(ledger: Ledger, ctx: ToolContext) -> None:
    assert probe(ctx) == Absent()
    done = refund(ctx, order_id="o-7", amount_cents=600)
    found = probe(ctx)
    assert isinstance(found, Found) and found.result["id"] == done["id"]
    assert refund.result_fault(found.result) is None


def test_the_probe_is_undecided_when_the_service_cannot_say(ledger: Ledger, ctx: ToolContext) -> None:
    ledger.fault("status", "fail", times=1)
    assert probe(ctx) == Undecided("the service answered 500")
    ledger.stop()
    assert isinstance(probe(ctx), Undecided)


def test_a_refusal_is_permanent_and_says_why(ledger: Ledger, ctx: ToolContext) -> None:
    with pytest.raises(PermanentError, match="more than the order's total"):
        refund(ctx, order_id="o-7", amount_cents=1_000_000)
    with pytest.raises(PermanentError, match="no such order"):
        lookup_order(ctx, order_id="o-1000")


def test_a_rate_limit_is_transient_and_says_when(ledger: Ledger, ctx: ToolContext) -> None:
    ledger.fault("refund", "rate_limit", times=1, retry_after=30)
    with pytest.raises(TransientError) as limited:
        refund(ctx, order_id="o-7", amount_cents=600)
    assert limited.value.retry_after == 30


def test_a_service_that_is_down_is_transient(ledger: Ledger, ctx: ToolContext) -> None:
    ledger.stop()
    with pytest.raises(TransientError, match="cannot reach"):
        mail(ctx, to="a@b.example", subject="", body="")


@pytest.mark.parametrize("fault", ["drop", "fail"])
def test_a_lost_answer_and_a_500_are_neither(ledger: Ledger, ctx: ToolContext, fault: str) -> None:
    ledger.fault("refund", fault, times=1)
    with pytest.raises(httpx.HTTPError):
        refund(ctx, order_id="o-7", amount_cents=600)


def test_large_refunds_need_approval() -> None:
    assert refund.policy_for({"order_id": "o-7", "amount_cents": 5_001})
    assert not refund.policy_for({"order_id": "o-7", "amount_cents": 5_000})


def steps_of_the_flow() -> Any:
    assert refund_desk.flow is not None
    run: Any = SimpleNamespace(input={"order_id": "o-7"})
    return refund_desk.flow(run)


def test_the_flow_looks_up_refunds_and_writes_to_both() -> None:
    steps = steps_of_the_flow()
    assert as_record(next(steps)) == as_record(Call(lookup_order, order_id="o-7"))
    order = {"id": "o-7", "email": "lena@example.com", "total_cents": 5806}
    assert as_record(steps.send(order)) == as_record(Call(refund, order_id="o-7", amount_cents=5806))
    letters = steps.send({"id": "refund-1"})
    assert [letter.args["to"] for letter in letters] == ["lena@example.com", BOOKKEEPING]
    with pytest.raises(StopIteration) as end:
        steps.send([{}, {}])
    assert end.value.value == {"refunded": True, "refund": {"id": "refund-1"}}


def test_the_flow_ends_quietly_when_the_refund_is_denied() -> None:
    steps = steps_of_the_flow()
    next(steps)
    steps.send({"id": "o-7", "email": "lena@example.com", "total_cents": 5806})
    with pytest.raises(StopIteration) as end:
        steps.throw(CallFailed("refund", "denied", "not this customer", 2))
    assert end.value.value == {"refunded": False, "why": "not this customer"}
