"""What an agent decided, with everything sealed or struck that must not be read.

Pure, so that a decision that is made again compares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runs.agents import Agent
from runs.moves import Ask, Call, Decided, Fail, Finish, Move, Spawn
from runs.secrets import redacted, sealed_by, struck, struck_text


def sealed_moves(agent: Agent, decided: Decided) -> Decided:
    if redacted() is None and not any(tool.has_secrets for tool in agent.tools):
        return decided
    return replace(decided, moves=[_sealed(agent, move) for move in decided.moves])


def _sealed(agent: Agent, move: Move) -> Move:
    said: dict[str, Any] = {"plan": struck(move.plan), "thought": struck(move.thought)}
    match move:
        case Call():
            tool = agent.toolbox.get(move.tool)
            schema = tool.contract["parameters"] if tool is not None and tool.has_secrets else None
            return Call.of(move.tool, sealed_by(schema, move.args), move.id, **said)
        case Spawn():
            return replace(move, input=sealed_by(None, move.input), **said)
        case Finish():
            return replace(move, value=struck(move.value), **said)
        case Fail():
            return replace(move, reason=struck_text(move.reason), **said)
        case Ask():
            asked = move.schema if move.type is None else move.type
            return Ask(struck_text(move.question), asked, move.options, move.timeout, **said)
        case _:
            return replace(move, **said)
