"""What a model said in one answer, as its PLAN keeps it: texts, thoughts, what was sent back, what it cost. Pure.

Nothing of it is markup: a text is paragraphs and fenced code, shown as it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journal.encoding import Pointer
from journal.entries import Entry
from runs.loops.declared import UPDATE_PLAN
from runs.pages.plan import NEXT, Item, items_of

MOST_TEXT = 100_000  # characters of one part that are drawn
MOST_PARTS = 200
LOADED = frozenset({"response", "replies", "thought", "feedback"})
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\S\n]*([^\n`]*)$", re.M)

type Load = Callable[[Pointer], Any]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text: `code` between fences, in the `language` that they name; else as it came."""

    text: str
    code: bool = False
    language: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """`kind` picks the partial: text, thinking, native (a tool that the provider ran), file, other."""

    kind: str
    blocks: Sequence[Block] = ()
    name: str = ""
    value: Any = None
    cut: int = 0

    @property
    def template(self) -> str:
        return f"runs/chat/part/{self.kind}.html"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the loop itself answered to a call that never became a step. `args`: as the model wrote them."""

    tool: str
    outcome: str
    cause: str
    content: Any
    args: Any

    @property
    def plan(self) -> Sequence[Item] | None:
        """Where the model wrote its plan anew: what the plan says."""
        if self.tool != UPDATE_PLAN or self.outcome == "retried" or not isinstance(self.args, Mapping):
            return None
        told = [(state, self.args.get(state)) for state in ("done", "next", "decided")]
        return items_of([{state: text} for state, texts in told if isinstance(texts, list) for text in texts])

    @property
    def now(self) -> str:
        """Of a plan: what comes next."""
        return next((item.text for item in self.plan or () if item.state == NEXT), "")

    @property
    def says(self) -> str:
        if self.outcome != "retried":
            return "taken"
        return {"arguments": "the arguments were refused", "unknown_tool": "there is no such tool",
                "output": "the output was refused"}.get(self.cause, "refused")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bill:
    """What one request used. `cost`: in the currency of its prices, as text; None: nobody knows, which is not nothing.

    `priced`: by a list of prices, in US dollars; else the agent says it.
    """

    tokens_in: float = 0
    tokens_out: float = 0
    cached: float = 0
    reasoning: float = 0
    cost: str | None = None
    priced: bool = False
    prices: str = ""

    @property
    def counted(self) -> bool:
        return bool(self.tokens_in or self.tokens_out)


@dataclass(frozen=True, slots=True)
class Said:
    """`asked`: the ATTEMPT that it answers, where the PLAN names one. `whole`: where the answer lies, if it could not
    be loaded for this page."""

    parts: Sequence[Part]
    replies: Sequence[Reply]
    feedback: str
    model: str
    finish: str
    latency: float | None
    bill: Bill
    asked: int | None = None
    whole: Pointer | None = None

    @property
    def empty(self) -> bool:
        return not (self.parts or self.replies or self.feedback)


def said_in(entry: Entry, load: Load) -> Said:
    """`load`: a payload's value; None where it cannot be had, or is too large for a page."""
    body = {name: load(v) if name in LOADED and isinstance(v, Pointer) else v for name, v in entry.body.items()}
    lost = entry.body.get("response") if body.get("response") is None else None
    response = body.get("response")
    given = response.get("parts") if isinstance(response, Mapping) else None
    found = list(parts_of(given)) if isinstance(given, list) else []
    if not found and body.get("thought"):
        found = [text_part("text", str(body["thought"]))]
    args = {part.get("tool_call_id"): part.get("args") for part in given or () if isinstance(part, Mapping)}
    replies = [reply_of(one, args) for one in body.get("replies") or () if isinstance(one, Mapping)]
    asked = body.get("asked")
    return Said(
        found[:MOST_PARTS], replies, str(body.get("feedback") or ""), str(body.get("model") or ""),
        str(body.get("finish") or ""), number(body.get("latency")), bill_of(body),
        asked if isinstance(asked, int) else None, lost if isinstance(lost, Pointer) else None,
    )  # fmt: skip


def parts_of(given: Sequence[Any]) -> Iterator[Part]:
    """Calls of tools are not among them: each is a step of its own, or has a reply."""
    for one in given:
        kind = one.get("part_kind") if isinstance(one, Mapping) else None
        match kind:
            case "tool-call":
                continue
            case "text" | "thinking":
                if one.get("content"):
                    yield text_part(kind, str(one["content"]))
            case "builtin-tool-call" | "builtin-tool-return":
                value = one.get("args") if kind == "builtin-tool-call" else one.get("content")
                yield Part("native", name=f"{one.get('tool_name') or 'a tool'}", value=value, blocks=())
            case "file":
                content = one.get("content")
                media = content.get("media_type") if isinstance(content, Mapping) else None
                yield Part("file", name=str(media or "a file"), value=content)
            case _:
                yield Part("other", name=str(kind or "a part"), value=one)


def text_part(kind: str, text: str) -> Part:
    return Part(kind, blocks_of(text[:MOST_TEXT]), cut=max(len(text) - MOST_TEXT, 0))


def blocks_of(text: str) -> list[Block]:
    """Text and the code between fences; a fence that is never closed goes to the end."""
    found, at, opened = [], 0, None
    for hit in FENCE.finditer(text):
        if opened is None:
            found.append(Block(text[at : hit.start()].strip("\n")))
            opened = hit
        elif hit[1][0] == opened[1][0] and len(hit[1]) >= len(opened[1]) and not hit[2].strip():
            found.append(Block(text[at : hit.start()].strip("\n"), True, opened[2].strip()))
            opened = None
        else:
            continue
        at = hit.end()
    rest = text[at:].strip("\n")
    found.append(Block(rest, opened is not None, opened[2].strip() if opened else ""))
    return [block for block in found if block.text.strip() or block.code]


def reply_of(one: Mapping[str, Any], args: Mapping[Any, Any]) -> Reply:
    return Reply(
        str(one.get("tool") or ""), str(one.get("outcome") or ""), str(one.get("cause") or ""), one.get("content"),
        as_object(args.get(one.get("id"))),
    )  # fmt: skip


def as_object(args: Any) -> Any:
    """Some providers' answers hold arguments as text."""
    try:
        return json.loads(args) if isinstance(args, str) else args
    except (ValueError, RecursionError):
        return args


def bill_of(body: Mapping[str, Any]) -> Bill:
    """Of a PLAN's body."""
    given = body.get("usage")
    usage: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    cost = body.get("cost")
    told = usage.get("cost")
    if cost is None and isinstance(told, int | float):
        cost = f"{told:.6f}".rstrip("0").rstrip(".")
    tokens_in, tokens_out = number(usage.get("input_tokens")) or 0, number(usage.get("output_tokens")) or 0
    if not (tokens_in or tokens_out):
        tokens_out = number(usage.get("tokens")) or 0
    return Bill(
        tokens_in, tokens_out, number(usage.get("cache_read_tokens")) or 0, number(usage.get("reasoning_tokens")) or 0,
        None if cost is None else str(cost), "prices" in body, str(body.get("prices") or ""),
    )  # fmt: skip


def number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
