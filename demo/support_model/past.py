"""What the scripted model reads in a request: the ticket, what its calls gave, and what the customer wrote since."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from demo.providers.asked import Asked, Item

AUTOMATIC = ("[Automatic", "Signal ")  # what the loop itself tells, and signals that are no words
CHANGED = "A person changed the arguments to "
REFUSED = "A person refused this call. Reason: "
NOT_MADE = ("Nobody approved this call", "This call was withdrawn")
NO_ORDER = "no such order"
ARRIVED = ("arrived", "found it", "never mind", "has come")


@dataclass(frozen=True, slots=True)
class Ticket:
    """As the agent's input says it. `order_id` may be empty."""

    customer: str
    order_id: str
    text: str

    @property
    def name(self) -> str:
        """Ines, of ines.12@example.com."""
        return self.customer.partition("@")[0].partition(".")[0].title() or "there"


@dataclass(frozen=True, slots=True)
class Made:
    """A call with what came of it. `value` is the result as JSON, where it is some."""

    tool: str
    args: Mapping[str, Any]
    said: str
    value: Any

    @property
    def worked(self) -> bool:
        return isinstance(self.value, dict) and "id" in self.value


class Past:
    """Everything that the next answer depends on, and nothing else: the same request is answered alike."""

    def __init__(self, asked: Asked) -> None:
        self.items = asked.items
        said = [item.text for item in self.items if item.kind == "user"]
        self.ticket = ticket_of(said[0] if said else "")
        self.dice = hashlib.sha256((said[0] if said else "").encode()).digest()
        results = {item.id: item for item in asked.results}
        self.calls = [made(call, results[call.id]) for call in asked.calls if call.id in results]

    def of(self, tool: str) -> list[Made]:
        return [call for call in self.calls if call.tool == tool]

    @cached_property
    def order(self) -> dict[str, Any] | None:
        return next((call.value for call in self.of("look_up_order") if call.worked), None)

    @property
    def knows_no_order(self) -> bool:
        """The shop does not know it, or would not say in three attempts."""
        tried = self.of("look_up_order")
        return not self.ticket.order_id or any(NO_ORDER in call.said for call in tried) or len(tried) > 2

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Of the order, oldest first."""
        found = [call.value for call in self.of("order_history") if isinstance(call.value, list)]
        return found[-1] if found else []

    @cached_property
    def refund(self) -> Made | None:
        """The latest one that was sent as it should be: a call that its schema refuses is none."""
        sent = [call for call in self.of("refund") if type(call.args.get("amount_cents")) is int]
        return sent[-1] if sent else None

    @property
    def refused_because(self) -> str | None:
        """The reason of whoever refused the refund; None: nobody did."""
        if self.refund is None or not self.refund.said.startswith(REFUSED):
            return None
        return self.refund.said.removeprefix(REFUSED).rstrip(". ")

    @property
    def refunded_cents(self) -> int:
        if self.refund is None or not self.refund.worked:
            return 0
        return int(self.refund.value.get("amount_cents", 0))

    @property
    def has_arrived(self) -> bool:
        """The customer writes that it is there after all, before anything was paid back."""
        return not self.refunded_cents and any(has(word, ARRIVED) for word in self.words)

    @cached_property
    def words(self) -> list[str]:
        """What the customer wrote after the ticket."""
        return [item.text for item in self._told]

    @cached_property
    def unanswered(self) -> list[str]:
        """Those words that no letter has answered."""
        letters = [place for place, item in enumerate(self.items) if item.kind == "call" and item.tool == "send_mail"]
        last = letters[-1] if letters else -1
        return [item.text for place, item in enumerate(self.items) if place > last and item in self._told]

    @cached_property
    def _told(self) -> list[Item]:
        said = [item for item in self.items if item.kind == "user"][1:]
        return [item for item in said if not item.text.startswith(AUTOMATIC)]


def ticket_of(text: str) -> Ticket:
    try:
        said = json.loads(text)
    except ValueError:
        said = {"text": text}
    said = said if isinstance(said, dict) else {"text": text}
    return Ticket(*(str(said.get(name) or "") for name in ("customer", "order_id", "text")))


def made(call: Item, result: Item) -> Made:
    args = call.value if isinstance(call.value, dict) else {}
    return Made(call.tool, args, result.text, value_of(result.text))


def value_of(text: str) -> Any:
    """The result as JSON, also behind the sentence that a person has changed the arguments."""
    if text.startswith(CHANGED):
        try:
            text = text[json.JSONDecoder().raw_decode(text, len(CHANGED))[1] :].lstrip(". ")
        except ValueError:
            return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text.lower() for word in words)
