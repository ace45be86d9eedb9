"""The bytes that each client makes of one journal, as they were when its version was taken in.

A new version may change them: what was said stays said, only the provider's cache is missed once. Then its bodies are
looked at and written anew: `GOLDEN=write python -m pytest tests/loops/test_golden.py`.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from journal.entries import Kind
from runs.loops.exact import exact
from runs.loops.providers import clients_of, model_of
from tests.loops.journals import Journal, loop_of
from tests.loops.test_identity import outcome

GOLDEN = Path(__file__).parent / "golden"
MODELS = {
    "messages": "anthropic:claude-haiku-4-5-20251001",
    "chat": "openai-chat:gpt-5.2",
    "responses": "openai-responses:gpt-5.2",
}
CALLS: list[tuple[str, Any]] = [
    ("lookup", '{"order": "o-1"}'),
    ("refund", '{"order":"o-1",  "cents":1e2}'),
    ("mail", {"zeta": 1, "order": "ä", "alpha": {"y": 2, "x": [1.0, 1e22, -0.0]}}),
    ("refund", '{"cents": 1'),
]


def spoken(protocol: str) -> dict[str, Any]:
    """As each of them answers, stored."""
    provider = "anthropic" if protocol == "messages" else "openai"
    ids = {"id": "rs_1"} if protocol == "responses" else {}
    signed = {"signature": "c2lnbmVk", "provider_name": provider} | ids
    thinking = {"part_kind": "thinking", "content": "look it up … ü€😀"} | signed
    text = {"part_kind": "text", "content": "I will look. Half \ud83d of a pair."}
    calls = [
        {"part_kind": "tool-call", "tool_name": name, "args": args, "tool_call_id": f"call_{n}"}
        for n, (name, args) in enumerate(CALLS)
    ]
    parts = [*([] if protocol == "chat" else [thinking]), text, *calls]
    return {"kind": "response", "parts": parts, "provider_name": provider, "provider_url": "https://elsewhere.example"}


def written(protocol: str, stream: bool) -> Journal:
    loop = loop_of(MODELS[protocol], stream=stream, output=dict[str, int])
    journal = Journal(loop, {"order": "o-1", "why": "ü 😀", "big": 2**70})
    reply = {
        "id": "call_3", "tool": "refund", "outcome": "retried", "content": "not valid JSON", "cause": "arguments",
        "attempt": 1,
    }  # fmt: skip
    moves = [{"call": name, "args": {"order": "o-1"}, "id": f"call_{n}"} for n, (name, _) in enumerate(CALLS[:3])]
    journal.attempt(MODELS[protocol], affinity="0192f000-0000-7000-8000-000000000005", context="It is Monday.")
    said = {"moves": moves, "response": spoken(protocol), "finish": "tool_call", "usage": {}, "replies": [reply]}
    journal.add(Kind.PLAN, {"seen": 2, "asked": 2} | said, actor="model")
    journal.intend(said)
    journal.settle(outcome)
    journal.signal("message", "And hurry")
    return journal


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("protocol", MODELS)
def test_the_body_is_the_golden_one(protocol: str, stream: bool) -> None:
    journal = written(protocol, stream)
    shown = exact(journal.agent.content, journal.state, MODELS[protocol])
    file = GOLDEN / f"{protocol}{'-streamed' if stream else ''}.json"
    clients = clients_of(model_of(journal.agent.content["model"], MODELS[protocol], dry=True))
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        told = {"clients": clients, "body": shown.body.decode()}
        file.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    golden = json.loads(file.read_text())
    assert golden["clients"] == clients, "look at what another version of the clients sends, then write it anew"
    assert shown.body.decode() == golden["body"]
