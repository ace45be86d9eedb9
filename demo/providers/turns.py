"""What a scripted model says: turns of blocks."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from demo.providers.faults import BadFault, Fault

STOPS = ("stop", "tool_calls", "length", "content_filter", "refusal")


class BadScript(Exception):
    """A scenario that cannot be played; the text says why."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Chat completions know none: there it only counts in the usage, as with OpenAI's own models."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`arguments` is raw text, sent as it stands. `id` None: made from model, turn and position; "": left empty.

    `nameless`: the field itself is missing, as some gateways do it.
    """

    tool: str
    arguments: str = "{}"
    id: str | None = None
    nameless: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """A search of the web that the provider runs inside the request. `found`: (url, title) of each page.

    Chat completions know none: nothing is said of it there.
    """

    query: str
    found: tuple[tuple[str, str], ...] = ()


type Block = Text | Thinking | Call | Search


@dataclass(frozen=True, slots=True)
class Usage:
    """In tokens. `input` counts everything sent, the cached part too; `output` counts reasoning too."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer. `stop` None: tool_calls with a call, else stop. `usage` None: computed from what was asked and said.

    `model`: the name that the answer gives (None: the one asked for). `wait`: seconds before the first byte,
    `pace`: seconds between the pieces of a stream.
    """

    blocks: tuple[Block, ...] = ()
    stop: str | None = None
    usage: Usage | None = None
    model: str | None = None
    faults: tuple[Fault, ...] = ()
    wait: float = 0.0
    pace: float = 0.0

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Call))

    @property
    def finish(self) -> str:
        return self.stop or ("tool_calls" if self.calls else "stop")

    @classmethod
    def parse(cls, wanted: Any) -> Self:
        """From JSON: {"blocks": [{"text": …} | {"thinking": …} | {"call": tool, "arguments": text or object, "id"?} |
        {"search": query, "found": [[url, title] …]}],
        "stop"?, "usage"?, "model"?, "faults"?, "wait"?, "pace"?}, a list of blocks, or a text. Raises BadScript.
        """
        if isinstance(wanted, str):
            return cls((Text(wanted),))
        fields: dict[str, Any] = dict(wanted) if isinstance(wanted, dict) else {"blocks": wanted}
        if not isinstance(fields.get("blocks", []), list) or set(fields) - set(cls.__dataclass_fields__):
            raise BadScript(
                f"A turn is a text, a list of blocks, or an object of {', '.join(cls.__dataclass_fields__)}."
            )
        if fields.get("stop") not in (None, *STOPS):
            raise BadScript(f"`stop` is one of {', '.join(STOPS)}.")
        try:
            fields["blocks"] = tuple(_block(block) for block in fields.get("blocks", ()))
            fields["faults"] = tuple(Fault.parse(fault) for fault in fields.get("faults", ()))
            if fields.get("usage") is not None:
                fields["usage"] = Usage(**fields["usage"])
        except (BadFault, TypeError) as error:
            raise BadScript(str(error)) from None
        return cls(**fields)


def say(text: str) -> Text:
    return Text(text)


def think(text: str) -> Thinking:
    return Thinking(text)


def call(tool: str, /, **arguments: Any) -> Call:
    """With well-formed arguments; for others give Call the raw text."""
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def turn(*blocks: Block | str, **options: Any) -> Turn:
    """`turn(think("…"), "Text.", call("refund", order_id="o-1"), usage=Usage(10, 5), faults=(Fault("cut"),))`."""
    return Turn(tuple(Text(block) if isinstance(block, str) else block for block in blocks), **options)


type Turnlike = Turn | Block | str | Sequence[Block | str]


def as_turn(wanted: Turnlike) -> Turn:
    if isinstance(wanted, Turn):
        return wanted
    if isinstance(wanted, str | Text | Thinking | Call | Search):
        return turn(wanted)
    return turn(*wanted)


def _block(wanted: Any) -> Block:
    match wanted:
        case str() | {"text": str()}:
            return Text(wanted if isinstance(wanted, str) else wanted["text"])
        case {"thinking": str(text)}:
            return Thinking(text)
        case {"search": str(query), **rest} if not set(rest) - {"found"}:
            pages: Any = rest.get("found", ())
            return Search(query, tuple((str(url), str(title)) for url, title in pages))
        case {"call": str(tool), **rest} if not set(rest) - {"arguments", "id", "nameless"}:
            arguments = rest.get("arguments", {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            call_id = rest.get("id")
            return Call(tool, text, None if call_id is None else str(call_id), bool(rest.get("nameless")))
    raise BadScript(f"No block: {json.dumps(wanted)[:200]}")


def spoken(blocks: Iterable[Block]) -> str:
    """All text of the blocks that a reader sees."""
    return "".join(block.text for block in blocks if isinstance(block, Text))


def arguments_or_text(arguments: str) -> Mapping[str, Any] | str:
    """An object where the text is one, else the text as it stands."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments
