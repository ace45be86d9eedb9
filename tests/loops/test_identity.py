"""The same journal leads to the same bytes, in whatever process, and they are what was sent."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from demo.providers.turns import Call, call, think, turn
from journal.entries import Kind
from runs.loops.exact import exact, exact_of
from tests.loops.journals import PROTOCOLS, Journal, loop_of, worked
from tests.rig.providers import Providers

HERE = Path(__file__).parents[2]
RECOMPUTE = """
import sys
from tests.loops.journals import loaded
from runs.loops.exact import exact_of
for line in sys.stdin:
    content, entries = loaded(line)
    for entry in entries:
        if entry.kind == "ATTEMPT" and entry.step is None:
            print(exact_of(content, entries, entry.seq).digest)
"""
TURNS = [
    turn(
        think("look it up … ü€😀"),
        "I will look.",
        call("lookup", order="o-1"),
        Call("refund", '{"order":"o-1",  "cents":1e2}'),
        Call("mail", '{"zeta":1,"order":"ä","alpha":{"y":2,"x":[1.0,1e22,-0.0]}}'),
    ),
    turn(
        Call("refund", '{"cents": 1'), call("nothing", x=1), call("update_plan", done=["looked"], next=[], decided=[])
    ),
    turn(call("lookup", order="o-2"), call("lookup", order="o-3"), call("refund", order="o-2", cents=1)),
    "Done.",
]


def outcome(step: int) -> dict[str, Any]:
    if step == 2:
        return {"outcome": "denied", "error": "not this one — ü"}
    if step == 4:
        return {"outcome": "failed", "error": "no such order"}
    return worked(step)


def written(providers: Providers, model: str, **given: Any) -> Journal:
    providers.script("m", TURNS)
    journal = Journal(loop_of(f"{model}:m", **given), {"order": "o-1", "why": "ü 😀", "big": 2**70})
    for number, _ in enumerate(TURNS):
        journal.ask()
        journal.settle(outcome)
        if number == 1:
            journal.signal("message", "And hurry — half \ud83d of a pair")
            journal.signal("paid", {"cents": 5})
    return journal


def recomputed(*journals: Journal, **environment: str) -> list[str]:
    """In a process of its own, with cold caches."""
    lines = "\n".join(journal.dumped() for journal in journals)
    kept = {n: v for n, v in os.environ.items() if not n.endswith(("_BASE_URL", "_API_KEY"))}
    run = subprocess.run(
        [sys.executable, "-c", RECOMPUTE], input=lines, capture_output=True, text=True, cwd=HERE,
        env={**kept, "DJANGO_SETTINGS_MODULE": "config.settings", **environment}, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_what_was_journaled_was_sent_and_is_recomputed_elsewhere(
    providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in providers.environment.items():
        monkeypatch.setenv(name, value)
    journals = [written(providers, model, stream=stream) for model in PROTOCOLS for stream in (True, False)]
    sent = [hashlib.sha256(seen.body.encode()).hexdigest() for seen in providers.requests]
    assert len(sent) == len(TURNS) * len(journals)
    asked = [(journal, e) for journal in journals for e in journal.entries if e.kind == Kind.ATTEMPT]
    assert [entry.body["digest"] for _, entry in asked] == sent
    assert [exact_of(j.agent.content, j.entries, entry.seq).digest for j, entry in asked] == sent
    assert recomputed(*journals, PYTHONHASHSEED="77") == sent


def test_another_address_asks_for_the_same_bytes(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M_URL", providers.openai_url)
    monkeypatch.setenv("M_KEY", "k")
    journal = written(providers, "openai-responses", base_url="$M_URL", api_key="$M_KEY")
    sent = [hashlib.sha256(seen.body.encode()).hexdigest() for seen in providers.requests]
    assert recomputed(journal, M_URL="http://127.0.0.1:9/elsewhere/v1") == sent
    assert recomputed(journal) == sent


def test_a_request_is_shown_without_what_gives_access(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M_URL", providers.anthropic_url)
    monkeypatch.setenv("M_KEY", "very-secret")
    journal = written(providers, "anthropic", base_url="$M_URL", api_key="$M_KEY")
    monkeypatch.delenv("M_URL")
    monkeypatch.delenv("M_KEY")
    shown = exact(journal.agent.content, journal.state, "anthropic:m")
    assert shown.method == "POST"
    assert shown.url.startswith("$M_URL/v1/messages")
    assert "secret" not in repr(shown)
    assert not {name.lower() for name in shown.headers} & {"authorization", "x-api-key"}


def test_an_entry_that_asks_nobody_has_no_request(providers: Providers) -> None:
    journal = Journal(loop_of())
    with pytest.raises(LookupError):
        exact_of(journal.agent.content, journal.entries, 1)
