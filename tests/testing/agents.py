"""Agents for the tests of runs.testing. Their tools would touch a world that is not there."""

from collections.abc import Generator
from typing import Any

from runs.sdk import Absent, Agent, Call, CallFailed, Fail, Finish, Found, RunView, Sleep, ToolContext, flow, tool
from runs.sdk.models import FunctionModel

Moves = Generator[Any, Any, Any]


def away(*args: Any, **more: Any) -> Any:
    raise AssertionError("a test of an agent touched the world")


@tool(effect="read")
def look_up(ctx: ToolContext, order_id: str) -> dict[str, Any]:
    return dict(away())


@tool(effect="keyed", approval=lambda args: args["cents"] > 5_000)
def refund(ctx: ToolContext, order_id: str, cents: int) -> dict[str, Any]:
    return dict(away())


def found(ctx: ToolContext, **args: Any) -> Found | Absent:
    return Found(away())


@tool(effect="probed", probe=found, max_in_flight=30)
def transfer(ctx: ToolContext, to: str) -> str:
    return str(away())


@tool(effect="keyed", probe=found)
def charge(ctx: ToolContext, cents: int) -> str:
    return str(away())


@tool(effect="unkeyed")
def mail(ctx: ToolContext, to: str) -> str:
    return str(away())


@flow(name="desk", version="1", tools=[look_up, refund, mail])
def desk(run: RunView) -> Moves:
    order = yield Call(look_up, order_id=run.input)
    try:
        done = yield Call(refund, order_id=order["id"], cents=order["cents"])
    except CallFailed as refused:
        return {"refunded": False, "why": refused.reason}
    yield Call(mail, to=order["email"])
    return {"refunded": True, "refund": done["id"]}


@flow(name="every-class", version="1", tools=[look_up, refund, transfer, charge, mail])
def every_class(run: RunView) -> Moves:
    yield Call(look_up, order_id="o-1")
    both = yield [Call(transfer, to="bank"), Call(charge, cents=3)]
    yield Sleep(3_600)
    yield Call(refund, order_id="o-1", cents=1)
    yield Call(mail, to="a@b.example")
    return both


def decide(state: RunView) -> Any:
    if state.last is None:
        return Call(look_up, order_id=state.input)
    return Finish(state.last.result["cents"]) if state.last.outcome == "succeeded" else Fail("not there")


scripted = Agent(name="scripted", version="1", tools=[look_up], decide=decide)


def answer(state: RunView) -> tuple[Any, dict[str, Any]]:
    if state.last is None:
        return Call(charge, cents=7), {"tokens": 10}
    return Finish(state.last.result), {"tokens": 5}


modelled = Agent(name="modelled", version="1", tools=[charge], decide=FunctionModel(answer))
ORDER = {"id": "o-1", "cents": 700, "email": "a@b.example"}
FAKES = {"look_up": ORDER, "refund": {"id": "r-1"}, "mail": "sent"}
EVERY = FAKES | {"transfer": "t-1", "charge": "c-1"}
