"""A request as a scenario sees it: the same for each of the three protocols."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

OURS = re.compile(r"(?:call|toolu)_[0-9a-f]{8}_(\d+)_\d+")


@dataclass(frozen=True, slots=True)
class Item:
    """`kind` call: `text` is the arguments as text. `kind` result: `text` is what the tool gave back.

    `id` and `tool` are given for both, `error` where the protocol has a word for it (Anthropic).
    """

    kind: Literal["user", "assistant", "call", "result"]
    text: str
    id: str = ""
    tool: str = ""
    error: bool = False

    @property
    def value(self) -> Any:
        """The text as JSON where it is some, else as it stands."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a dialect reads in a body. `turns`: answers of the model in it; `fresh`: where in the raw list the latest
    of them begins (0 without one).
    """

    system: str
    items: tuple[Item, ...]
    tools: tuple[str, ...]
    turns: int
    history: list[Any]
    fresh: int


@dataclass(frozen=True)
class Asked:
    """`body` is the parsed JSON, `raw` the bytes as they came."""

    dialect: str
    model: str
    stream: bool
    body: Mapping[str, Any]
    raw: bytes
    conversation: Conversation

    @property
    def system(self) -> str:
        return self.conversation.system

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools offered, in order."""
        return self.conversation.tools

    @property
    def items(self) -> tuple[Item, ...]:
        return self.conversation.items

    @cached_property
    def turn(self) -> int:
        """How many answers came before this one: never how many requests.

        Ids of our own calls tell it where older turns were left out of the request.
        """
        told = [int(match[1]) + 1 for item in self.calls if (match := OURS.fullmatch(item.id))]
        return max([self.conversation.turns, *told])

    @cached_property
    def calls(self) -> list[Item]:
        return [item for item in self.items if item.kind == "call"]

    @cached_property
    def results(self) -> list[Item]:
        """What tools gave back, in the request's order, each with the name of its tool."""
        return [item for item in self.items if item.kind == "result"]

    @cached_property
    def said(self) -> list[str]:
        """What the user said, in order."""
        return [item.text for item in self.items if item.kind == "user"]

    @cached_property
    def latest(self) -> list[Item]:
        """What came since the model spoke last: results and words of the user."""
        mine = [place for place, item in enumerate(self.items) if item.kind in ("assistant", "call")]
        return list(self.items[mine[-1] + 1 :] if mine else self.items)

    def results_of(self, tool: str) -> list[Item]:
        return [item for item in self.results if item.tool == tool]


def named(items: list[Item]) -> tuple[Item, ...]:
    """Results get the names of their tools from the calls before them."""
    tools: dict[str, str] = {}
    out = []
    for item in items:
        if item.kind == "call":
            tools[item.id] = item.tool
        elif item.kind == "result":
            item = Item("result", item.text, item.id, tools.get(item.id, ""), item.error)
        out.append(item)
    return tuple(out)


def plain(content: Any) -> str:
    """Text of a message's content: a text, or a list of parts of which some have text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part if isinstance(part, str) else part.get("text") or part.get("refusal") or "" for part in content)
        return "\n".join(part for part in parts if part)
    return ""
