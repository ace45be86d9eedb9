"""What a tool makes of arguments in JSON: values of its types, for the function, its predicates and its approvers."""

import dataclasses
import enum
import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from runs.sdk import PermanentError, Secret, ToolContext, tool
from runs.tools import Cancelled

RUN = UUID(int=7)
CTX = ToolContext("key-1", RUN, 1, 1, time.time() + 60, Cancelled())


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Address(BaseModel):
    street: str
    since: date


@dataclasses.dataclass
class Item:
    sku: str
    price: Decimal


@tool(effect="keyed")
def ship(
    to: Address, items: list[Item], day: date, at: datetime, pay: Decimal, id: UUID, size: Size = Size.SMALL,
    within: timedelta | None = None, tags: tuple[str, ...] = (), card: Secret[str] = "",
) -> Any:  # fmt: skip
    return locals()


JSON = {
    "to": {"street": "Main St", "since": "2020-02-03"}, "items": [{"sku": "a", "price": "1.50"}], "day": "2026-05-01",
    "at": "2026-05-01T10:00:00Z", "pay": "12.30", "id": str(RUN), "tags": ["x", "y"], "card": "4242",
}  # fmt: skip


def test_typed_gives_what_the_annotations_say() -> None:
    given = ship.typed(JSON)
    assert list(given) == list(JSON)  # defaults are the function's
    assert given["to"] == Address(street="Main St", since=date(2020, 2, 3))
    assert given["items"] == [Item("a", Decimal("1.50"))]
    assert (given["day"], given["pay"], given["id"]) == (date(2026, 5, 1), Decimal("12.30"), RUN)
    assert given["at"].isoformat() == "2026-05-01T10:00:00+00:00"
    assert (given["tags"], given["card"]) == (("x", "y"), "4242")
    made = ship.perform(CTX, ship.typed(JSON | {"size": "l", "within": "PT90S"}))
    assert (made["size"], made["within"]) == (Size.LARGE, timedelta(seconds=90))
    assert ship.perform(CTX, given)["size"] is Size.SMALL


def test_typed_takes_what_is_of_its_type_already() -> None:
    once = ship.typed(JSON)
    assert ship.typed(once) == once


def test_typed_refuses_as_a_failed_call() -> None:
    with pytest.raises(PermanentError, match=r"^day: .*; size: Input should be 's' or 'l'$"):
        ship.typed(JSON | {"day": "someday", "size": "xl"})


@tool(effect="read")
def decide_on(
    express: bool, cents: int, day: date | None = None, codes: list[int] | None = None, fee: Decimal = Decimal()
) -> None:
    """Nothing."""


def test_what_is_approved_is_what_the_function_gets() -> None:
    given = {"express": "true", "cents": "600", "day": "2026-01-02T00:00:00", "codes": ["1", 2]}
    assert decide_on.normal(given) == {"express": True, "cents": 600, "day": "2026-01-02", "codes": [1, 2]}
    assert decide_on.normal({"cents": "many"}) == {"cents": "many"}
    assert decide_on.normal({"express": False, "cents": 1}) == {"express": False, "cents": 1}
    assert decide_on.normal({"express": False, "cents": 1, "fee": "0.10"})["fee"] == Decimal("0.10")
