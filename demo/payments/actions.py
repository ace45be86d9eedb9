"""What the service can do, what each action needs, and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.payments.books import BATCHES, batch_of, book_named
from demo.payments.offers import is_taken, offer_named
from demo.payments.orders import order_named

Past = Callable[[int], dict[str, Any] | None]
LONGEST_HOLD = 86_400


class Refused(Exception):
    """The service says no and has not acted."""


@dataclass(frozen=True, slots=True)
class Action:
    """`deduplicates`: a second request with the same key is answered from memory. `echo`: arguments in the answer.

    `check` raises Refused; it is given the arguments, and an earlier effect for its number.
    """

    name: str
    deduplicates: bool
    check: Callable[[Mapping[str, Any], Past], None]
    echo: tuple[str, ...]

    def result(self, effect: int, args: Mapping[str, Any], at: str) -> dict[str, Any]:
        return {"id": f"{self.name}-{effect}", **{name: args.get(name) for name in self.echo}, "at": at}


def _money(args: Mapping[str, Any]) -> int:
    amount = args.get("amount_cents")
    if type(amount) is not int or amount <= 0:
        raise Refused("amount_cents must be a whole number of cents above zero.")
    return amount


def _money_on_an_order(args: Mapping[str, Any], _past: Past) -> None:
    order = order_named(str(args.get("order_id")))
    if order is None:
        raise Refused("There is no such order.")
    if _money(args) > order["total_cents"]:
        raise Refused("The amount is more than the order's total.")


def _transfer(args: Mapping[str, Any], _past: Past) -> None:
    _money(args)


def _letter(args: Mapping[str, Any], _past: Past) -> None:
    if not isinstance(args.get("to"), str) or "@" not in args["to"]:
        raise Refused("`to` must be a mail address.")


def _note(args: Mapping[str, Any], _past: Past) -> None:
    if not all(isinstance(args.get(name), str) and args[name].strip() for name in ("ticket", "text")):
        raise Refused("`ticket` and `text` must be texts.")


def _hold(args: Mapping[str, Any], _past: Past) -> None:
    name, seconds = str(args.get("offer")), args.get("seconds")
    if offer_named(name) is None:
        raise Refused("There is no such offer.")
    if type(seconds) is not int or not 0 < seconds <= LONGEST_HOLD:
        raise Refused("`seconds` must be a whole number from 1 to a day.")
    if is_taken(name):
        raise Refused("Somebody was quicker: it is taken.")


def _booking(args: Mapping[str, Any], past: Past) -> None:
    held = _held(args, past)
    if datetime.fromisoformat(held["at"]) + timedelta(seconds=held["args"]["seconds"]) < datetime.now(UTC):
        raise Refused("The hold has expired.")


def _held(args: Mapping[str, Any], past: Past) -> dict[str, Any]:
    word, _, number = str(args.get("hold")).partition("-")
    held = past(int(number)) if word == "hold" and number.isdecimal() and len(number) < 16 else None
    if held is None or held["action"] != "hold":
        raise Refused("There is no such hold.")
    return held


def _release(args: Mapping[str, Any], past: Past) -> None:
    _held(args, past)


def _entered(args: Mapping[str, Any], _past: Past) -> None:
    number, correction = args.get("batch"), args.get("correction_cents", 0)
    batch = batch_of(str(args.get("ledger")), number) if type(number) is int else None
    if batch is None or type(correction) is not int:
        raise Refused("There is no such batch.")
    if batch["sum_cents"] + correction != batch["total_cents"]:
        raise Refused(f"The batch does not add up: {batch['sum_cents']} is not {batch['total_cents']}.")


def _cut_over(args: Mapping[str, Any], _past: Past) -> None:
    entered = args.get("entered")
    if book_named(str(args.get("ledger"))) is None:
        raise Refused("There is no such ledger.")
    if type(entered) is not int or not 0 <= entered <= BATCHES:
        raise Refused(f"`entered` must be a whole number of batches, up to {BATCHES}.")


ACTIONS = {
    action.name: action
    for action in (
        Action("refund", True, _money_on_an_order, ("order_id", "amount_cents")),
        Action("charge", True, _money_on_an_order, ("order_id", "amount_cents")),
        Action("mail", True, _letter, ("to", "subject")),
        Action("note", True, _note, ("ticket",)),
        Action("transfer", False, _transfer, ("to", "amount_cents")),
        Action("hold", True, _hold, ("offer", "seconds")),
        Action("book", True, _booking, ("hold", "traveller")),
        Action("release", True, _release, ("hold",)),
        Action("enter", True, _entered, ("ledger", "batch")),
        Action("cutover", True, _cut_over, ("ledger",)),
    )
}
