"""Tokens, computed from the bytes of a request: the same request counts the same, wherever and whenever."""

import json
from typing import Any

from demo.providers.asked import Asked
from demo.providers.turns import Block, Call, Search, Text, Thinking, Turn, Usage

BYTES_A_TOKEN = 4
OPENAI_STEP = 128  # its cache counts in steps
UNMARKED = 3  # tokens after Anthropic's last mark


def tokens(size: int) -> int:
    return -(-size // BYTES_A_TOKEN)


def usage_of(asked: Asked, turn: Turn) -> Usage:
    """A cache that holds for ever: everything sent before the model's latest answer is read from it."""
    whole = tokens(len(asked.raw))
    read, write = _cached(asked, whole)
    reasoning = sum(tokens(_size(block)) for block in turn.blocks if isinstance(block, Thinking))
    said = sum(_size(block) for block in turn.blocks if not isinstance(block, Thinking))
    return Usage(whole, max(1, reasoning + tokens(said)), read, write, reasoning)


def _size(block: Block) -> int:
    match block:
        case Call():
            text = block.tool + block.arguments
        case Search(query):
            text = query
        case Text(text) | Thinking(text):
            pass
    return len(text.encode(errors="replace"))


def _cached(asked: Asked, whole: int) -> tuple[int, int]:
    """Tokens read from the cache and written to it."""
    body, talk = dict(asked.body), asked.conversation
    for name in ("messages", "input"):
        body.pop(name, None)
    fixed = len(_dumped(body))
    before = tokens(fixed + len(_dumped(talk.history[: talk.fresh]))) if talk.fresh else 0
    if asked.dialect != "messages":
        return before // OPENAI_STEP * OPENAI_STEP, 0
    # Anthropic keeps only what a request marks: its instructions and tools, or the messages up to the mark too.
    if "cache_control" in body or b"cache_control" in _dumped(talk.history):
        return before, max(0, whole - before - UNMARKED)
    if b"cache_control" in _dumped(body):
        return (tokens(fixed), 0) if talk.fresh else (0, tokens(fixed))
    return 0, 0


def _dumped(value: Any) -> bytes:
    """As the clients write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
