"""The refund desk: look the order up, refund it (above a limit only with approval), tell customer and bookkeeping."""

from collections.abc import Generator
from typing import Annotated, Any, NotRequired, TypedDict
from urllib.parse import quote

from pydantic import Field

from demo.agents import payments_api
from runs.sdk import Call, CallFailed, Policy, RunView, ToolContext, flow, tool

APPROVAL_LIMIT_CENTS = 5_000
BOOKKEEPING = "bookkeeping@example.com"


class Item(TypedDict):
    name: str
    price_cents: int


class Order(TypedDict):
    id: str
    email: str
    total_cents: int
    items: list[Item]


class Refund(TypedDict):
    """`replayed`: the service had done it before under this key and only said so again."""

    id: str
    order_id: str
    amount_cents: int
    at: str
    replayed: NotRequired[bool]


class Letter(TypedDict):
    id: str
    to: str
    at: str
    replayed: NotRequired[bool]


@tool(effect="read", timeout=20)
def lookup_order(ctx: ToolContext, order_id: str) -> Order:
    """The order with its customer's address, total and items."""
    order: Order = payments_api.get(f"/orders/{quote(order_id, safe='')}")
    return order


def above_the_limit(args: dict[str, Any]) -> Policy | bool:
    """The desk is small: who asked for a refund may approve it too, within a day."""
    return Policy(four_eyes=False, ttl=86_400) if args["amount_cents"] > APPROVAL_LIMIT_CENTS else False


@tool(
    effect="keyed",
    probe=payments_api.find_by_key,
    approval=above_the_limit,
    summary=lambda args: f"Pay {args['amount_cents'] / 100:.2f} back for order {args['order_id']}",
    timeout=20,
)
def refund(ctx: ToolContext, order_id: str, amount_cents: int) -> Refund:
    """Pay money back for an order."""
    done: Refund = payments_api.post(ctx, "/refund", order_id=order_id, amount_cents=amount_cents)
    return done


@tool(effect="keyed", probe=payments_api.find_by_key, timeout=20)
def mail(ctx: ToolContext, to: str, subject: str, body: str) -> Letter:
    """Send a letter. The service keeps keys for mail too, so it is sent once."""
    sent: Letter = payments_api.post(ctx, "/mail", to=to, subject=subject, body=body)
    return sent


class Complaint(TypedDict):
    order_id: Annotated[str, Field(title="Order", description="Like o-2041.")]
    amount_cents: NotRequired[Annotated[int, Field(gt=0, description="Where it is less than the whole order.")]]


@flow(name="refund-desk", version="2", tools=[lookup_order, refund, mail], input=Complaint)
def refund_desk(run: RunView) -> Generator[Any, Any, dict[str, Any]]:
    """Input: `order_id`, and `amount_cents` where it is less than the whole order."""
    order = yield Call(lookup_order, order_id=run.input["order_id"], thought="What was bought, by whom, for how much?")
    amount = run.input.get("amount_cents", order["total_cents"])
    money = f"{amount / 100:.2f}"
    thought = f"{money} of {order['total_cents'] / 100:.2f} go back to {order['email']}"
    try:
        done = yield Call(refund, order_id=order["id"], amount_cents=amount, thought=thought)
    except CallFailed as refused:
        return {"refunded": False, "why": refused.reason}
    yield [
        Call(
            mail,
            to=order["email"],
            subject=f"Your refund for {order['id']}",
            body=f"We paid back {money}.",
            thought="Paid: tell the customer and bookkeeping",
        ),
        Call(mail, to=BOOKKEEPING, subject=f"Refund {done['id']}", body=f"{money} for {order['id']}."),
    ]
    return {"refunded": True, "refund": done}
