"""Sentences for whoever wrote an agent: what was wrong, where, and what to write instead. Pure."""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Generator, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from journal.encoding import Unencodable, decode, encode, tagged
from runs.outcomes import describe

KEPT = "give JSON values, dates, Decimals, UUIDs, bytes, or the id of the thing"
LONGEST = 200
RUNTIME = Path(__file__).parent


def unknown_tool(agent: str, name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    near = get_close_matches(name, known, 1)
    meant = f"did you mean {near[0]!r}? It" if near else "it"
    return f"{agent} has no tool {name!r}; {meant} has {', '.join(known) or 'none'}: name it in tools=[…]"


def cannot_keep(what: str, value: Any) -> list[str]:
    """One sentence for each part of `value` that the journal could only describe."""
    return [
        f"{what}{lost.path} is of type {lost.type_name}{f' and {lost.why}' if lost.why else ''}, which cannot be "
        f"journaled: {KEPT}"
        for lost in _lost(decode(encode(value)))
    ]


def _lost(value: Any) -> Iterator[Unencodable]:
    if isinstance(value, Unencodable):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _lost(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _lost(item)


def not_a_move(given: object, moves: str) -> str:
    """What was decided instead of a move, and what was probably meant."""
    if given is None:
        return f"an agent decides {moves}, not None: return a move on every path, Finish() at the end"
    kind = type(given).__name__
    said = f"an agent decides {moves}, not {kind}"
    if inspect.isgenerator(given):
        return f"{said}: run another generator with `yield from`"
    if inspect.iscoroutine(given):
        given.close()
        return f"{said}: a flow does not await; make the coroutine a tool and yield Call(tool, …)"
    if kind == "Tool":
        name = getattr(given, "name", "tool")
        return f"{said}: write Call({name}, …)"
    if kind == "Agent":
        return f"{said}: write Spawn({getattr(given, 'name', 'agent')!r}, input)"
    if callable(given):
        return f"{said}: make it a tool, and write Call({getattr(given, '__name__', 'tool')}, …)"
    return f"{said}: a flow gives its result with `return`, a decide with Finish(value)"


def raised(error: BaseException) -> str:
    """What an agent's code raised, and its own line that did."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames if _is_own(frame.filename)]
    return f"the agent's code raised {describe(error)}{f' ({lines[-1]})' if lines else ''}"


def _is_own(file: str) -> bool:
    ours = Path(file).is_relative_to(RUNTIME) or "site-packages" in file
    return not ours and not file.startswith("<")


def line_of(flow: Generator[Any, Any, Any]) -> str:
    """Where a flow stands that has just yielded."""
    frame = getattr(flow, "gi_frame", None)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame is not None else "its end"


def difference(recorded: Sequence[Any], attempted: Sequence[Any]) -> str:
    """The first thing in which what was decided differs from what is recorded."""
    if len(recorded) != len(attempted):
        return f"{_moves(recorded)} recorded, {_moves(attempted)} decided"
    for before, now in zip(recorded, attempted, strict=True):
        if before != now:
            return _first_difference(before, now, "")
    return "they differ in how they were written"


def _first_difference(before: Any, now: Any, path: str) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in [*before, *(name for name in now if name not in before)]:
            if name not in before or name not in now:
                there = "recorded, and not decided now" if name in before else "decided now, and not recorded"
                return f"{path}{name} is {there}"
            if before[name] != now[name]:
                return _first_difference(before[name], now[name], f"{path}{name}.")
    return f"{path.rstrip('.') or 'the move'} is {_short(before)} as recorded, {_short(now)} as decided now"


def _moves(moves: Sequence[Any]) -> str:
    return f"{len(moves)} move{'' if len(moves) == 1 else 's'}"


def _short(value: Any) -> str:
    try:
        said = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):  # odd keys, too large a number, a value that contains itself
        said = json.dumps(tagged(value), ensure_ascii=False)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
