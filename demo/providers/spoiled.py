"""Turns that come out wrong."""

from collections.abc import Callable
from dataclasses import replace

from demo.providers.turns import BadScript, Block, Call, Text, Thinking, Turn

NO_TOOL = "no_such_tool"
SORRY = "I cannot help with that."


def spoiled(turn: Turn, kind: str) -> Turn:
    """As `kind` (one of faults.SPOILED) leaves it. Raises BadScript where the turn has no call to spoil."""
    match kind:
        case "empty":
            return replace(turn, blocks=(), stop="stop")
        case "content_filter":
            return replace(turn, blocks=(), stop="content_filter")
        case "refusal":
            return replace(turn, blocks=(Text(SORRY),), stop="refusal")
        case "length":
            return replace(turn, blocks=_cut_short(turn.blocks), stop="length")
        case "bad_arguments":
            return _first_call(turn, lambda call: replace(call, arguments=call.arguments[:-1] or "{"))
        case "unknown_tool":
            return _first_call(turn, lambda call: replace(call, tool=NO_TOOL))
        case "no_call_id":
            return _first_call(turn, lambda call: replace(call, nameless=True))
        case "empty_call_id":
            return _first_call(turn, lambda call: replace(call, id=""))
    raise BadScript(f"{kind} does not spoil a turn.")


def _first_call(turn: Turn, change: Callable[[Call], Call]) -> Turn:
    if not turn.calls:
        raise BadScript("The fault is for a call, and this turn has none.")
    place = turn.blocks.index(turn.calls[0])
    return replace(turn, blocks=(*turn.blocks[:place], change(turn.calls[0]), *turn.blocks[place + 1 :]))


def _cut_short(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Ends in the middle of the last block, as an answer that ran out of tokens does."""
    match blocks[-1:]:
        case (Call() as last,):
            return (*blocks[:-1], replace(last, arguments=last.arguments[: len(last.arguments) // 2]))
        case (Text(text) | Thinking(text) as last,):
            return (*blocks[:-1], replace(last, text=text[: len(text) // 2]))
    return blocks
