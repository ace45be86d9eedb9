"""What the protocols have in common."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from demo.providers.asked import Conversation
from demo.providers.turns import Call, Turn, Usage

CREATED = 1_767_225_600  # 2026-01-01, and a second a turn: a repeated request is answered with the same bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A turn about to be put into words. `number` counts turns from 0, `options` is the request's body."""

    turn: Turn
    number: int
    model: str
    usage: Usage
    options: Mapping[str, Any]

    def id(self, prefix: str, place: int | None = None) -> str:
        """The same for the same model, turn and place, whoever asks and however often."""
        mark = hashlib.sha256(self.model.encode()).hexdigest()[:8]
        return f"{prefix}_{mark}_{self.number}" + ("" if place is None else f"_{place}")

    def call_id(self, field: str, prefix: str, call: Call, place: int) -> dict[str, str]:
        """As fields of an object: none at all for a nameless call."""
        if call.nameless:
            return {}
        return {field: self.id(prefix, place) if call.id is None else call.id}

    @property
    def created(self) -> int:
        return CREATED + self.number


# Name of the event (None: chat names none) and its data; a text is sent as it stands.
type Event = tuple[str | None, Mapping[str, Any] | str]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`refusal` gives status and body of a fault's kind; `broken` is the event of an error inside a stream.

    `request_id` names the header of it; `fault` says what the provider would not take of a request.
    """

    name: str
    request_id: str
    read: Callable[[Mapping[str, Any]], Conversation]
    whole: Callable[[Reply], Mapping[str, Any]]
    events: Callable[[Reply], list[Event]]
    refusal: Callable[[str, str], tuple[int, Mapping[str, Any]]]
    broken: Event
    fault: Callable[[Mapping[str, Any]], str | None]


def words(text: str) -> list[str]:
    """In pieces as a model streams them; together they are the text, blanks and all."""
    return re.findall(r"\s*\S+|\s+\Z", text)


def halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]
