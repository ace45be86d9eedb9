"""An answer in which a person has put other moves: the conversation has to say what the moves say. Pure.

A call that stays keeps its place and its id; one with other arguments keeps its id; one that is taken out is taken out
of the answer too, and a new one stands at its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from journal.encoding import canonical
from runs.loops.conversation import calls_in
from runs.loops.declared import FINAL_RESULT, WRAPPED
from runs.loops.readable import plain, text_of
from runs.loops.sendable import without_thoughts

OF_THE_PROVIDER = ("id", "provider_name", "provider_details")  # name the part that it sent, not the one that is here


class NotInAConversation(ValueError):
    """In a conversation, a model's moves are calls of tools, or one end with its result."""


def rewritten(seq: int, said: Mapping[str, Any], moves: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of an answer's body that these moves change. `seq`: of its PLAN; ids of new calls come from it.
    Raises NotInAConversation."""
    if all("call" in move for move in moves):
        made = with_ids(seq, moves, {reply["id"] for reply in said.get("replies", ())})
        response = with_calls(said["response"], said.get("moves", ()), made)
    elif len(moves) == 1 and "finish" in moves[0]:
        made = [dict(moves[0])]
        response = with_end(said["response"], said.get("moves", ()), moves[0]["finish"])
    else:
        raise NotInAConversation(" ".join((NotInAConversation.__doc__ or "").split()))
    return {"moves": made, "response": response} | ({"feedback": None} if "feedback" in said else {})


def with_ids(seq: int, moves: Sequence[Mapping[str, Any]], answered: set[str]) -> list[dict[str, Any]]:
    """Two calls of one id could not be told apart: the second gets one of its own. `answered`: ids of calls that were
    answered at once, and are no moves."""
    taken = set(answered)
    made = []
    for place, move in enumerate(moves, 1):
        id = move.get("id")
        if not isinstance(id, str) or not id or id in taken:
            id = f"edited_{seq}_{place}"
        taken.add(id)
        made.append(dict(move) | {"id": id})
    return made


def with_calls(
    response: Mapping[str, Any], before: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    left = {move["id"]: move for move in made}
    were = {move.get("id"): move for move in before}
    ends = "finish" in (before[0] if before else {})
    own = {call["tool_call_id"] for call in calls_in(dict(response))}
    parts = []
    for part in response["parts"]:
        id = part.get("tool_call_id")
        if id not in own or part.get("part_kind") != "tool-call":
            parts.append(part)
        elif id in left:
            parts.append(with_call(part, were.get(id), left.pop(id)))
        elif id not in were and not (ends and is_result(part)):
            parts.append(part)  # it was answered at once, as a plan is, and is no move
    return in_place(response, parts + [new_call(move) for move in left.values()])


def with_call(part: dict[str, Any], before: Mapping[str, Any] | None, move: Mapping[str, Any]) -> dict[str, Any]:
    if before is not None and before["call"] == move["call"] and canonical(before["args"]) == canonical(move["args"]):
        return part
    args = plain(move["args"])
    told = json.dumps(args, ensure_ascii=False) if isinstance(part.get("args"), str) else args
    changed = part | {"tool_name": move["call"], "args": told}
    return changed | {name: None for name in OF_THE_PROVIDER if name in part}


def new_call(move: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "tool_name": move["call"],
        "args": plain(move["args"]),
        "tool_call_id": move["id"],
        "part_kind": "tool-call",
    }


def with_end(response: Mapping[str, Any], before: Sequence[Mapping[str, Any]], value: Any) -> dict[str, Any]:
    """Its calls go; its text, or its call of `final_result`, says the result."""
    were = {move.get("id") for move in before}
    is_call = any(is_result(part) for part in response["parts"])
    parts = []
    for part in response["parts"]:
        if is_result(part):
            result = plain(value) if isinstance(value, dict) else {WRAPPED: plain(value)}
            parts.append(with_call(part, None, {"call": FINAL_RESULT, "args": result}))
        elif part.get("part_kind") == "tool-call":
            parts += [part] if part["tool_call_id"] not in were else []
        elif is_call or part.get("part_kind") != "text":
            parts.append(part)
    return in_place(response, parts if is_call else [*parts, {"content": text_of(value), "part_kind": "text"}])


def is_result(part: Mapping[str, Any]) -> bool:
    return part.get("part_kind") == "tool-call" and part["tool_name"] == FINAL_RESULT


def in_place(response: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """What it thought led to what it said then. Anthropic refuses an answer without its signed thoughts, and the
    others a thought without what followed it."""
    if parts != response["parts"] and response.get("provider_name") != "anthropic":
        parts = without_thoughts(parts)
    return dict(response) | {"parts": parts}
