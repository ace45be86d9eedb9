"""An agent, on functions of the project."""

from collections.abc import Generator
from typing import Any

from runs.sdk import Call, RunView, current_call, flow, tool
from shop.models import Order, Refund


@tool(effect="keyed")
def give_back(number: int, cents: int = 500) -> dict[str, Any]:
    """Gives money back, once a key."""
    refund, _ = Refund.objects.get_or_create(
        key=current_call().key, defaults={"order": Order.objects.get(number=number), "cents": cents}
    )
    return {"order": refund.order_id, "cents": refund.cents}


@flow(name="give-back", version="1", tools=[give_back])
def giving_back(run: RunView) -> Generator[Any, Any, Any]:
    return (yield Call(give_back, number=run.input["number"]))
