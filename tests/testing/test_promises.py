"""The contract suite: which promise a keyed or probed tool keeps, and which it breaks."""

import time
from typing import Any

import pytest

from runs import promises
from runs.promises import Promise, examine
from runs.sdk import Absent, Found, PermanentError, Tool, ToolContext, Undecided, tool
from runs.testing.fakes import World, faked
from tests.testing.agents import desk, every_class

SENT: dict[str, dict[str, Any]] = {}


def find(ctx: ToolContext, **args: Any) -> Found | Absent:
    return Found(SENT[ctx.key]) if ctx.key in SENT else Absent()


@tool(effect="keyed", probe=find, sample={"to": "ada", "cents": 3})
def sound(ctx: ToolContext, to: str, cents: int) -> dict[str, Any]:
    given = {"to": to, "cents": cents}
    if SENT.setdefault(ctx.key, given) != given:
        raise PermanentError("the key is taken")
    return given


@tool(effect="keyed", probe=lambda ctx, **args: Absent(), sample={"to": "ada"})
def forgetful(ctx: ToolContext, to: str) -> float:
    return time.monotonic()


@tool(effect="probed", probe=find, timeout=0.2, sample={})
def slow(ctx: ToolContext) -> None:
    time.sleep(1)


@tool(effect="probed", probe=lambda ctx, **args: Undecided("who knows"), max_in_flight=0.2, sample={})
def vague(ctx: ToolContext) -> int:
    return 1


@tool(effect="keyed", sample={"to": 7})
def misdeclared(ctx: ToolContext, to: str) -> None: ...


def broken(tool: Tool) -> dict[str, str]:
    return {promise.promise: promise.said for promise in examine(tool) if promise.state == "broken"}


def test_a_sound_tool_keeps_all_its_promises() -> None:
    assert [promise.state for promise in examine(sound)] == ["kept"] * 5


def test_a_forgetful_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "PROBE_PATIENCE", 0.3)  # it is never found
    assert set(broken(forgetful)) == {
        "the probe finds it after the call",
        "the same key again gives the same answer",
        "other arguments under the same key are refused",
    }
    assert "it may have acted twice" in broken(forgetful)["the same key again gives the same answer"]


def test_a_probe_that_cannot_say_and_a_call_that_is_late() -> None:
    assert "Undecided" in broken(vague)["the probe says absent before the call"]
    assert broken(slow) == {"it answers within its timeout": "no answer within 0.2 s"}
    assert "its sample fits" in broken(misdeclared)


def test_what_promises_nothing_or_has_no_sample_is_skipped() -> None:
    skipped: list[Promise] = [promise for tool in every_class.toolbox.values() for promise in examine(tool)]
    assert {promise.state for promise in skipped} == {"skipped"}
    assert any("give it @tool(sample={…})" in promise.said for promise in skipped)


@pytest.mark.parametrize("name", ["refund"])
def test_a_fake_keeps_what_its_class_promises(name: str) -> None:
    (agent,) = faked([desk], {name: {"id": "r-1"}}, World())
    fake = agent.toolbox[name]
    fake.sample = {"order_id": "o-1", "cents": 1}
    kept = [promise for promise in examine(fake) if promise.state == "kept"]
    assert "the same key again gives the same answer" in {promise.promise for promise in kept}
