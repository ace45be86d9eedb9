"""What the service can do, what each action needs, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from demo.payments.orders import order_named


class Refused(Exception):
    """The service says no and has not acted."""


@dataclass(frozen=True, slots=True)
class Action:
    """`deduplicates`: a second request with the same key is answered from memory. `echo`: arguments in the answer."""

    name: str
    deduplicates: bool
    check: Callable[[Mapping[str, Any]], None]
    echo: tuple[str, ...]

    def result(self, effect: int, args: Mapping[str, Any], at: str) -> dict[str, Any]:
        return {"id": f"{self.name}-{effect}", **{name: args.get(name) for name in self.echo}, "at": at}


def _money(args: Mapping[str, Any]) -> int:
    amount = args.get("amount_cents")
    if type(amount) is not int or amount <= 0:
        raise Refused("amount_cents must be a whole number of cents above zero.")
    return amount


def _money_on_an_order(args: Mapping[str, Any]) -> None:
    order = order_named(str(args.get("order_id")))
    if order is None:
        raise Refused("There is no such order.")
    if _money(args) > order["total_cents"]:
        raise Refused("The amount is more than the order's total.")


def _transfer(args: Mapping[str, Any]) -> None:
    _money(args)


def _letter(args: Mapping[str, Any]) -> None:
    if not isinstance(args.get("to"), str) or "@" not in args["to"]:
        raise Refused("`to` must be a mail address.")


ACTIONS = {
    action.name: action
    for action in (
        Action("refund", True, _money_on_an_order, ("order_id", "amount_cents")),
        Action("charge", True, _money_on_an_order, ("order_id", "amount_cents")),
        Action("mail", True, _letter, ("to", "subject")),
        Action("transfer", False, _transfer, ("to", "amount_cents")),
    )
}
