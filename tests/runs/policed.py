"""Agents whose calls wait for people, under the policy in their input: `HOLDFAST_AGENTS=tests.runs.policed`."""

from collections.abc import Generator
from typing import Annotated, Any

from pydantic import AfterValidator

from runs.sdk import Agent, Call, CallFailed, Finish, Policy, RunView, Spawn, ToolContext, flow, tool
from runs.sdk.models import FunctionModel
from tests.rig import wire
from tests.rig.tools import ORDER, SOON

Moves = Generator[Any, Any, Any]


def even(amount: int) -> int:
    if amount % 2:
        raise ValueError("an odd amount")
    return amount


def named(args: dict[str, Any]) -> Policy | bool:
    return Policy(**args["policy"]) if args["policy"] is not None else True


@tool(
    effect="keyed",
    probe=wire.find_by_key,
    approval=named,
    summary=lambda args: f"Charge {args['amount_cents']} cents",
    timeout=5,
    retry=SOON,
)
def pay(
    ctx: ToolContext,
    amount_cents: Annotated[int, AfterValidator(even)],
    policy: dict[str, Any] | None = None,
    memo: str = "",
) -> dict[str, Any]:
    """The schema knows of no odd amounts: only the worker does."""
    wire.begin(ctx)
    done: dict[str, Any] = wire.act(ctx, "charge", order_id=ORDER, amount_cents=amount_cents)
    return done


@tool(
    effect="keyed",
    probe=wire.find_by_key,
    approval=True,
    canonical=lambda args: {"amount_cents": args["amount_cents"]},
    timeout=5,
    retry=SOON,
)
def pay_to(ctx: ToolContext, amount_cents: int, memo: str = "") -> Any:
    wire.begin(ctx)
    return wire.act(ctx, "charge", order_id=ORDER, amount_cents=amount_cents)


def told(run: RunView, outcome: str, why: str = "") -> dict[str, Any]:
    edited = run.last.edited if run.last is not None else None
    return {"outcome": outcome, "why": why, "edited_by": edited.by if edited is not None else None}


@flow(name="pays", version="1", tools=[pay])
def pays(run: RunView) -> Moves:
    """Input: the arguments. The result tells how it went and whether a person changed it."""
    try:
        done = yield Call(pay, **run.input)
    except CallFailed as refused:
        return told(run, refused.outcome, refused.reason) | {"edited": refused.edited}
    return told(run, "succeeded") | {"amount_cents": done["amount_cents"]}


@flow(name="pays-to", version="1", tools=[pay_to])
def pays_to(run: RunView) -> Moves:
    done = yield Call(pay_to, **run.input)
    return done["amount_cents"]


def decide(state: RunView) -> Any:
    """Two payments, the second of what really was the first."""
    if len(state.calls) == 2:
        return Finish([call.args["amount_cents"] for call in state.calls])
    amount = state.calls[0].args["amount_cents"] if state.calls else state.input["amount_cents"]
    return Call(pay, amount_cents=amount, policy=state.input.get("policy"))


pays_twice = Agent(name="pays-twice", version="1", tools=[pay], decide=decide)


def ask_model(state: RunView) -> tuple[Any, dict[str, Any]]:
    return (Finish() if state.last else Call(pay, **state.input)), {}


pays_by_model = Agent(name="pays-by-model", version="1", tools=[pay], decide=FunctionModel(ask_model))


@flow(name="pays-side-by-side", version="1", tools=[pay])
def pays_side_by_side(run: RunView) -> Moves:
    """Input: `amounts`, `policy`."""
    done = yield [Call(pay, amount_cents=amount, policy=run.input["policy"]) for amount in run.input["amounts"]]
    return [each["amount_cents"] for each in done]


@flow(name="has-a-payer", version="1")
def has_a_payer(run: RunView) -> Moves:
    return (yield Spawn("pays", run.input))
